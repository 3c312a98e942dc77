package scenarios

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
)

var _ = register(lab.Scenario{
	Lesson:   35,
	Name:     "giving-up",
	Topic:    "Holding",
	Title:    `Cancelling a wait`,
	Question: `Can a waiter cancel its wait, and which waiter gets the lock then?`,
	Claim: "A waiter for Java's built-in monitor, or for a `sync.Mutex`, waits until it gets the lock. A " +
		"wait for an interruptible lock can be cancelled: the waiter leaves the queue, and the waiters " +
		"behind it move up.\n\n" +
		"Two things may go wrong. A cancelled waiter may stay in the queue; then a release hands it the " +
		"lock, which is never released again. And a release may hand off the lock at the moment of the " +
		"cancellation, so that the lock is lost.",
	Look: `Three goroutines wait behind the holder. The first wait has a time limit, the second is cancelled, and
the third has no limit. The first two waiters leave the queue at once. The third one gets the lock when
the holder releases it.`,
	Found: `The queue had {{.queued}} waiters, then {{.afterFirst}}, then {{.afterSecond}}. In {{n .rounds}}
rounds in which a lock was released and a wait for it cancelled at the same moment, the waiter got the lock
{{times .got}}, and was cancelled {{times .gaveUp}}. Never both, never neither.`,
	Take: "If a request depends on a wait, wait with the request's context. Use plain `Lock` only for " +
		"sections that are certainly short.",
	Java: `lock.lockInterruptibly();                // InterruptedException
lock.tryLock(50, MILLISECONDS);          // false`,
	Run: givingUp,
})

//lab:show

// impatient waits for the lock as long as ctx allows. The error is the reason if it failed.
func impatient(ctx context.Context, l locks.Locker, work func()) error {
	err := locks.Do(ctx, l, func(context.Context) error {
		work()
		return nil
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded): // too late
	case errors.Is(err, context.Canceled): // not wanted any more; context.Cause(ctx) matches, too
	}
	return err
}

//lab:end

var errNotWanted = errors.New("not wanted any more")

func givingUp(ctx context.Context, l *lab.Lab) error {
	t := l.Timeline("Three waiters", "One wait ends by its time limit, one is cancelled, and one waiter gets the lock.")
	mu := reentrant.New(fair.FIFO)
	watched := t.Wrap("lock", mu)
	cancelled, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	gone := make(chan struct{}, 2)
	t.Go("holder", func(ctx context.Context, me *lab.Lane) error {
		err := locks.Do(ctx, watched, func(context.Context) error {
			most := 0
			l.Until("one of the waits has ended", func() bool {
				most = max(most, mu.QueueLength())
				return len(gone) > 0
			})
			l.Observe("queued", most)
			<-gone
			l.Equal(2, mu.QueueLength(), "a cancelled waiter is out of the queue when its call returns")
			l.Observe("afterFirst", mu.QueueLength())
			me.Work(2 * time.Millisecond)
			cancel(errNotWanted)
			<-gone
			l.Observe("afterSecond", mu.QueueLength())
			me.Work(2 * time.Millisecond)
			return nil
		})
		me.Work(time.Millisecond)
		return err
	})
	l.Until("it is held", mu.IsLocked)
	var first, second error
	t.Go("cancelled", func(_ context.Context, me *lab.Lane) error {
		second = impatient(cancelled, watched, func() {})
		gone <- struct{}{}
		me.Work(time.Millisecond)
		return nil
	})
	l.Until("it queues", func() bool { return mu.QueueLength() == 1 })
	t.Go("patient", func(ctx context.Context, me *lab.Lane) error {
		return impatient(ctx, watched, func() { me.Work(3 * time.Millisecond) })
	})
	l.Until("it queues", func() bool { return mu.QueueLength() == 2 })
	t.Go("limited", func(ctx context.Context, me *lab.Lane) error {
		limited, cancel := context.WithTimeout(ctx, 6*time.Millisecond)
		defer cancel()
		first = impatient(limited, watched, func() {})
		gone <- struct{}{}
		me.Work(time.Millisecond)
		return nil
	})
	t.Wait()
	l.Is(context.DeadlineExceeded, first, "a wait with a limit ends by it")
	l.Is(context.Canceled, second, "a wait that is cancelled ends")
	l.Is(errNotWanted, second, "its error tells the cause")
	l.Check(!mu.IsLocked() && !mu.HasQueued(), "no cancelled waiter is handed the lock later")
	l.Is(context.Canceled, mu.LockContext(cancelled), "a context that has ended does not take even a free lock")
	atOnce(ctx, l)
	return nil
}

// atOnce releases a lock and cancels the wait for it at the same moment, many times.
func atOnce(ctx context.Context, l *lab.Lab) {
	mu := reentrant.New(fair.FIFO)
	rounds := lab.Pick(l, 200, 2_000)
	got, gaveUp := 0, 0
	for range rounds {
		mu.Lock()
		wait, cancel := context.WithCancel(ctx)
		var both sync.WaitGroup
		var err error
		both.Go(func() {
			if err = mu.LockContext(wait); err == nil {
				mu.Unlock()
			}
		})
		l.Until("it queues", mu.HasQueued)
		switch l.Rand.IntN(3) { // a hair's breadth earlier, later, or in another goroutine
		case 0:
			cancel()
			for range l.Rand.IntN(3) {
				runtime.Gosched()
			}
			mu.Unlock()
		case 1:
			mu.Unlock()
			cancel()
		default:
			both.Go(cancel)
			mu.Unlock()
		}
		both.Wait()
		cancel()
		if err == nil {
			got++
		} else {
			gaveUp++
			l.Is(context.Canceled, err, "a waiter that does not get the lock gets the reason")
		}
		l.Check(!mu.IsLocked() && !mu.HasQueued(),
			"a lock that is released while its waiter is cancelled is never lost")
	}
	l.Observe("rounds", rounds)
	l.Observe("got", got)
	l.Observe("gaveUp", gaveUp)
}
