package scenarios

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/reentrant"
)

var _ = register(lab.Scenario{
	Lesson:   30,
	Name:     "release",
	Topic:    "Holding",
	Title:    "Released on every way out",
	Question: `Is the lock free again, however the section ends?`,
	Claim: "Java's synchronized block cannot forget to unlock: the compiler makes two exits for it, one for " +
		"the normal end and one for exceptions. An explicit lock needs a finally block. A missing one " +
		"shows at the first exception.\n\n" +
		"A Go function can end in three ways: it returns, it panics, or it ends its goroutine by " +
		"`runtime.Goexit`, as a failed test does. Only deferred calls run in all three cases.",
	Look: `Each goroutine ends its section in another way, and the next one gets the lock at once. In the last
picture there is no deferred unlock. After the panic the lock stays held, and the wait of the next
goroutine is cancelled in the end.`,
	Found: `The lock was free after each of the {{.ways}} ways out. Without a deferred unlock it was not:
the wait of the next goroutine ended after {{n .gaveUp}}.`,
	Take: "Use `locks.Do`, or `defer mu.Unlock()` on the line after the lock. `Do` also joins the error of " +
		"the release to that of the function. For a distributed lock this error matters.",
	Java: `lock.lock();
try {
    work();
} finally {
    lock.unlock();
}`,
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
		name string
		work func() error
	}{
		{"returns nil", func() error { return nil }},
		{"returns an error", func() error { return errNoLuck }},
		{"panics", func() error { panic(errNoLuck) }},
		{"calls Goexit", func() error { runtime.Goexit(); return nil }},
	}
	t := l.Timeline("With locks.Do", "Four goroutines leave the section in four ways, one after the other.")
	mu := new(reentrant.Mutex)
	watched := t.Wrap("lock", mu)
	for i, way := range ways {
		t.Go(way.name, func(ctx context.Context, me *lab.Lane) error {
			defer me.Work(time.Millisecond)
			me.Work(time.Duration(i) * time.Millisecond)
			defer func() {
				if p := recover(); p != nil {
					l.Equal(any(errNoLuck), p, "a panic continues after the release, unchanged")
				}
				l.Check(!mu.IsHeld(), "after it "+strings.Replace(way.name, "calls", "called", 1)+", the "+
					"lock is not the goroutine's any more")
			}()
			err := section(ctx, watched, func() error {
				me.Work(2 * time.Millisecond)
				me.Mark("%s", way.name)
				return way.work()
			})
			if errors.Is(err, errNoLuck) {
				return nil
			}
			return err
		})
	}
	t.Wait()
	l.Check(!mu.IsLocked(), "in the end the lock is free")

	t = l.Timeline("Without a deferred unlock", "A panic leaves the lock behind, and the next goroutine "+
		"waits in vain.")
	mu = new(reentrant.Mutex)
	watched = t.Wrap("lock", mu)
	panicked := make(chan struct{})
	var gaveUp time.Duration
	t.Go("panics", func(ctx context.Context, me *lab.Lane) error {
		defer me.Work(time.Millisecond)
		defer close(panicked)
		defer func() { _ = recover() }()
		return forgetful(ctx, watched, func() error {
			me.Work(2 * time.Millisecond)
			me.Mark("panics")
			panic(errNoLuck)
		})
	})
	t.Go("next", func(ctx context.Context, me *lab.Lane) error {
		<-panicked
		limited, cancel := context.WithTimeout(ctx, 8*time.Millisecond)
		defer cancel()
		start := time.Now()
		l.Is(context.DeadlineExceeded, watched.LockContext(limited), "without a deferred unlock, a panic "+
			"leaves the lock taken")
		gaveUp = time.Since(start)
		me.Work(time.Millisecond)
		return nil
	})
	t.Wait()
	l.Observe("ways", len(ways))
	l.Observe("gaveUp", gaveUp)
	return nil
}
