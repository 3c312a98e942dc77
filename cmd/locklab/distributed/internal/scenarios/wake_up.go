package scenarios

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
)

var _ = register(lab.Scenario{
	Lesson:   50,
	Name:     "wake-up",
	Topic:    lab.T("Waiting", "等待"),
	Title:    lab.T("To poll, or to be notified", "轮询，还是等待通知"),
	Question: lab.T(`How does a waiting process learn that the lock is free?`, "等待的进程怎样得知锁已空闲？"),
	Claim: lab.T(`A key notifies nobody. The simple recipe asks again after a pause. With a short pause the waiters
together send many useless commands. With a long pause the lock stays idle after its release.

The alternative is a subscription. The releasing process publishes a message, and the waiters ask when
it arrives. A message may be lost. Therefore the waiters also ask from time to time, but seldom.`,
		`键不会通知任何人。简单的做法是停一会儿再申请。停顿短，等待者合起来会发出许多无用的命令；停顿长，
锁在释放之后会一直闲置。

另一种办法是订阅。释放锁的进程发布一条消息，等待者收到后再申请。消息可能丢失，所以等待者也会不时
申请，但很少。`),
	Look: lab.T(`In both pictures several processes wait for a holder that takes its time. The bars count the commands
that the server received until the last process has had the lock.`,
		`两幅图中，都有几个进程在等待一个动作很慢的持有者。条形图统计直到最后一个进程得到锁为止，服务器收
到的命令数。`),
	Found: lab.T(`{{n .waiters}} processes that asked every {{n .pause}} sent {{n .polling}} commands until all of
them had had the lock, in {{n .pollingTook}}. Processes with a subscription sent {{n .pubsub}}, in {{n .pubsubTook}}.
While the lock was held, for {{n .held}}, it was {{n .pollingHeld}} against {{n .pubsubHeld}}.`,
		`{{n .waiters}} 个进程每隔 {{n .pause}} 申请一次，到全部得到过锁为止，共发出 {{n .polling}} 条命
令，用时 {{n .pollingTook}}。订阅的进程共发出 {{n .pubsub}} 条，用时 {{n .pubsubTook}}。锁被持有
的 {{n .held}} 之内，两者分别是 {{n .pollingHeld}} 条和 {{n .pubsubHeld}} 条。`),
	Take: lab.T("The locks of `redislock` subscribe. Waiters inside one process are in a local queue, and only "+
		"one of them sends requests to the server. Poll only if there is no message to wait for, with "+
		"random pauses that grow.",
		"`redislock` 的锁使用订阅。同一进程内的等待者排在本地队列中，只有一个向服务器发请求。没有消息可等"+
			"时才轮询，停顿要随机，并逐次加长。"),
	Java: lab.Same(`while (!tryLock(key, token)) Thread.sleep(pause);    // %s
RLock lock = redisson.getLock(key);
lock.lock();                                         // %s`).With(lab.T("asks",
		"反复申请"), lab.T("subscribes", "订阅")),
	Run: wakeUp,
})

//lab:show

