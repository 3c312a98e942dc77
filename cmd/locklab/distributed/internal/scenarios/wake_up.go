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
	Topic:    lab.T("Waiting"),
	Title:    lab.T("To poll, or to be notified"),
	Question: lab.T(`How does a waiting process learn that the lock is free?`),
	Claim: lab.T(`A key notifies nobody. The simple recipe asks again after a pause. With a short pause the waiters
together send many useless commands. With a long pause the lock stays idle after its release.

The alternative is a subscription. The releasing process publishes a message, and the waiters ask when
it arrives. A message may be lost. Therefore the waiters also ask from time to time, but seldom.`),
	Look: lab.T(`In both pictures several processes wait for a holder that takes its time. The bars count the commands
that the server received until the last process has had the lock.`),
	Found: lab.T(`{{n .waiters}} processes that asked every {{n .pause}} sent {{n .polling}} commands until all of
them had had the lock, in {{n .pollingTook}}. Processes with a subscription sent {{n .pubsub}}, in {{n .pubsubTook}}.
While the lock was held, for {{n .held}}, it was {{n .pollingHeld}} against {{n .pubsubHeld}}.`),
	Take: lab.T("The locks of `redislock` subscribe. Waiters inside one process are in a local queue, and only " +
		"one of them sends requests to the server. Poll only if there is no message to wait for, with " +
		"random pauses that grow."),
	Java: `while (!tryLock(key, token)) Thread.sleep(pause);    // asks
RLock lock = redisson.getLock(key);
lock.lock();                                         // subscribes`,
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
	polling := crowd(l, lab.T("Polling"), lab.T("Every waiter asks every %s.").With(lab.Duration(pause)),
		waiters, held, least,
		func(_ *lab.Timeline, p *process, who string) (lock, unlock func(ctx context.Context) error) {
			return func(ctx context.Context) error { return poll(ctx, p.Client, "lock", who, lease, pause) },
				func(ctx context.Context) error { _, err := unlockOwn(ctx, p.Client, "lock", who); return err }
		})
	pubsub := crowd(l, lab.T("Being notified"), lab.T("Every waiter has subscribed, and asks when a message comes."),
		waiters, polling.held, 0,
		func(t *lab.Timeline, p *process, _ string) (lock, unlock func(ctx context.Context) error) {
			w := p.locks.Mutex("lock")
			return func(ctx context.Context) error { return subscribed(ctx, w) }, w.UnlockContext
		})
	l.Equal([2]int{0, 0}, [2]int{polling.overlaps, pubsub.overlaps}, lab.T("no two have the lock at a time"))
	l.Check(pubsub.all < polling.all, lab.T("processes with a subscription send fewer commands than processes that poll"))
	l.Check(pubsub.meanwhile < polling.meanwhile, lab.T("while the lock is held, too"))
	l.Chart(lab.Chart{Title: lab.T("Commands at the server"), Desc: lab.T("The commands that arrived while the lock was " +
		"held, and until all had had it."), Bars: true,
		X: lab.Axis{Ticks: []lab.Text{lab.T("polling, while held"), lab.T("notified, while held"), lab.T("polling, in all"),
			lab.T("notified, in all")}}, Y: lab.Axis{Label: lab.T("commands")},
		Series: []lab.Series{{Name: lab.T("commands"), Points: []lab.Point{{X: 0, Y: float64(polling.meanwhile)},
			{X: 1, Y: float64(pubsub.meanwhile)},
			{X: 2, Y: float64(polling.all)}, {X: 3, Y: float64(pubsub.all)}}}}})
	for key, value := range map[string]any{"waiters": waiters, "pause": pause, "polling": polling.all,
		"pollingHeld": polling.meanwhile, "pollingTook": polling.took,
		"pubsub": pubsub.all, "pubsubHeld": pubsub.meanwhile, "pubsubTook": pubsub.took, "held": polling.held} {
		l.Observe(key, value)
	}
	return nil
}

// wait is what came of a crowd.
type wait struct {
	all, meanwhile int           // commands: all, and those while the lock was held
	held, took     time.Duration // for how long it was held, and how long it took then until all had had it
	overlaps       int
}

// crowd has waiters wait for a lock that is held for some time, and until at least so many
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
		name := lab.T("waiter %d").With(i)
		if i == 0 {
			name = lab.T("holder")
		}
		p := s.process(l, time.Minute)
		processes = append(processes, p)
		lock, unlock := kind(t, p, name.EN)
		t.Go(name, func(ctx context.Context, me *lab.Lane) error {
			if i > 0 {
				<-has
			}
			var err error
			me.Is(lab.Waiting, lab.T("waits for lock"), func() { err = lock(ctx) })
			if err != nil {
				return err
			}
			me.Set(lab.Exclusive, lab.T("has lock"))
			last.Lock()
			if in++; in > 1 {
				w.overlaps++
			}
			last.Unlock()
			if i == 0 {
				began, start := s.commands.Load(), time.Now()
				close(has)
				me.Work(held)
				l.Until(lab.T("enough has been asked"), func() bool { return s.commands.Load()-began >= least })
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
			me.Set(lab.Running, lab.T("works"))
			me.Work(held / 50)
			return err
		})
	}
	t.Wait()
	w.all = int(s.commands.Load())
	return w
}
