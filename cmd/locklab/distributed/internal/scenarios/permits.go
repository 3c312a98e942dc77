package scenarios

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/distributed/redislock"
)

var _ = register(lab.Scenario{
	Lesson: 35,
	Name:   "permits",
	Topic:  lab.T("Leases", "租约"),
	Title:  lab.T("Permits in a fleet, and a crash", "多台机器的许可，以及一次崩溃"),
	Question: lab.T("How do all machines together run at most two jobs at a time, also after one of them has crashed?",
		"所有机器合起来最多同时运行两个任务，哪怕其中一台崩溃，怎样做到？"),
	Claim: lab.T("A semaphore in a store has a number of permits, and each process that works has one. The "+
		"simplest one is a counter: a script subtracts from it, or says that too few are left. But the "+
		"counter does not say who has the others. If a process dies, its permit is gone for ever, and "+
		"with each crash fewer jobs can run. In the end none can.\n\n"+
		"A permit with a lease comes back. The semaphore has an entry for each acquisition, with an end "+
		"that its process puts off while it lives. What it has is the size, less the entries that have "+
		"not ended.",
		`存储中的信号量有若干许可，每个正在工作的进程占一个。最简单的做法是计数器：脚本从中减去，或者说明剩余
不够。但计数器不知道其余的许可在谁手里。进程死去，它的许可就永远没了；每崩溃一次，能运行的任务就少一
个，直到一个也不能运行。

带租约的许可会回来。信号量为每次获取保存一个条目，条目有结束时间，进程活着就不断推迟它。剩余的许
可等于总数减去尚未结束的条目数。`),
	Look: lab.T("Both semaphores have two permits, and one of two jobs crashes. The third job comes then. In the "+
		"first picture it works when the other job has ended, and the fourth waits for that one, although "+
		"two permits are meant to be there. In the second the permit of the crashed job comes back with "+
		"its lease, and two jobs work again.",
		"两个信号量都有两个许可，两个任务中有一个崩溃，随后第三个任务到来。第一幅图中，它要等另一个任"+
			"务结束才能工作，而第四个又要等它，尽管本该有两个许可。第二幅图中，崩溃任务的许可随租约到期而"+
			"归还，又有两个任务同时工作。"),
	Found: lab.T(`With the counter one permit was free for good: after the crash at most {{.counterAfter}} job worked at a
time, and the counter stood at {{.counter}} when all had ended. With leases two worked again {{n .back}} after the crash,
under a lease of {{n .term}}. At no time more than {{.most}} worked.`,
		`使用计数器，有一个许可再也回不来：崩溃之后最多有 {{.counterAfter}} 个任务同时工作，全部结束时计
数器为 {{.counter}}。使用租约，崩溃之后 {{n .back}} 又有两个任务同时工作，租约为 {{n .term}}。任
何时候同时工作的都不超过 {{.most}} 个。`),
	Take: lab.T("Take a semaphore whose permits have a lease, unless somebody counts again after a crash: "+
		"`Semaphore` of a client of this module, or `withlock run -permits 2`. The size is an agreement "+
		"of all processes. Redisson's RSemaphore is a counter. Its RPermitExpirableSemaphore has leases, "+
		"which this module renews.",
		"请用许可带租约的信号量，除非崩溃之后有人重新清点：用本模块客户端的 `Semaphore`，或"+
			"者 `withlock run -permits 2`。"+
			"总数要由所有进程约定一致。Redisson 的 RSemaphore 是计数器；它的 RPermitExpirableSemaphore 有租约，"+
			"本模块会为其续期。"),
	Java: lab.Same(`RSemaphore jobs = redisson.getSemaphore("jobs");
jobs.acquire();                        // %s

RPermitExpirableSemaphore leased = redisson.getPermitExpirableSemaphore("leased");
String id = leased.acquire(30, TimeUnit.SECONDS);
leased.updateLeaseTime(id, 30, TimeUnit.SECONDS);   // %s`).With(lab.T("a crash, and the permit is lost",
		"一旦崩溃，许可就没了"), lab.T("again and again, by hand", "要自己反复调用")),
	Run: permits,
})

//lab:show

// takePermit subtracts one permit from a counter, if one is left. It is wrong: the store does not
// know the holders.
var takePermit = redis.NewScript(`
if tonumber(redis.call('GET', KEYS[1])) < 1 then
	return 0
end
redis.call('DECR', KEYS[1])
return 1
`)

func take(ctx context.Context, r *redis.Client, key string) (bool, error) {
	n, err := takePermit.Run(ctx, r, []string{key}).Int()
	return n == 1, err
}

// withPermit works while it has one of two permits with a lease.
func withPermit(ctx context.Context, c *redislock.Client, work func(locks.Permits) error) error {
	permit, err := c.Semaphore("leased", 2).AcquireContext(ctx, 1)
	if err != nil {
		return err
	}
	return errors.Join(work(permit), permit.ReleaseContext(ctx))
}

//lab:end

const jobs = "jobs"

func permits(_ context.Context, l *lab.Lab) error {
	s := newServer(l)
	step := lab.Pick(l, time.Second, 1500*time.Millisecond)
	term := lab.Pick(l, 5*time.Second, step) // a slow test has to crash within it
	// Only the lease of the job that crashes matters.
	one, two, three := s.process(l, term), s.process(l, time.Minute), s.process(l, time.Minute)
	defer s.end(one, two, three)
	var most atomic.Int64
	countPermits(l, s, step, &most)
	leasePermits(l, []*process{one, two, three}, term, &most)
	l.Check(most.Load() <= 2, lab.T("at no time more jobs work than there are permits",
		"任何时候，工作的任务都不多于许可"))
	l.Observe("most", most.Load())
	l.Observe("term", term)
	return nil
}

