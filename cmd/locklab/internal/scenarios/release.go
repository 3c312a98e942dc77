package scenarios

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/reentrant"
)

var _ = register(lab.Scenario{
	Lesson: 30,
	Name:   "release",
	Topic:  lab.T("Holding", "持有"),
	Title:  lab.T("Released on every way out", "无论怎样退出都会释放"),
	Question: lab.T(`Is the lock free again, however the section ends?`,
		"无论临界区怎样结束，锁都会再次空闲吗？"),
	Claim: lab.T("Java's synchronized block cannot forget to unlock: the compiler makes two exits for it, one for "+
		"the normal end and one for exceptions. An explicit lock needs a finally block. A missing one "+
		"shows at the first exception.\n\n"+
		"A Go function can end in three ways: it returns, it panics, or it ends its goroutine by "+
		"`runtime.Goexit`, as a failed test does. Only deferred calls run in all three cases.",
		"Java 的 synchronized 块不会忘记解锁：编译器为它生成两个出口，一个用于正常结束，一个用于异常。"+
			"显式锁则需要 finally 块；如果漏写，第一次出现异常时就会暴露。\n\n"+
			"Go 的函数有三种结束方式：返回、panic，或者用 `runtime.Goexit` 结束所在的 goroutine（失败的测"+
			"试就是这样）。只有 defer 的调用在三种情况下都会执行。"),
	Look: lab.T(`Each goroutine ends its section in another way, and the next one gets the lock at once. In the last
picture there is no deferred unlock. After the panic the lock stays held, and the wait of the next
goroutine is cancelled in the end.`,
		`每个 goroutine 以不同方式结束临界区，下一个都能立刻得到锁。最后一幅图中没有 defer 的解锁：panic
之后锁一直被占用，下一个 goroutine 的等待最后被取消。`),
	Found: lab.T(`The lock was free after each of the {{.ways}} ways out. Without a deferred unlock it was not:
the wait of the next goroutine ended after {{n .gaveUp}}.`,
		`以 {{.ways}} 种方式退出之后，锁都是空闲的。没有 defer 解锁时则不然：下一个 goroutine 的等待在 {{n .gaveUp}}
后结束。`),
	Take: lab.T("Use `locks.Do`, or `defer mu.Unlock()` on the line after the lock. `Do` also joins the error of "+
		"the release to that of the function. For a distributed lock this error matters.",
		"请用 `locks.Do`，或者在加锁的下一行写 `defer mu.Unlock()`。`Do` 还会把释放时的错误与函数的错"+
			"误合在一起返回；对分布式锁来说，这个错误很重要。"),
	Java: lab.Same(`lock.lock();
try {
    work();
} finally {
    lock.unlock();
}`),
	Run: release,
})

//lab:show

// section runs work with the lock, and releases the lock however work ends.
func section(ctx context.Context, l locks.Locker, work func() error) error {
	return locks.Do(ctx, l, func(context.Context) error { return work() })
}

// forgetful releases the lock only if work returns.
func forgetful(ctx context.Context, l locks.Locker, work func() error) error {
	if err := l.LockContext(ctx); err != nil {
		return err
	}
	err := work()
	return errors.Join(err, l.UnlockContext(ctx))
}

//lab:end

var errNoLuck = errors.New("no luck")

func release(ctx context.Context, l *lab.Lab) error {
	ways := []struct {
		name, after lab.Text
		work        func() error
	}{
		{lab.T("returns nil", "返回 nil"), lab.T("after it returns nil, the lock is not the goroutine's any more",
			"返回 nil 之后，goroutine 不再持有锁"),
			func() error { return nil }},
		{lab.T("returns an error",
			"返回错误"), lab.T("after it returns an error, the lock is not the goroutine's any more",
			"返回错误之后，goroutine 不再持有锁"),
			func() error { return errNoLuck }},
		{lab.T("panics", "发生 panic"), lab.T("after it panics, the lock is not the goroutine's any more",
			"发生 panic 之后，goroutine 不再持有锁"),
			func() error { panic(errNoLuck) }},
		{lab.T("calls Goexit",
			"调用 Goexit"), lab.T("after it called Goexit, the lock is not the goroutine's any more",
			"调用 Goexit 之后，goroutine 不再持有锁"),
			func() error { runtime.Goexit(); return nil }},
	}
	t := l.Timeline(lab.T("With locks.Do",
		"使用 locks.Do"), lab.T("Four goroutines leave the section in four ways, one after the other.",
		"四个 goroutine 依次以四种方式离开临界区。"))
	mu := new(reentrant.Mutex)
	watched := t.Wrap(lab.T("lock", "锁"), mu)
	for i, way := range ways {
		t.Go(way.name, func(ctx context.Context, me *lab.Lane) error {
			defer me.Work(time.Millisecond)
			me.Work(time.Duration(i) * time.Millisecond)
			defer func() {
				if p := recover(); p != nil {
					l.Equal(any(errNoLuck), p, lab.T("a panic continues after the release, unchanged",
						"锁释放之后，panic 原样继续传播"))
				}
				l.Check(!mu.IsHeld(), way.after)
			}()
			err := section(ctx, watched, func() error {
				me.Work(2 * time.Millisecond)
				me.Mark(way.name)
				return way.work()
			})
			if errors.Is(err, errNoLuck) {
				return nil
			}
			return err
		})
	}
	t.Wait()
	l.Check(!mu.IsLocked(), lab.T("in the end the lock is free", "最后锁是空闲的"))

	t = l.Timeline(lab.T("Without a deferred unlock",
		"没有 defer 解锁"), lab.T("A panic leaves the lock behind, and the next goroutine "+
		"waits in vain.", "panic 之后锁没有释放，下一个 goroutine 白白等待。"))
	mu = new(reentrant.Mutex)
	watched = t.Wrap(lab.T("lock", "锁"), mu)
	panicked := make(chan struct{})
	var gaveUp time.Duration
	t.Go(lab.T("panics", "发生 panic"), func(ctx context.Context, me *lab.Lane) error {
		defer me.Work(time.Millisecond)
		defer close(panicked)
		defer func() { _ = recover() }()
		return forgetful(ctx, watched, func() error {
			me.Work(2 * time.Millisecond)
			me.Mark(lab.T("panics", "发生 panic"))
			panic(errNoLuck)
		})
	})
	t.Go(lab.T("next", "下一个"), func(ctx context.Context, me *lab.Lane) error {
		<-panicked
		limited, cancel := context.WithTimeout(ctx, 8*time.Millisecond)
		defer cancel()
		start := time.Now()
		l.Is(context.DeadlineExceeded, watched.LockContext(limited), lab.T("without a deferred unlock, a panic "+
			"leaves the lock taken", "没有 defer 解锁时，panic 之后锁仍被占用"))
		gaveUp = time.Since(start)
		me.Work(time.Millisecond)
		return nil
	})
	t.Wait()
	l.Observe("ways", len(ways))
	l.Observe("gaveUp", gaveUp)
	return nil
}
