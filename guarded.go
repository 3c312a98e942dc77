package locks

import "context"

// Guarded is a value and the lock that guards it. A program can reach the value only while it
// holds the lock.
//
// The zero Guarded has no lock, and its methods return an error. [NewGuarded] makes a usable
// one. A Guarded is safe for concurrent use. If its lock is reentrant, so is With: a nested call
// gets the same pointer. A distributed lock excludes other processes, but each process has its
// own value.
type Guarded[T any] struct {
	lock  TryLocker
	value T
}

// NewGuarded returns a Guarded with a value to start with.
func NewGuarded[T any](l TryLocker, value T) *Guarded[T] {
	return &Guarded[T]{lock: l, value: value}
}

// With runs fn with a pointer to the value while it holds the lock, as [Do] does. fn must not
// keep the pointer. The changes of fn stay even if fn returns an error or panics. The errors are
// those of Do.
func (g *Guarded[T]) With(ctx context.Context, fn func(value *T) error) error {
	return do("locks: Guarded.With", ctx, g.lock, g.withValue(fn))
}

// TryWith is With if the lock can be acquired without waiting. It reports whether fn ran. The
// errors are those of [TryDo].
func (g *Guarded[T]) TryWith(ctx context.Context, fn func(value *T) error) (ran bool, err error) {
	return tryDo("locks: Guarded.TryWith", ctx, g.lock, g.withValue(fn))
}

// withValue returns fn in the form for Do.
func (g *Guarded[T]) withValue(fn func(value *T) error) func(context.Context) error {
	if fn == nil {
		return nil
	}
	return func(context.Context) error { return fn(&g.value) }
}
