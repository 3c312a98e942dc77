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

// The body declares ctx itself. So no fix makes a parameter of that name.
func declares(ctx context.Context, l locks.Locker) error {
	return locks.Do(ctx, l, func(context.Context) error {
		ctx := context.WithValue(ctx, 1, 2) // want `the function uses ctx of the caller`
		return save(ctx)
	})
}

func declaresVar(ctx context.Context, l locks.Locker) error {
	return locks.Do(ctx, l, func(context.Context) error {
		var ctx = context.WithValue(ctx, 1, 2) // want `the function uses ctx of the caller`
		return save(ctx)
	})
}

func declaresBelow(ctx context.Context, l locks.Locker) error {
	return locks.Do(ctx, l, func(context.Context) error {
		if ctx, cancel := context.WithCancel(ctx); ctx != nil { // want `the function uses ctx of the caller`
			defer cancel()
			return save(ctx)
		}
		return nil
	})
}

// A context of a web framework has more methods than a context.Context, which the fix cannot give.
type request struct{ context.Context }

func (*request) write(string) {}

func ofFramework(r *request, l locks.Locker) error {
	return locks.Do(r, l, func(context.Context) error {
		r.write("saves")
		return save(r) // want `the function uses r of the caller, which does not end when the lock is lost`
	})
}

func waitsForFramework(r *request, l locks.Locker) error {
	return locks.Do(r, l, func(context.Context) error {
		<-r.Done() // want `the function uses r of the caller`
		return nil
	})
}

// What follows is right.

func answers(r *request, l locks.Locker) error {
	return locks.Do(r, l, func(context.Context) error {
		r.write("saved")
		return nil
	})
}

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
