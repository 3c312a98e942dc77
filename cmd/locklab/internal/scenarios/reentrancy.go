package scenarios

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
)

var _ = register(lab.Scenario{
	Lesson:   20,
	Name:     "reentrancy",
	Topic:    "Holding",
	Title:    "Re-entry and hold counts",
	Question: `What if code that holds a lock calls code that acquires it?`,
	Claim: "A reentrant lock knows its owner and counts holds. Each further lock by the owner adds a hold, " +
		"and each unlock removes one. The lock is free when no hold is left. No other goroutine can " +
		"release it.\n\n" +
		"A lock without an owner, such as `sync.Mutex` or `fair.Mutex`, cannot tell its holder from other " +
		"goroutines. A goroutine that locks it twice waits for itself for ever.",
	Look: `The waiter gets the lock only after the last unlock of the holder, not after the first. The table has
the counts at each step.`,
	Found: `The owner had up to {{.most}} holds, and the other goroutine got the lock after {{n .waited}},
when the last was released. The holder of the lock without an owner asked twice, with a time limit: the
second wait ended after {{n .gaveUp}}.`,
	Take: "If you can, acquire the lock once at the edge, and call unexported functions that assume it. If " +
		"you cannot, as with callbacks or recursive structures, use `reentrant.Mutex`. It does what " +
		"Java's lock does, and detects an unlock by a goroutine that is not the owner.",
	Java: `ReentrantLock lock = new ReentrantLock();
lock.lock();
lock.lock();                    // getHoldCount() == 2
lock.unlock();
lock.unlock();                  // free now
lock.unlock();                  // IllegalMonitorStateException`,
	Run: reentrancy,
})

//lab:show

// nest locks mu as many times as depth says, and calls look at every level, on the way in and
// out.
func nest(mu *reentrant.Mutex, depth int, look func(step string)) {
	if depth == 0 {
		return
	}
	mu.Lock()
	look("Lock")
	nest(mu, depth-1, look)
	mu.Unlock()
	look("Unlock")
}

//lab:end

func reentrancy(ctx context.Context, l *lab.Lab) error {
	const depth = 3
	t := l.Timeline("One owner, three holds",
		"The owner acquires the lock three times and releases it three times. The other goroutine waits "+
			"until the last unlock.")
	mu := reentrant.New(fair.FIFO)
	watched := t.Wrap("lock", mu)
	table := lab.Table{Title: "Step by step", Head: []string{"the owner calls", "HoldCount()", "IsLocked()",
		"another goroutine's TryLock()"}}
	others := func() bool { // asked by a goroutine that has no hold
		took := make(chan bool)
		go func() {
			ok := mu.TryLock()
			if ok {
				mu.Unlock()
			}
			took <- ok
		}()
		return <-took
	}
	var counts []int
	nest(mu, depth, func(step string) {
		counts = append(counts, mu.HoldCount())
		table.Rows = append(table.Rows, []string{step, strconv.Itoa(mu.HoldCount()),
			fmt.Sprint(mu.IsLocked()), fmt.Sprint(others())})
	})
	l.Equal([]int{1, 2, 3, 2, 1, 0}, counts, "every lock adds a hold, every unlock takes one off")
	l.Equal("[false false false false false true]", func() string {
		var tries []string
		for _, row := range table.Rows {
			tries = append(tries, row[3])
		}
		return fmt.Sprint(tries)
	}(), "others get the lock only after the last unlock")
	l.Table(table)

	var waited time.Duration
	ready := make(chan struct{})
	t.Go("owner", func(ctx context.Context, me *lab.Lane) error {
		for i := range depth {
			if err := watched.LockContext(ctx); err != nil {
				return err
			}
			me.Mark("hold %d", mu.HoldCount())
			if i == 0 {
				close(ready)
			}
			me.Work(2 * time.Millisecond)
		}
		for range depth {
			me.Work(time.Millisecond)
			if err := watched.UnlockContext(ctx); err != nil {
				return err
			}
			me.Mark("%d left", mu.HoldCount())
		}
		me.Work(2 * time.Millisecond)
		return nil
	})
	t.Go("other", func(ctx context.Context, me *lab.Lane) error {
		<-ready
		me.Work(time.Millisecond)
		l.Is(locks.ErrNotHeld, watched.UnlockContext(ctx), "an unlock by another goroutine is refused, and "+
			"changes nothing")
		start := time.Now()
		err := locks.Do(ctx, watched, func(context.Context) error {
			waited = time.Since(start)
			me.Work(2 * time.Millisecond)
			return nil
		})
		return err
	})
	t.Wait()

	var plain fair.Mutex
	plain.Lock()
	start := time.Now()
	l.Check(!plain.TryLockFor(5*time.Millisecond), "the holder of a lock without an owner waits for itself")
	l.Observe("gaveUp", time.Since(start))
	plain.Unlock()
	l.Observe("most", depth)
	l.Observe("waited", waited)
	return nil
}
