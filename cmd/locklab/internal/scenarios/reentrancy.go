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
	Lesson: 20,
	Name:   "reentrancy",
	Topic:  lab.T("Holding", "持有"),
	Title:  lab.T("Re-entry and hold counts", "重入与持有次数"),
	Question: lab.T(`What if code that holds a lock calls code that acquires it?`,
		"持有锁的代码调用了还要获取同一把锁的代码，会怎样？"),
	Claim: lab.T("A reentrant lock knows its owner and counts holds. Each further lock by the owner adds a hold, "+
		"and each unlock removes one. The lock is free when no hold is left. No other goroutine can "+
		"release it.\n\n"+
		"A lock without an owner, such as `sync.Mutex` or `fair.Mutex`, cannot tell its holder from other "+
		"goroutines. A goroutine that locks it twice waits for itself for ever.",
		"可重入锁知道自己的所有者，并记录持有次数。所有者每再加锁一次，次数加一；每解锁一次，次数减一。"+
			"次数归零，锁才空闲。其他 goroutine 不能释放它。\n\n"+
			"没有所有者的锁（例如 `sync.Mutex` 或 `fair.Mutex`）分不清持有者和其他 goroutine。同一个 goroutine "+
			"对它加锁两次，就会永远等待自己。"),
	Look: lab.T(`The waiter gets the lock only after the last unlock of the holder, not after the first. The table has
the counts at each step.`, `等待者要等持有者最后一次解锁后才得到锁，而不是第一次。表格列出每一步的次数。`),
	Found: lab.T(`The owner had up to {{.most}} holds, and the other goroutine got the lock after {{n .waited}},
when the last was released. The holder of the lock without an owner asked twice, with a time limit: the
second wait ended after {{n .gaveUp}}.`,
		`所有者最多持有 {{.most}} 次；另一个 goroutine 等了 {{n .waited}}，在最后一次持有被释放时得到锁。
没有所有者的锁，其持有者在限时内再次申请：第二次等待在 {{n .gaveUp}} 后结束。`),
	Take: lab.T("If you can, acquire the lock once at the edge, and call unexported functions that assume it. If "+
		"you cannot, as with callbacks or recursive structures, use `reentrant.Mutex`. It does what "+
		"Java's lock does, and detects an unlock by a goroutine that is not the owner.",
		"如果可以，只在入口处加锁一次，内部调用假定已经持有锁的未导出函数。如果做不到（例如回调或递归"+
			"结构），就用 `reentrant.Mutex`：它的行为与 Java 的锁相同，并能发现由非所有者的 goroutine 执"+
			"行的解锁。"),
	Java: lab.Same(`ReentrantLock lock = new ReentrantLock();
lock.lock();
lock.lock();                    // getHoldCount() == 2
lock.unlock();
lock.unlock();                  // %s
lock.unlock();                  // IllegalMonitorStateException`).With(lab.T("free now", "已空闲")),
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
	t := l.Timeline(lab.T("One owner, three holds", "一个所有者，三次持有"),
		lab.T("The owner acquires the lock three times and releases it three times. The other goroutine waits "+
			"until the last unlock.", "所有者加锁三次、释放三次。另一个 goroutine 一直等到最后一次解锁。"))
	mu := reentrant.New(locks.FIFO)
	watched := t.Wrap(lab.T("lock", "锁"), mu)
	table := lab.Table{Title: lab.T("Step by step", "逐步观察"), Head: []lab.Text{lab.T("the owner calls",
		"所有者调用"), lab.T("HoldCount()",
		"HoldCount()"), lab.T("IsLocked()",
		"IsLocked()"),
		lab.T("another goroutine's TryLock()", "其他 goroutine 的 TryLock()")}}
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
		table.Rows = append(table.Rows, []lab.Text{lab.Same(step), lab.Same(strconv.Itoa(mu.HoldCount())),
			lab.Same(fmt.Sprint(mu.IsLocked())), lab.Same(fmt.Sprint(others()))})
	})
	l.Equal([]int{1, 2, 3, 2, 1, 0}, counts, lab.T("every lock adds a hold, every unlock takes one off",
		"每次加锁使持有次数加一，每次解锁使其减一"))
	l.Equal("[false false false false false true]", func() string {
		var tries []string
		for _, row := range table.Rows {
			tries = append(tries, row[3].EN)
		}
		return fmt.Sprint(tries)
	}(), lab.T("others get the lock only after the last unlock", "最后一次解锁之后，其他 goroutine 才能得到锁"))
	l.Table(table)

	var waited time.Duration
	ready := make(chan struct{})
	t.Go(lab.T("owner", "所有者"), func(ctx context.Context, me *lab.Lane) error {
		for i := range depth {
			if err := watched.LockContext(ctx); err != nil {
				return err
			}
			me.Mark(lab.T("hold %d", "第 %d 次持有"), mu.HoldCount())
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
			me.Mark(lab.T("%d left", "还剩 %d 次"), mu.HoldCount())
		}
		me.Work(2 * time.Millisecond)
		return nil
	})
	t.Go(lab.T("other", "另一个"), func(ctx context.Context, me *lab.Lane) error {
		<-ready
		me.Work(time.Millisecond)
		l.Is(locks.ErrNotHeld, watched.UnlockContext(ctx), lab.T("an unlock by another goroutine is refused, and "+
			"changes nothing", "其他 goroutine 的解锁被拒绝，什么也不改变"))
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
	l.Check(!plain.TryLockFor(5*time.Millisecond), lab.T("the holder of a lock without an owner waits for itself",
		"没有所有者的锁，其持有者会等待自己"))
	l.Observe("gaveUp", time.Since(start))
	plain.Unlock()
	l.Observe("most", depth)
	l.Observe("waited", waited)
	return nil
}
