package lockerror

import (
	"context"
	"sync"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
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

// What follows is accepted.

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
