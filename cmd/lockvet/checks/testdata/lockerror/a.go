package lockerror

import (
	"context"
	"sync"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/semaphore"
)

func dropped(ctx context.Context, l locks.TryLocker, mu *sync.Mutex, rw *rwlock.RWMutex) {
	l.LockContext(ctx)               // want `the error of LockContext is dropped: the code goes on without the lock`
	l.UnlockContext(ctx)             // want `the error of UnlockContext is dropped: the lock may be lost or still held`
	l.TryLockContext(ctx)            // want `the result of TryLockContext is dropped`
	defer l.UnlockContext(ctx)       // want `the error of UnlockContext is dropped`
	mu.TryLock()                     // want `the result of TryLock is dropped: the code goes on without the lock`
	rw.TryRLock()                    // want `the result of TryRLock is dropped`
	rw.ReadLocker().LockContext(ctx) // want `the error of LockContext is dropped`
}

func half(ctx context.Context, l locks.TryLocker) error {
	if _, err := l.TryLockContext(ctx); err != nil { // want `the result of TryLockContext is dropped`
		return err
	}
	return l.UnlockContext(ctx)
}

func noPermits(ctx context.Context, s locks.Semaphore, w *semaphore.Weighted) error {
	p, _, err := s.TryAcquireContext(ctx, 1) // want `the result of TryAcquireContext is dropped: the permits may be nil`
	if err != nil {
		return err
	}
	defer func() { _ = p.ReleaseContext(ctx) }()
	more, _, _ := w.TryAcquireContext(ctx, 1) // want `the result of TryAcquireContext is dropped`
	return more.ReleaseContext(ctx)
}

// What follows is accepted.

func permits(ctx context.Context, s locks.Semaphore) error {
	_, _, _ = s.TryAcquireContext(ctx, 1)
	p, ok, err := s.TryAcquireContext(ctx, 1)
	if !ok {
		return err
	}
	return p.ReleaseContext(ctx)
}

func explicit(ctx context.Context, l locks.TryLocker, f *fair.Mutex, r *reentrant.Mutex) {
	_ = l.LockContext(ctx)
	_ = l.UnlockContext(ctx)
	_, _ = l.TryLockContext(ctx)
	if ok, _ := l.TryLockContext(ctx); ok {
		defer func() { _ = l.UnlockContext(ctx) }()
	}
	if f.TryLock() {
		defer f.UnlockContext(ctx)
	}
	if _, err := r.TryLockContext(ctx); err == nil {
		return
	}
}

type mine struct{}

func (mine) LockContext(context.Context) error { return nil }

func other(m mine) { m.LockContext(context.Background()) }
