// Package ctxerr makes the errors that the Context family returns for a context.
package ctxerr

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/jucgo/locks/internal/sched"
)

// ErrNil is locks.ErrNilContext. It is here because package locks imports package ctxerr.
var ErrNil = errors.New("nil context")

// ErrNilFunc is locks.ErrNilFunc, for the same reason.
var ErrNilFunc = errors.New("nil function")

// IsNil reports whether the argument l is nil, or a nil pointer. If a pointer type implements the
// lock, a nil pointer is the usual mistake: a field that was never set.
func IsNil(l any) bool {
	if l == nil {
		return true
	}
	v := reflect.ValueOf(l)
	switch v.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan, reflect.UnsafePointer:
		return v.IsNil()
	}
	return false
}

// Check returns the error of op if ctx is nil or has ended, else nil.
func Check(op string, ctx context.Context) error {
	if ctx == nil {
		return Wrap(op, ErrNil)
	}
	if sched.On {
		sched.Under(ctx)
	}
	if ctx.Err() != nil {
		return Ended(op, ctx)
	}
	return nil
}

// Ended returns the error of op under ctx, which has ended: it matches ctx.Err() and the cause. A
// context that has closed its Done channel and has no Err counts as cancelled.
//
// The cause of a context of package context is looked up when it is asked for the first time. Until
// then the error keeps ctx, with all its values: see [Settle]. The lookup takes the mutex of ctx. A
// cancellation holds that mutex while it wakes the waiters, so a lookup here would block each
// waiter again. Other contexts may change, or be used again, after the call.
func Ended(op string, ctx context.Context) error {
	err := ctx.Err()
	if err == nil {
		err = context.Canceled
	} else if t := reflect.TypeOf(ctx); t == cancelCtx || t == timerCtx {
		return &ended{op: op, err: err, ctx: ctx}
	}
	if cause := context.Cause(ctx); cause != nil && cause != err {
		return Wrap(op, bare{err, cause})
	}
	return Wrap(op, err)
}

// cancelCtx and timerCtx are the types of contexts that know their own cause.
var cancelCtx, timerCtx = func() (cancel, timer reflect.Type) {
	c, stop := context.WithCancel(context.Background())
	defer stop()
	d, stop := context.WithTimeout(c, time.Hour)
	defer stop()
	return reflect.TypeOf(c), reflect.TypeOf(d)
}()

// Wrap returns err with op, the operation that was attempted. It costs one allocation: the text
// is made when Error is called, because most callers only compare.
func Wrap(op string, err error) error { return &failed{op, err} }

type failed struct {
	op  string
	err error
}

func (e *failed) Error() string { return e.op + ": " + e.err.Error() }
func (e *failed) Unwrap() error { return e.err }

// ended is the error of an operation under a context that knows its cause.
type ended struct {
	op  string
	err error // of the context

	mu    sync.Mutex
	ctx   context.Context // nil once cause is known
	cause error
}

func (e *ended) Error() string { return e.op + ": " + e.bare().Error() }
func (e *ended) Unwrap() error { return e.bare() }

// Is answers the usual question without a look at the cause.
func (e *ended) Is(target error) bool {
	return (target == context.Canceled || target == context.DeadlineExceeded) && target == e.err
}

func (e *ended) bare() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ctx != nil { // a context of package context, which calls nothing of the program for this
		e.cause, e.ctx = context.Cause(past{e.ctx, e.err}), nil
	}
	if e.cause != e.err {
		return bare{e.err, e.cause}
	}
	return e.err
}

// Settle makes all errors that err wraps look up their causes, so that no error keeps a context.
func Settle(err error) {
	errors.Is(err, errSettled) // unwraps each of them
}

// errSettled is matched by no error.
var errSettled = errors.New("settled")

// past is a context that has ended, with its Err. The context's own Err may receive from the Done
// channel, which kills the process outside the testing/synctest bubble of the context.
type past struct {
	context.Context
	err error
}

func (p past) Err() error { return p.err }

// Bare returns what err says without its operation, if err was made by this package, and else
// err.
func Bare(err error) error {
	switch e := err.(type) {
	case *failed:
		return e.err
	case *ended:
		return e.bare()
	}
	return err
}

// bare is a context error and its cause.
type bare [2]error

func (b bare) Error() string   { return b[0].Error() + ": " + b[1].Error() }
func (b bare) Unwrap() []error { return b[:] }
