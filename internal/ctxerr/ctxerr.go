// Package ctxerr makes the errors that the Context family returns for a context.
package ctxerr

import (
	"context"
	"errors"
)

// ErrNil is locks.ErrNilContext. It is here because package locks imports this one.
var ErrNil = errors.New("locks: nil context")

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
func Ended(op string, ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil {
		err = context.Canceled
	}
	if cause == nil || cause == err {
		return Wrap(op, err)
	}
	return &ended{op, [2]error{err, cause}}
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
	op   string
	errs [2]error // ctx.Err() and the cause
}

func (e *ended) Error() string {
	return e.op + ": " + e.errs[0].Error() + ": " + e.errs[1].Error()
}
func (e *ended) Unwrap() []error { return e.errs[:] }