// poll asks until it has the lock.
func poll(ctx context.Context, r *redis.Client, key, token string, lease, pause time.Duration) error {
	for {
		ok, err := lockInOne(ctx, r, key, token, lease)
		if ok || err != nil {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// subscribed waits for the message of a release.
func subscribed(ctx context.Context, l locks.Locker) error { return l.LockContext(ctx) }

//lab:end

func wakeUp(_ context.Context, l *lab.Lab) error {
	const waiters, pause = 4, 2 * time.Millisecond
	const least = 50 * waiters // commands that have to arrive, however slow the machine is
	held := lab.Pick(l, 250*time.Millisecond, time.Second)
	const lease = time.Minute
	polling := crowd(l, lab.T("Polling", "轮询"), lab.T("Every waiter asks every %s.",
		"每个等待者每隔 %s 申请一次。").With(lab.Duration(pause)),
		waiters, held, least,
		func(_ *lab.Timeline, p *process, who string) (lock, unlock func(ctx context.Context) error) {
			return func(ctx context.Context) error { return poll(ctx, p.Client, "lock", who, lease, pause) },
				func(ctx context.Context) error { _, err := unlockOwn(ctx, p.Client, "lock", who); return err }
		})
	pubsub := crowd(l, lab.T("Being notified",
		"等待通知"), lab.T("Every waiter has subscribed, and asks when a message comes.",
		"每个等待者都已订阅，收到消息时再申请。"),
		waiters, polling.held, 0,
		func(t *lab.Timeline, p *process, _ string) (lock, unlock func(ctx context.Context) error) {
			w := p.locks.Mutex("lock")
			return func(ctx context.Context) error { return subscribed(ctx, w) }, w.UnlockContext
		})
	l.Equal([2]int{0, 0}, [2]int{polling.overlaps, pubsub.overlaps}, lab.T("no two have the lock at a time",
		"没有两个进程同时持有锁"))
	l.Check(pubsub.all < polling.all,
		lab.T("processes with a subscription send fewer commands than processes that poll",
			"订阅的进程发出的命令少于轮询的进程"))
	l.Check(pubsub.meanwhile < polling.meanwhile, lab.T("while the lock is held, too", "锁被持有期间也是如此"))
	l.Chart(lab.Chart{Title: lab.T("Commands at the server",
		"服务器收到的命令"), Desc: lab.T("The commands that arrived while the lock was "+
		"held, and until all had had it.",
		"锁被持有期间收到的命令，以及到全部得到过锁为止收到的命令。"), Bars: true,
		X: lab.Axis{Ticks: []lab.Text{lab.T("polling, while held", "轮询，持有期间"), lab.T("notified, while held",
			"通知，持有期间"), lab.T("polling, in all",
			"轮询，总计"),
			lab.T("notified, in all", "通知，总计")}}, Y: lab.Axis{Label: lab.T("commands", "命令数")},
		Series: []lab.Series{{Name: lab.T("commands",
			"命令数"), Points: []lab.Point{{X: 0, Y: float64(polling.meanwhile)},
			{X: 1, Y: float64(pubsub.meanwhile)},
			{X: 2, Y: float64(polling.all)}, {X: 3, Y: float64(pubsub.all)}}}}})
	for key, value := range map[string]any{"waiters": waiters, "pause": pause, "polling": polling.all,
		"pollingHeld": polling.meanwhile, "pollingTook": polling.took,
		"pubsub": pubsub.all, "pubsubHeld": pubsub.meanwhile, "pubsubTook": pubsub.took, "held": polling.held} {
		l.Observe(key, value)
	}
	return nil
}

// wait is the result of a crowd.
type wait struct {
	all, meanwhile int           // all commands, and the commands while the lock was held
	held, took     time.Duration // for how long it was held, and how long it took then until all had had it
	overlaps       int
}

// crowd makes waiters wait for a lock that is held for some time, and until at least so many
// commands have arrived.
func crowd(l *lab.Lab, title, desc lab.Text, waiters int, held time.Duration, least int64,
	kind func(*lab.Timeline, *process, string) (lock, unlock func(context.Context) error)) (w wait) {
	s := newServer(l)
	t := l.Timeline(title, desc)
	var processes []*process
	defer func() { s.end(processes...) }()
	has := make(chan struct{})
	var released time.Time
	var last sync.Mutex // guards w and in
	in := 0
	for i := range waiters + 1 {
		name := lab.T("waiter %d", "等待者 %d").With(i)
		if i == 0 {
			name = lab.T("holder", "持有者")
		}
		p := s.process(l, time.Minute)
		processes = append(processes, p)
		lock, unlock := kind(t, p, name.EN)
		t.Go(name, func(ctx context.Context, me *lab.Lane) error {
			if i > 0 {
				<-has
			}
			var err error
			me.Is(lab.Waiting, lab.T("waits for lock", "等待锁"), func() { err = lock(ctx) })
			if err != nil {
				return err
			}
			me.Set(lab.Exclusive, lab.T("has lock", "持有锁"))
			last.Lock()
			if in++; in > 1 {
				w.overlaps++
			}
			last.Unlock()
			if i == 0 {
				began, start := s.commands.Load(), time.Now()
				close(has)
				me.Work(held)
				l.Until(lab.T("enough has been asked",
					"申请的次数已足够"), func() bool { return s.commands.Load()-began >= least })
				w.meanwhile, w.held = int(s.commands.Load()-began), time.Since(start)
				released = time.Now()
			} else {
				me.Work(held / 50)
			}
			last.Lock()
			in--
			w.took = max(w.took, time.Since(released))
			last.Unlock()
			err = unlock(ctx)
			me.Set(lab.Running, lab.T("works", "运行"))
			me.Work(held / 50)
			return err
		})
	}
	t.Wait()
	w.all = int(s.commands.Load())
	return w
}
