// Package ctxerr makes the errors that the Context family returns for a context.
package ctxerr

import (
	"context"
	"fmt"

	"github.com/jucgo/locks"
)

// Check returns the error of op if ctx is nil or has ended, else nil.
func Check(op string, ctx context.Context) error {
	if ctx == nil {
		return Wrap(op, locks.ErrNilContext)
	}
	if ctx.Err() != nil {
		return Ended(op, ctx)
	}
	return nil
}

// Ended returns the error of op under ctx, which has ended: it matches ctx.Err() and the cause.
func Ended(op string, ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || cause == err {
		return Wrap(op, err)
	}
	return fmt.Errorf("%s: %w: %w", op, err, cause)
}

// Wrap says what was attempted when err came up.
func Wrap(op string, err error) error { return fmt.Errorf("%s: %w", op, err) }
