package lostowner

import (
	"context"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
)

func background(ctx context.Context, l locks.Locker) error {
	work := locks.WithOwner(ctx, locks.NewOwner())
	if err := l.LockContext(work); err != nil {
		return err
	}
	return l.UnlockContext(context.Background()) // want `UnlockContext of l with a context that has not the owner of the acquisition`
}

func parent(ctx context.Context, l locks.Locker, o locks.Owner) error {
	work, cancel := context.WithTimeout(locks.WithOwner(ctx, o), time.Second)
	defer cancel()
	if err := l.LockContext(work); err != nil {
		return err
	}
	defer func() {
		_ = l.UnlockContext(context.WithoutCancel(ctx)) // want `UnlockContext of l with a context`
	}()
	return nil
}

func none(ctx context.Context, l locks.TryLocker) error {
	o := locks.NewOwner()
	work := locks.WithOwner(ctx, o)
	if ok, err := l.TryLockContext(work); !ok {
		return err
	}
	return l.UnlockContext(nil) // want `UnlockContext of l with a context`
}

// What follows is right.

func kept(ctx context.Context, l locks.Locker) error {
	work := locks.WithOwner(ctx, locks.NewOwner())
	if err := l.LockContext(work); err != nil {
		return err
	}
	return l.UnlockContext(context.WithoutCancel(work))
}

func again(ctx context.Context, l locks.Locker) error {
	ctx = locks.WithOwner(ctx, locks.NewOwner())
	if err := l.LockContext(ctx); err != nil {
		return err
	}
	return l.UnlockContext(ctx)
}

func current(ctx context.Context, l locks.Locker) error {
	work := locks.WithOwner(ctx, locks.CurrentOwner(ctx))
	if err := l.LockContext(work); err != nil {
		return err
	}
	return l.UnlockContext(ctx)
}

func withoutOwners(ctx context.Context, l *fair.Mutex) error {
	work := locks.WithOwner(ctx, locks.NewOwner())
	if err := l.LockContext(work); err != nil {
		return err
	}
	return l.UnlockContext(context.Background())
}

func unknown(ctx context.Context, l locks.Locker) error {
	if err := l.LockContext(ctx); err != nil {
		return err
	}
	return l.UnlockContext(context.Background())
}

func both(ctx context.Context, l locks.Locker, plain bool) error {
	work := ctx
	if !plain {
		work = locks.WithOwner(ctx, locks.NewOwner())
	}
	if err := l.LockContext(work); err != nil {
		return err
	}
	return l.UnlockContext(ctx)
}

func looped(ctx context.Context, l locks.Locker) error {
	var each context.Context
	for range 3 {
		if each != nil {
			return l.UnlockContext(each)
		}
		each = context.WithValue(each, 1, 2)
		if err := l.LockContext(each); err != nil {
			return err
		}
	}
	return nil
}

func ofTheGoroutine(ctx context.Context, l locks.TryLocker, mu *reentrant.Mutex) error {
	work := locks.WithOwner(ctx, locks.NewOwner())
	mu.Lock()
	if err := mu.UnlockContext(ctx); err != nil {
		return err
	}
	if err := mu.LockContext(work); err != nil {
		return err
	}
	return mu.UnlockContext(work)
}

func ofTheCaller(ctx context.Context, l locks.Locker) error {
	if err := l.UnlockContext(ctx); err != nil {
		return err
	}
	work := locks.WithOwner(ctx, locks.NewOwner())
	if err := l.LockContext(work); err != nil {
		return err
	}
	return l.UnlockContext(work)
}
