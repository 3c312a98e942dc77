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
func Ended(op string, ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if err == nil {
		err = context.Canceled
	}
	if cause == nil || cause == err {
		return Wrap(op, err)
	}
	return &ended{op, bare{err, cause}}
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
	errs bare
}

func (e *ended) Error() string   { return e.op + ": " + e.errs.Error() }
func (e *ended) Unwrap() []error { return e.errs[:] }

// Bare returns what err says without its operation, if err was made by this package, and else
// err.
func Bare(err error) error {
	switch e := err.(type) {
	case *failed:
		return e.err
	case *ended:
		return e.errs
	}
	return err
}

// bare is a context error and its cause.
type bare [2]error

func (b bare) Error() string   { return b[0].Error() + ": " + b[1].Error() }
func (b bare) Unwrap() []error { return b[:] }
