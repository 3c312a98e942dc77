package singleton

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/goid"
)

var (
	// ErrRecursive reports a constructor that asks for the value that it is making, and would
	// wait for itself for ever.
	ErrRecursive = errors.New("singleton: the constructor asks for its own value")

	// ErrNilConstructor reports a [Lazy] without a constructor: the zero Lazy, or one that was
	// made with nil.
	ErrNilConstructor = errors.New("singleton: nil constructor")
)

// Lazy is a value that is constructed when it is first asked for, and only then. Make one with
// [New] or [NewContext]; the zero Lazy has no constructor, and returns [ErrNilConstructor]. It
// must not be copied after first use.
//
// One constructor runs at a time, and none any more once one has succeeded. All who ask meanwhile
// wait.
//
//   - A constructor that fails leaves no trace. Its error goes, as it is, to the one caller in
//     whose goroutine it ran; of those who waited, one runs the constructor anew, and so on, so
//     that everybody gets the value or an error of their own. Nobody gets an error that was made
//     under someone else's context.
//   - A constructor that panics or calls [runtime.Goexit] has failed in the same way: the panic
//     goes on in the caller that ran it, and the next one tries again.
//   - A constructor that asks for its own value gets [ErrRecursive], and may go on without. It is
//     found out by its goroutine and, of [NewContext], in other goroutines by the context that it
//     was given. Two constructors that wait for each other's values in different goroutines are
//     not: GetContext with a deadline is the way out.
//
// In the terms of the Go memory model, the return of the constructor synchronizes before the
// return of every call that returns its value.
//
// Once there is a value, getting it takes one atomic load and a copy, without a lock or an
// allocation, and is inlined. Java has no such type; its idioms are double-checked locking on a
// volatile field, and the holder class.
type Lazy[T any] struct {
	// done is 1 once value is set for good. Every access to it is atomic; it is no atomic.Bool
	// because the inliner counts one more call for that, and Get would be over its budget.
	done  uint32
	value T // written by the constructor's goroutine before it sets done

	mu        sync.Mutex // held for moments, never while a constructor runs
	construct func(context.Context) (T, error)
	current   *attempt // the constructor that runs, or nil
}

// New returns a Lazy with a constructor that cannot be cancelled.
func New[T any](construct func() (T, error)) *Lazy[T] {
	if construct == nil {
		return new(Lazy[T])
	}
	return &Lazy[T]{construct: func(context.Context) (T, error) { return construct() }}
}

// NewContext returns a Lazy with a constructor that takes the context of the caller in whose
// goroutine it runs, or [context.Background] if that called [Lazy.Get]. If the context ends, and
// the constructor gives up, that caller gets the error, and the next one, with a context of its
// own, runs the constructor anew.
//
// The value outlives the context: a constructor that keeps its context in the value, or starts a
// goroutine with it, should use [context.WithoutCancel].
func NewContext[T any](construct func(ctx context.Context) (T, error)) *Lazy[T] {
	return &Lazy[T]{construct: construct}
}

// Get returns the value, and constructs it if need be. It waits for as long as that takes. The
// error is that of the constructor, [ErrRecursive] or [ErrNilConstructor], and then the value is
// the zero T.
func (l *Lazy[T]) Get() (value T, err error) {
	// One return less is what it takes to be inlined.
	if atomic.LoadUint32(&l.done) != 0 {
		value = l.value
	} else {
		value, err = l.getSlow()
	}
	return
}

func (l *Lazy[T]) getSlow() (T, error) {
	return l.get(context.Background(), "singleton: Lazy.Get")
}

// GetContext is Get for callers who cannot wait for ever. If ctx ends while somebody else
// constructs the value, GetContext returns an error that matches ctx.Err() and its cause, and the
// constructor runs on for the others. A ctx that has ended already is an error too, and so is a
// nil one, [locks.ErrNilContext]. Once the value is there, it is returned without a look at ctx.
//
// [locks.ErrNilContext]: https://pkg.go.dev/github.com/jucgo/locks#ErrNilContext
func (l *Lazy[T]) GetContext(ctx context.Context) (value T, err error) {
	if atomic.LoadUint32(&l.done) != 0 {
		value = l.value
	} else {
		value, err = l.getContextSlow(ctx)
	}
	return
}

//go:noinline // so that GetContext is inlined
func (l *Lazy[T]) getContextSlow(ctx context.Context) (T, error) {
	return l.get(ctx, "singleton: Lazy.GetContext")
}

// MustGet is Get for values without which the program cannot go on: it panics with the error.
func (l *Lazy[T]) MustGet() T {
	if atomic.LoadUint32(&l.done) != 0 {
		return l.value
	}
	return l.mustSlow()
}

func (l *Lazy[T]) mustSlow() T {
	value, err := l.get(context.Background(), "singleton: Lazy.MustGet")
	if err != nil {
		panic(err)
	}
	return value
}

// Peek returns the value if there is one, and never constructs it nor waits for it.
func (l *Lazy[T]) Peek() (value T, ok bool) {
	if atomic.LoadUint32(&l.done) != 0 {
		return l.value, true
	}
	return value, false
}

// get is the slow path, for op.
func (l *Lazy[T]) get(ctx context.Context, op string) (none T, err error) {
	me := goid.Get()
	for {
		a, mine, err := l.enter(ctx, op, me)
		switch {
		case err != nil:
			return none, err
		case mine:
			return l.run(ctx, a)
		case a == nil:
			return l.value, nil
		case a.goroutine == me || a.within(ctx):
			return none, fmt.Errorf("%s: %w", op, ErrRecursive)
		}
		a.wait(ctx)
	}
}

// enter is the second check, with the lock held. It returns the attempt to wait for, or, if mine
// is true, to make; or nil if there is a value.
func (l *Lazy[T]) enter(ctx context.Context, op string, me int64) (a *attempt, mine bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if atomic.LoadUint32(&l.done) != 0 {
		return nil, false, nil
	}
	// A value is worth more than ctx, and ctx more than an attempt.
	if err := ctxerr.Check(op, ctx); err != nil {
		return nil, false, err
	}
	if l.construct == nil {
		return nil, false, ctxerr.Wrap(op, ErrNilConstructor)
	}
	if l.current != nil {
		return l.current, false, nil
	}
	l.current = newAttempt(me)
	return l.current, true, nil
}

// run makes the attempt. Only one goroutine is here at a time, and it does not hold the lock, so
// that those who wait can look at their contexts.
func (l *Lazy[T]) run(ctx context.Context, a *attempt) (none T, err error) {
	success := false
	// Deferred, and without recover: a panic goes on with its own stack, and Goexit goes on too.
	defer func() {
		l.mu.Lock()
		if success {
			l.construct = nil // and whatever it refers to
			atomic.StoreUint32(&l.done, 1)
		}
		l.current = nil
		l.mu.Unlock()
		a.end()
	}()
	value, err := l.construct(a.mark(ctx))
	if err != nil {
		return none, err
	}
	l.value = value
	success = true
	return value, nil
}
