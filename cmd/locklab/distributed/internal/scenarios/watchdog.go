package scenarios

import (
	"context"
	"errors"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/distributed/lease"
)

var _ = register(lab.Scenario{
	Lesson:   30,
	Name:     "watchdog",
	Topic:    "Leases",
	Title:    "Renewed while held, and told when lost",
	Question: "How long should the lease be, if nobody knows how long the work takes?",
	Claim: `A short lease ends while its holder is at work, a long one keeps everybody waiting after a crash.
So a watchdog renews it: as long as the process lives and reaches the server, every third of the lease. A
process that dies stops renewing, and its lock is free one lease later at most.

If the server cannot be reached, nothing can be renewed, and some day the server gives the lock to somebody
else. The holder cannot ask whether that has happened. But it knows when it last succeeded, and so until when
the lock is certainly its own. A margin before that moment it has to be told: before anybody else can have
the lock, not after.`,
	Look: "In the first picture the holder works for longer than its lease, and the other waits all the " +
		"same, until it is done. In the second the holder is cut off from the network in the middle of its " +
		"work. Its context is cancelled first, and only then does the other get the lock.",
	Found: `The lease was {{n .lease}}, and the holder kept the lock for {{n .worked}}. When it was cut off,
its context ended {{n .told}} later with the cause "{{.cause}}"; the other had the lock {{n .apart}} after that.`,
	Take: "Do not guess how long the work takes: leave the lease to the watchdog, which is the default. " +
		"Give the context that `locks.Do` hands to your function to everything that it calls, so that the " +
		"work stops when the lock is lost.",
	Java: `RLock lock = redisson.getLock("order");
lock.lock();                       // renewed by the watchdog
lock.lock(10, SECONDS);            // not renewed: ends by itself`,
	Run: watchdog,
})

//lab:show

// work goes on for d, or until the lock is lost.
func work(ctx context.Context, l locks.Locker, d time.Duration) error {
	return locks.Do(ctx, l, func(ctx context.Context) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done(): // locks.ErrLost is the cause if the lock is lost.
			return context.Cause(ctx)
		}
	})
}

//lab:end

func watchdog(_ context.Context, l *lab.Lab) error {
	s := newServer(l)
	term := lab.Pick(l, time.Second, 1500*time.Millisecond)
	// The margin is larger than by default, as the scenario has to hold on a busy machine too.
	margin := lease.WithMargin(term / 4)
	holder, other, third := s.process(l, term, margin), s.process(l, term, margin), s.process(l, term, margin)
	defer s.end(holder, other, third)
	const name = "order"

	t := l.Timeline("Renewed", "The holder works for longer than its lease. The watchdog renews it meanwhile.")
	first, second := t.Wrap("lock", holder.locks.Mutex(name)), t.Wrap("lock", other.locks.Mutex(name))
	var worked time.Duration
	has, done := make(chan struct{}), make(chan time.Time, 1)
	t.Go("holder", func(ctx context.Context, me *lab.Lane) error {
		if err := first.LockContext(ctx); err != nil { // a hold around the one of work
			return err
		}
		began := time.Now()
		close(has)
		err := work(ctx, first, term+term/2)
		worked = time.Since(began)
		done <- time.Now()
		return errors.Join(err, first.UnlockContext(ctx))
	})
	t.Go("other", func(ctx context.Context, me *lab.Lane) error {
		<-has
		return locks.Do(ctx, second, func(context.Context) error {
			l.Check(!time.Now().Before(<-done), "while the watchdog renews, nobody else gets the lock")
			me.Work(term / 10)
			return nil
		})
	})
	t.Wait()
	l.Check(worked > term, "the holder works for longer than its lease")

	t = l.Timeline("Cut off", "The holder cannot renew, and is told of its loss before the other gets the lock.")
	first, second = t.Wrap("lock", holder.locks.Mutex(name)), t.Wrap("lock", third.locks.Mutex(name))
	var cut, told, got time.Time
	waits := make(chan struct{})
	t.Go("holder", func(ctx context.Context, me *lab.Lane) error {
		err := locks.Do(ctx, first, func(lost context.Context) error {
			close(waits)
			me.Work(term / 2)
			cut = time.Now()
			holder.disconnect()
			me.Mark("is cut off")
			<-lost.Done()
			told = time.Now()
			l.Is(locks.ErrLost, context.Cause(lost), "the context of the work ends with locks.ErrLost")
			l.Observe("cause", context.Cause(lost).Error())
			me.Mark("is told of the loss")
			return nil
		})
		me.Work(term / 10)
		l.Is(locks.ErrLost, err, "so does what Do returns")
		return nil
	})
	t.Go("other", func(ctx context.Context, me *lab.Lane) error {
		<-waits
		return locks.Do(ctx, second, func(context.Context) error {
			got = time.Now()
			me.Work(term / 10)
			return nil
		})
	})
	t.Wait()
	l.Check(told.Before(got), "the holder is told before anybody else has the lock")
	l.Observe("lease", term)
	l.Observe("worked", worked)
	l.Observe("told", told.Sub(cut))
	l.Observe("apart", got.Sub(told))
	return nil
}
