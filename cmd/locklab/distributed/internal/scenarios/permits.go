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
	Lesson:   35,
	Name:     "permits",
	Topic:    lab.T("Leases"),
	Title:    lab.T("Permits in a fleet, and a crash"),
	Question: lab.T("How do all machines together run at most two jobs at a time, also after one of them has crashed?"),
	Claim: lab.T("A semaphore in a store has a number of permits, and each process that works has one. The " +
		"simplest one is a counter: a script subtracts from it, or says that too few are left. But the " +
		"counter does not say who has the others. If a process dies, its permit is gone for ever, and " +
		"with each crash fewer jobs can run. In the end none can.\n\n" +
		"A permit with a lease comes back. The semaphore has an entry for each acquisition, with an end " +
		"that its process puts off while it lives. What it has is the size, less the entries that have " +
		"not ended."),
	Look: lab.T("Both semaphores have two permits, and one of two jobs crashes. The third job comes then. In the " +
		"first picture it works when the other job has ended, and the fourth waits for that one, although " +
		"two permits are meant to be there. In the second the permit of the crashed job comes back with " +
		"its lease, and two jobs work again."),
	Found: lab.T(`With the counter one permit was free for good: after the crash at most {{.counterAfter}} job worked at a
time, and the counter stood at {{.counter}} when all had ended. With leases two worked again {{n .back}} after the crash,
under a lease of {{n .term}}. At no time more than {{.most}} worked.`),
	Take: lab.T("Take a semaphore whose permits have a lease, unless somebody counts again after a crash: " +
		"`Semaphore` of a client of this module, or `withlock run -permits 2`. The size is an agreement " +
		"of all processes. Redisson's RSemaphore is a counter. Its RPermitExpirableSemaphore has leases, " +
		"which this module renews."),
	Java: `RSemaphore jobs = redisson.getSemaphore("jobs");
jobs.acquire();                        // a crash, and the permit is lost

RPermitExpirableSemaphore leased = redisson.getPermitExpirableSemaphore("leased");
String id = leased.acquire(30, TimeUnit.SECONDS);
leased.updateLeaseTime(id, 30, TimeUnit.SECONDS);   // again and again, by hand`,
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
	l.Check(most.Load() <= 2, lab.T("at no time more jobs work than there are permits"))
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
	t := l.Timeline(lab.T("A counter"), lab.T("The first job crashes. Its permit is never free again."))
	var in inside
	wait := func(ctx context.Context, me *lab.Lane) error {
		for asked := false; ; asked = true {
			ok, err := take(ctx, client.Client, jobs)
			if err != nil || ok {
				me.Set(lab.Shared, lab.T("has a permit"))
				return err
			}
			if !asked {
				me.Set(lab.Waiting, lab.T("asks for a permit"))
			}
			me.Work(step / 20)
		}
	}
	giveBack := func(ctx context.Context, me *lab.Lane) error {
		me.Set(lab.Running, lab.T("works"))
		return client.Incr(ctx, jobs).Err()
	}
	var begun, crashed, third = make(chan struct{}), make(chan struct{}), make(chan struct{})
	var after inside // the crash
	t.Go(lab.T("job 1"), func(ctx context.Context, me *lab.Lane) error {
		defer close(crashed)
		if err := wait(ctx, me); err != nil {
			return err
		}
		in.enter()
		close(begun)
		me.Work(step / 4)
		in.leave()
		me.Mark(lab.T("crashes"))
		return nil
	})
	t.Go(lab.T("job 2"), func(ctx context.Context, me *lab.Lane) error {
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
	t.Go(lab.T("job 3"), func(ctx context.Context, me *lab.Lane) error {
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
	t.Go(lab.T("job 4"), func(ctx context.Context, me *lab.Lane) error {
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
	l.Equal(int64(1), after.most.Load(), lab.T("after the crash, the counter lets one job work at a time"))
	text, err := client.Get(context.Background(), jobs).Result()
	l.Must(err)
	left, err := strconv.Atoi(text)
	l.Must(err)
	l.Equal(1, left, lab.T("when all have ended, one permit of two is missing"))
	l.Observe("counterAfter", after.most.Load())
	l.Observe("counter", left)
	most.Store(max(most.Load(), in.most.Load()))
}

// leasePermits has a job crash with a permit that has a lease.
func leasePermits(l *lab.Lab, processes []*process, term time.Duration, most *atomic.Int64) {
	t := l.Timeline(lab.T("Permits with a lease"), lab.T("The first job crashes. Its permit comes back with the lease."))
	var in inside
	var crash, back time.Time
	var begun, crashed, third = make(chan struct{}), make(chan struct{}), make(chan struct{})
	job := func(i int, ctx context.Context, me *lab.Lane, work func()) error {
		me.Set(lab.Waiting, lab.T("asks for a permit"))
		err := withPermit(ctx, processes[i].locks, func(locks.Permits) error {
			me.Set(lab.Shared, lab.T("has a permit"))
			in.enter()
			work()
			if i == 0 {
				return errCrash
			}
			in.leave()
			me.Set(lab.Running, lab.T("works"))
			return nil
		})
		if i == 0 {
			l.Is(locks.ErrLost, err, lab.T("a release that does not come to the server is a loss"))
			return nil
		}
		return err
	}
	t.Go(lab.T("job 1"), func(ctx context.Context, me *lab.Lane) error {
		return job(0, ctx, me, func() {
			close(begun)
			me.Work(term / 4)
			processes[0].disconnect()
			in.leave()
			crash = time.Now()
			me.Mark(lab.T("crashes"))
			me.Set(lab.Running, lab.T("is dead"))
			close(crashed)
		})
	})
	t.Go(lab.T("job 2"), func(ctx context.Context, me *lab.Lane) error {
		<-begun
		return job(1, ctx, me, func() {
			<-third // it works until two work again
			me.Work(term / 4)
		})
	})
	t.Go(lab.T("job 3"), func(ctx context.Context, me *lab.Lane) error {
		<-crashed
		return job(2, ctx, me, func() {
			back = time.Now()
			close(third)
			me.Work(term / 4)
		})
	})
	t.Wait()
	l.Check(back.Sub(crash) > term/4, lab.T("the permit of the crashed job is kept until its lease ends"))
	l.Observe("back", back.Sub(crash))
	most.Store(max(most.Load(), in.most.Load()))
}