// countPermits has a job crash with a permit of a counter.
func countPermits(l *lab.Lab, s *server, step time.Duration, most *atomic.Int64) {
	client := s.process(l, time.Minute)
	defer func() {
		_ = client.locks.Close(context.Background())
		client.Client.Close()
	}()
	l.Must(client.Set(context.Background(), jobs, 2, 0).Err())
	t := l.Timeline(lab.T("A counter", "计数器"), lab.T("The first job crashes. Its permit is never free again.",
		"第一个任务崩溃，它的许可再也不会空闲。"))
	var in inside
	wait := func(ctx context.Context, me *lab.Lane) error {
		for asked := false; ; asked = true {
			ok, err := take(ctx, client.Client, jobs)
			if err != nil || ok {
				me.Set(lab.Shared, lab.T("has a permit", "持有许可"))
				return err
			}
			if !asked {
				me.Set(lab.Waiting, lab.T("asks for a permit", "申请许可"))
			}
			me.Work(step / 20)
		}
	}
	giveBack := func(ctx context.Context, me *lab.Lane) error {
		me.Set(lab.Running, lab.T("works", "运行"))
		return client.Incr(ctx, jobs).Err()
	}
	var begun, crashed, third = make(chan struct{}), make(chan struct{}), make(chan struct{})
	var after inside // the crash
	t.Go(lab.T("job 1", "任务 1"), func(ctx context.Context, me *lab.Lane) error {
		defer close(crashed)
		if err := wait(ctx, me); err != nil {
			return err
		}
		in.enter()
		close(begun)
		me.Work(step / 4)
		in.leave()
		me.Mark(lab.T("crashes", "崩溃"))
		return nil
	})
	t.Go(lab.T("job 2", "任务 2"), func(ctx context.Context, me *lab.Lane) error {
		<-begun
		if err := wait(ctx, me); err != nil {
			return err
		}
		in.enter()
		<-crashed
		after.enter()
		me.Work(step / 2)
		after.leave()
		in.leave()
		return giveBack(ctx, me)
	})
	t.Go(lab.T("job 3", "任务 3"), func(ctx context.Context, me *lab.Lane) error {
		<-crashed
		if err := wait(ctx, me); err != nil {
			return err
		}
		in.enter()
		after.enter()
		close(third)
		me.Work(2 * step)
		after.leave()
		in.leave()
		return giveBack(ctx, me)
	})
	t.Go(lab.T("job 4", "任务 4"), func(ctx context.Context, me *lab.Lane) error {
		<-third
		if err := wait(ctx, me); err != nil {
			return err
		}
		in.enter()
		after.enter()
		me.Work(step / 4)
		after.leave()
		in.leave()
		return giveBack(ctx, me)
	})
	t.Wait()
	l.Equal(int64(1), after.most.Load(), lab.T("after the crash, the counter lets one job work at a time",
		"崩溃之后，计数器一次只让一个任务工作"))
	text, err := client.Get(context.Background(), jobs).Result()
	l.Must(err)
	left, err := strconv.Atoi(text)
	l.Must(err)
	l.Equal(1, left, lab.T("when all have ended, one permit of two is missing", "全部结束时，两个许可少了一个"))
	l.Observe("counterAfter", after.most.Load())
	l.Observe("counter", left)
	most.Store(max(most.Load(), in.most.Load()))
}

// leasePermits has a job crash with a permit that has a lease.
func leasePermits(l *lab.Lab, processes []*process, term time.Duration, most *atomic.Int64) {
	t := l.Timeline(lab.T("Permits with a lease",
		"带租约的许可"), lab.T("The first job crashes. Its permit comes back with the lease.",
		"第一个任务崩溃，它的许可随租约到期而归还。"))
	var in inside
	var crash, back time.Time
	var begun, crashed, third = make(chan struct{}), make(chan struct{}), make(chan struct{})
	job := func(i int, ctx context.Context, me *lab.Lane, work func()) error {
		me.Set(lab.Waiting, lab.T("asks for a permit", "申请许可"))
		err := withPermit(ctx, processes[i].locks, func(locks.Permits) error {
			me.Set(lab.Shared, lab.T("has a permit", "持有许可"))
			in.enter()
			work()
			if i == 0 {
				return errCrash
			}
			in.leave()
			me.Set(lab.Running, lab.T("works", "运行"))
			return nil
		})
		if i == 0 {
			l.Is(locks.ErrLost, err, lab.T("a release that does not come to the server is a loss",
				"没有到达服务器的释放就是丢失"))
			return nil
		}
		return err
	}
	t.Go(lab.T("job 1", "任务 1"), func(ctx context.Context, me *lab.Lane) error {
		return job(0, ctx, me, func() {
			close(begun)
			me.Work(term / 4)
			processes[0].disconnect()
			in.leave()
			crash = time.Now()
			me.Mark(lab.T("crashes", "崩溃"))
			me.Set(lab.Running, lab.T("is dead", "已死"))
			close(crashed)
		})
	})
	t.Go(lab.T("job 2", "任务 2"), func(ctx context.Context, me *lab.Lane) error {
		<-begun
		return job(1, ctx, me, func() {
			<-third // it works until two work again
			me.Work(term / 4)
		})
	})
	t.Go(lab.T("job 3", "任务 3"), func(ctx context.Context, me *lab.Lane) error {
		<-crashed
		return job(2, ctx, me, func() {
			back = time.Now()
			close(third)
			me.Work(term / 4)
		})
	})
	t.Wait()
	l.Check(back.Sub(crash) > term/4, lab.T("the permit of the crashed job is kept until its lease ends",
		"崩溃任务的许可保留到租约到期"))
	l.Observe("back", back.Sub(crash))
	most.Store(max(most.Load(), in.most.Load()))
}
