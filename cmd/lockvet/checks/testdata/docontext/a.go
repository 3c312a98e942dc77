package docontext

import (
	"context"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
)

func save(context.Context) error { return nil }

func unnamed(ctx context.Context, l locks.Locker) error {
	return locks.Do(ctx, l, func(context.Context) error {
		return save(ctx) // want `the function uses ctx of the caller, which does not end when the lock is lost`
	})
}

func blank(ctx context.Context, l locks.TryLocker) (bool, error) {
	return locks.TryDo(ctx, l, func(_ context.Context) error {
		return save(ctx) // want `the function uses ctx of the caller`
	})
}

func named(outer context.Context, l locks.Locker) error {
	return locks.Do(outer, l, func(ctx context.Context) error {
		if err := save(outer); err != nil { // want `the function uses outer of the caller`
			return err
		}
		return save(outer)
	})
}

// What follows is right.

func used(ctx context.Context, l locks.Locker) error {
	return locks.Do(ctx, l, func(inner context.Context) error {
		if err := save(inner); err != nil {
			return save(ctx)
		}
		return nil
	})
}

func shadowed(ctx context.Context, l locks.Locker) error {
	return locks.Do(ctx, l, func(ctx context.Context) error { return save(ctx) })
}

func unneeded(ctx context.Context, l locks.Locker) error {
	return locks.Do(ctx, l, func(context.Context) error { return nil })
}

func local(ctx context.Context, l *fair.Mutex) error {
	return locks.Do(ctx, l, func(context.Context) error { return save(ctx) })
}

func afterwards(ctx context.Context, l locks.Locker) error {
	return locks.Do(ctx, l, func(context.Context) error { return save(context.WithoutCancel(ctx)) })
}
