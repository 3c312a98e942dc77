package singleton

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/sched"
)

// ErrRecursive reports a constructor that asks for the value that it is constructing. It would
// wait for itself for ever.
var ErrRecursive = errors.New("the constructor asks for its own value")

// Lazy is a value that is constructed at its first use. Make a Lazy with [New] or [NewContext]. The
// zero Lazy and a Lazy made with nil lack a constructor, and return [locks.ErrNilFunc]. A Lazy must
// not be copied after first use.
//
// One constructor call runs at a time, and none after one has succeeded. Other callers wait
// meanwhile.
//
//   - If the constructor fails, its error goes unchanged to the caller in whose goroutine it
//     ran. Then one of the waiters calls the constructor again, and so on. Therefore every
//     caller gets the value or an error of its own. No caller gets an error that another
//     caller's context caused.
//   - If the constructor panics or calls [runtime.Goexit], it has failed in the same way. The
//     panic continues in the caller that ran it, and the next caller tries again.
//   - If the constructor asks for its own value, it gets [ErrRecursive], and may continue
//     without the value. Lazy recognizes the constructor by its goroutine or, with [NewContext],
//     by the context that the constructor was given. It does not recognize two constructors that
//     wait for each other's values in different goroutines: use GetContext with a deadline
//     there.
//
// In the terms of the Go memory model, the return of the constructor synchronizes before the
// return of every call that returns its value.
//
// Once the value exists, a Get is one atomic load and a copy. It takes no lock, allocates nothing,
// and is inlined. Java lacks such a type; Java programs use double-checked locking on a volatile
// field, or a holder class.
//
// [locks.ErrNilFunc]: https://pkg.go.dev/github.com/jucgo/locks#ErrNilFunc
type Lazy[T any] struct {
	// done is 1 once value is set. Every access to it is atomic. done is not an atomic.Bool: the
	// inliner would charge one more call, and Get would exceed the inliner's budget.
	done  uint32
	value T // written by the constructor's goroutine before it sets done

	mu        sync.Mutex // held for short, never while a constructor runs
	construct func(context.Context) (T, error)
	current   *attempt // the constructor call that runs, or nil
}

// New returns a Lazy with a constructor that cannot be cancelled.
func New[T any](construct func() (T, error)) *Lazy[T] {
	if construct == nil {
		return new(Lazy[T])
	}
	return &Lazy[T]{construct: func(context.Context) (T, error) { return construct() }}
}

// NewContext returns a Lazy with a constructor that takes a context. It is the context of the
// caller in whose goroutine the constructor runs, or [context.Background] for [Lazy.Get]. If the
// context ends and the constructor fails, this caller gets the error. The next caller runs the
// constructor again, with its own context.
//
// The value outlives the context. A constructor that keeps its context in the value, or starts a
// goroutine with it, should use [context.WithoutCancel].
func NewContext[T any](construct func(ctx context.Context) (T, error)) *Lazy[T] {
	return &Lazy[T]{construct: construct}
}

// Get returns the value, and constructs it if need be. It waits until the constructor has
// returned. An error is the constructor's, [ErrRecursive] or [locks.ErrNilFunc]; then the value
// is the zero T.
//
// [locks.ErrNilFunc]: https://pkg.go.dev/github.com/jucgo/locks#ErrNilFunc
func (l *Lazy[T]) Get() (value T, err error) {
	if sched.On {
		sched.Begin("Get", l)
	}
	// With one more return statement, Get would not be inlined.
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

// GetContext is Get with a limited wait. If ctx ends while another caller constructs the value,
// GetContext returns an error that matches ctx.Err() and its cause, and the constructor
// continues for the others. A ctx that has ended already is an error, and a nil ctx is
// [locks.ErrNilContext]. If the value exists, GetContext returns it without a look at ctx.
//
// [locks.ErrNilContext]: https://pkg.go.dev/github.com/jucgo/locks#ErrNilContext
func (l *Lazy[T]) GetContext(ctx context.Context) (value T, err error) {
	if sched.On {
		sched.Begin("GetContext", l)
	}
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

// MustGet is Get for values that the program cannot run without: it panics with the error.
func (l *Lazy[T]) MustGet() T {
	if sched.On {
		sched.Begin("MustGet", l)
	}
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

// Peek returns the value if it exists. It never constructs the value or waits for it.
func (l *Lazy[T]) Peek() (value T, ok bool) {
	if sched.On {
		sched.Begin("Peek", l)
	}
	if atomic.LoadUint32(&l.done) != 0 {
		return l.value, true
	}
	return value, false
}

// get is the slow path, for op.
func (l *Lazy[T]) get(ctx context.Context, op string) (none T, err error) {
	me := goid.Get()
	for {
		a, mine, err := l.claim(ctx, op, me)
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

// claim is the second check. It returns nil if the value exists. Otherwise it returns an attempt.
// If mine is true, the caller must make this attempt. If not, the caller must wait for it.
func (l *Lazy[T]) claim(ctx context.Context, op string, me int64) (a *attempt, mine bool, err error) {
	// Before the lock, because ctx may be a type of the program that takes a mutex of its own.
	ended := ctxerr.Check(op, ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	// An existing value comes before an error of ctx, and that error before an attempt.
	if atomic.LoadUint32(&l.done) != 0 {
		return nil, false, nil
	}
	if ended != nil {
		return nil, false, ended
	}
	if l.construct == nil {
		return nil, false, ctxerr.Wrap(op, ctxerr.ErrNilFunc)
	}
	if l.current != nil {
		return l.current, false, nil
	}
	l.current = newAttempt(me)
	return l.current, true, nil
}

// run makes the attempt. Only one goroutine runs it at a time. It does not hold the lock, so
// that the waiters can look at their contexts.
func (l *Lazy[T]) run(ctx context.Context, a *attempt) (none T, err error) {
	success := false
	// Deferred and without recover, so that a panic continues with its own stack, and Goexit
	// continues too.
	defer func() {
		l.mu.Lock()
		if success {
			l.construct = nil // frees what it refers to
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
