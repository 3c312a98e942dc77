package scenarios

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/reentrant"
)

var _ = register(lab.Scenario{
	Lesson: 35,
	Name:   "giving-up",
	Topic:  lab.T("Holding", "持有"),
	Title:  lab.T(`Cancelling a wait`, "取消等待"),
	Question: lab.T(`Can a waiter cancel its wait, and which waiter gets the lock then?`,
		"等待者能取消等待吗？取消之后，锁归哪个等待者？"),
	Claim: lab.T("A waiter for Java's built-in monitor, or for a `sync.Mutex`, waits until it gets the lock. A "+
		"wait for an interruptible lock can be cancelled: the waiter leaves the queue, and the waiters "+
		"behind it move up.\n\n"+
		"Two things may go wrong. A cancelled waiter may stay in the queue; then a release hands it the "+
		"lock, which is never released again. And a release may hand off the lock at the moment of the "+
		"cancellation, so that the lock is lost.",
		"等待 Java 内置监视器或 `sync.Mutex` 的线程，只能一直等到得到锁。可中断的锁则允许取消等待：等"+
			"待者离开队列，后面的等待者依次前移。\n\n"+
			"这里可能出两种错。被取消的等待者可能仍留在队列里，释放时锁移交给它，从此再也没有人释放。另外，"+
			"锁可能恰好在取消的瞬间移交出去，于是丢失。"),
	Look: lab.T(`Three goroutines wait behind the holder. The first wait has a time limit, the second is cancelled, and
the third has no limit. The first two waiters leave the queue at once. The third one gets the lock when
the holder releases it.`,
		`三个 goroutine 排在持有者后面等待：第一个有时限，第二个被取消，第三个没有时限。前两个等待者立即
离开队列；持有者释放后，第三个得到锁。`),
	Found: lab.T(`The queue had {{.queued}} waiters, then {{.afterFirst}}, then {{.afterSecond}}. In {{n .rounds}}
rounds in which a lock was released and a wait for it cancelled at the same moment, the waiter got the lock
{{times .got}}, and was cancelled {{times .gaveUp}}. Never both, never neither.`,
		`队列中先有 {{.queued}} 个等待者，然后是 {{.afterFirst}} 个，再是 {{.afterSecond}} 个。在 {{n .rounds}}
轮试验中，释放锁与取消等待同时发生：等待者得到锁 {{times .got}}，被取消 {{times .gaveUp}}。从未
两者都发生，也从未两者都不发生。`),
	Take: lab.T("If a request depends on a wait, wait with the request's context. Use plain `Lock` only for "+
		"sections that are certainly short.",
		"如果一个请求依赖于某次等待，就用该请求的 context 去等待。只有临界区确实很短时，才直接用 `Lock`。"),
	Java: lab.Same(`lock.lockInterruptibly();                // InterruptedException
lock.tryLock(50, MILLISECONDS);          // false`),
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
	t := l.Timeline(lab.T("Three waiters",
		"三个等待者"), lab.T("One wait ends by its time limit, one is cancelled, and one waiter gets the lock.",
		"一次等待因时限结束，一次被取消，还有一个等待者得到锁。"))
	mu := reentrant.New(locks.FIFO)
	watched := t.Wrap(lab.T("lock", "锁"), mu)
	cancelled, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	gone := make(chan struct{}, 2)
	t.Go(lab.T("holder", "持有者"), func(ctx context.Context, me *lab.Lane) error {
		err := locks.Do(ctx, watched, func(context.Context) error {
			most := 0
			l.Until(lab.T("one of the waits has ended", "其中一次等待已结束"), func() bool {
				most = max(most, mu.QueueLength())
				return len(gone) > 0
			})
			l.Observe("queued", most)
			<-gone
			l.Equal(2, mu.QueueLength(), lab.T("a cancelled waiter is out of the queue when its call returns",
				"被取消的等待者在调用返回时已离开队列"))
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
	l.Until(lab.T("it is held", "锁被持有"), mu.IsLocked)
	var first, second error
	t.Go(lab.T("cancelled", "被取消者"), func(_ context.Context, me *lab.Lane) error {
		second = impatient(cancelled, watched, func() {})
		gone <- struct{}{}
		me.Work(time.Millisecond)
		return nil
	})
	l.Until(lab.T("it queues", "它已排队"), func() bool { return mu.QueueLength() == 1 })
	t.Go(lab.T("patient", "耐心者"), func(ctx context.Context, me *lab.Lane) error {
		return impatient(ctx, watched, func() { me.Work(3 * time.Millisecond) })
	})
	l.Until(lab.T("it queues", "它已排队"), func() bool { return mu.QueueLength() == 2 })
	t.Go(lab.T("limited", "限时者"), func(ctx context.Context, me *lab.Lane) error {
		limited, cancel := context.WithTimeout(ctx, 6*time.Millisecond)
		defer cancel()
		first = impatient(limited, watched, func() {})
		gone <- struct{}{}
		me.Work(time.Millisecond)
		return nil
	})
	t.Wait()
	l.Is(context.DeadlineExceeded, first, lab.T("a wait with a limit ends by it", "有时限的等待到时就结束"))
	l.Is(context.Canceled, second, lab.T("a wait that is cancelled ends", "被取消的等待会结束"))
	l.Is(errNotWanted, second, lab.T("its error tells the cause", "返回的错误说明原因"))
	l.Check(!mu.IsLocked() && !mu.HasQueued(), lab.T("no cancelled waiter is handed the lock later",
		"锁不会在之后移交给被取消的等待者"))
	l.Is(context.Canceled, mu.LockContext(cancelled), lab.T("a context that has ended does not take even a free lock",
		"context 已结束时，即使锁空闲也不会获取"))
	atOnce(ctx, l)
	return nil
}

// atOnce releases a lock and cancels the wait for it at the same moment, many times.
func atOnce(ctx context.Context, l *lab.Lab) {
	mu := reentrant.New(locks.FIFO)
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
		l.Until(lab.T("it queues", "它已排队"), mu.HasQueued)
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
			l.Is(context.Canceled, err, lab.T("a waiter that does not get the lock gets the reason",
				"没有得到锁的等待者会得到原因"))
		}
		l.Check(!mu.IsLocked() && !mu.HasQueued(),
			lab.T("a lock that is released while its waiter is cancelled is never lost",
				"在取消等待者的同时释放锁，锁也不会丢失"))
	}
	l.Observe("rounds", rounds)
	l.Observe("got", got)
	l.Observe("gaveUp", gaveUp)
}
