// Package ctxerr makes the errors that the Context family returns for a context.
package ctxerr

import (
	"context"
	"errors"
)

// ErrNil is locks.ErrNilContext. It is here because package locks imports this one.
var ErrNil = errors.New("nil context")

// ErrNilFunc is locks.ErrNilFunc, for the same reason.
var ErrNilFunc = errors.New("nil function")

// Check returns the error of op if ctx is nil or has ended, else nil.
func Check(op string, ctx context.Context) error {
	if ctx == nil {
		return Wrap(op, ErrNil)
	}
	if ctx.Err() != nil {
		return Ended(op, ctx)
	}
	return nil
}

// Ended returns the error of op under ctx, which has ended: it matches ctx.Err() and the cause. A
// context that has closed its Done channel and has no Err counts as cancelled.
//
// The cause is looked up when it is asked for, so the error keeps ctx. The lookup takes the mutex
// of ctx. A cancellation holds that while it wakes the waiters, which would wait for it once more.
func Ended(op string, ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &ended{op, past{ctx, err}}
	}
	return Wrap(op, context.Canceled)
}

// Wrap says what was attempted when err came up. It costs one allocation: the text is made when
// Error is called, because most callers only compare.
func Wrap(op string, err error) error { return &failed{op, err} }

type failed struct {
	op  string
	err error
}

func (e *failed) Error() string { return e.op + ": " + e.err.Error() }
func (e *failed) Unwrap() error { return e.err }

type ended struct {
	op  string
	ctx past
}

func (e *ended) Error() string { return e.op + ": " + e.bare().Error() }
func (e *ended) Unwrap() error { return e.bare() }

// Is answers the usual question without a look at the cause.
func (e *ended) Is(target error) bool {
	return (target == context.Canceled || target == context.DeadlineExceeded) && target == e.ctx.err
}

func (e *ended) bare() error {
	if cause := context.Cause(e.ctx); cause != e.ctx.err {
		return bare{e.ctx.err, cause}
	}
	return e.ctx.err
}

// past is a context that has ended, with its Err. That of the context may receive from its Done
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
