package locks

import (
	"context"
	"sync"

	"github.com/jucgo/locks/internal/ctxerr"
)

// Guarded is a value and the lock that guards it. A program can reach the value only while it
// holds the lock.
//
// The zero Guarded has no lock, and its methods return an error. [NewGuarded] makes a usable one.
// A Guarded must not be copied: a copy has the same lock, and a value of its own. A Guarded is
// safe for concurrent use. If the lock is reentrant, With is reentrant too: a nested call gets
// the same pointer. A distributed lock excludes other processes, but each process has its own
// value.
type Guarded[T any] struct {
	_ [0]sync.Mutex // shows vet that a Guarded must not be copied

	lock  TryLocker
	value T
}

// NewGuarded returns a Guarded with a value to start with. With a nil l, its methods return an
// error.
func NewGuarded[T any](l TryLocker, value T) *Guarded[T] {
	if ctxerr.IsNil(l) {
		return &Guarded[T]{value: value}
	}
	return &Guarded[T]{lock: l, value: value}
}

// With runs fn with a pointer to the value while it holds the lock, as [Do] does. fn must not
// keep the pointer. The changes of fn stay even if fn returns an error or panics. With returns
// the errors of Do.
func (g *Guarded[T]) With(ctx context.Context, fn func(value *T) error) error {
	return do("locks: Guarded.With", ctx, g.lock, g.withValue(fn))
}

// TryWith is With if the lock can be acquired without waiting. It reports whether fn ran. TryWith
// returns the errors of [TryDo].
func (g *Guarded[T]) TryWith(ctx context.Context, fn func(value *T) error) (ran bool, err error) {
	return tryDo("locks: Guarded.TryWith", ctx, g.lock, g.withValue(fn))
}

func (g *Guarded[T]) withValue(fn func(value *T) error) func(context.Context) error {
	return withValue(&g.value, fn)
}

// withValue returns fn in the form for Do.
func withValue[T any](value *T, fn func(value *T) error) func(context.Context) error {
	if fn == nil {
		return nil
	}
	return func(context.Context) error { return fn(value) }
}

// RWGuarded is a [Guarded] for readers that share: a value and the read-write lock that guards
// it. The zero RWGuarded has no lock, and its methods return an error. [NewRWGuarded] makes a
// usable one. An RWGuarded must not be copied.
type RWGuarded[T any] struct {
	_ [0]sync.Mutex // shows vet that an RWGuarded must not be copied

	read, write TryLocker
	value       T
}

// NewRWGuarded returns an RWGuarded with a value to start with. With a nil l, its methods return an
// error.
func NewRWGuarded[T any](l ReadWriteLocker, value T) *RWGuarded[T] {
	if ctxerr.IsNil(l) {
		return &RWGuarded[T]{value: value}
	}
	return &RWGuarded[T]{read: l.ReadLocker(), write: l.WriteLocker(), value: value}
}

// With runs fn with a pointer to the value while it holds the write lock, as [Guarded.With] does.
func (g *RWGuarded[T]) With(ctx context.Context, fn func(value *T) error) error {
	return do("locks: RWGuarded.With", ctx, g.write, withValue(&g.value, fn))
}

// TryWith is With if the write lock can be acquired without waiting. It reports whether fn ran.
func (g *RWGuarded[T]) TryWith(ctx context.Context, fn func(value *T) error) (ran bool, err error) {
	return tryDo("locks: RWGuarded.TryWith", ctx, g.write, withValue(&g.value, fn))
}

// Read runs fn with a pointer to the value while it holds the read lock, beside other readers. fn
// must not change the value, nor keep the pointer. Read returns the errors of [Do].
func (g *RWGuarded[T]) Read(ctx context.Context, fn func(value *T) error) error {
	return do("locks: RWGuarded.Read", ctx, g.read, withValue(&g.value, fn))
}

// TryRead is Read if the read lock can be acquired without waiting. It reports whether fn ran.
func (g *RWGuarded[T]) TryRead(ctx context.Context, fn func(value *T) error) (ran bool, err error) {
	return tryDo("locks: RWGuarded.TryRead", ctx, g.read, withValue(&g.value, fn))
}
