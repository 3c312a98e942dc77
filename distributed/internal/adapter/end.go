package adapter

import (
	"context"

	"github.com/jucgo/locks/internal/ctxerr"
)

// End is the end of a caller's ctx, whose methods are not called while the caller has a turn.
type End = ctxerr.End

// EndOf returns the end of ctx. It calls Done and Deadline.
func EndOf(ctx context.Context) End { return ctxerr.EndOf(ctx) }

// Quiet returns a context with the end, the deadline and the values of ctx, for a call of a caller
// that has a turn: see [End]. The caller passes the error of that call to [Explain] later.
func Quiet(ctx context.Context) context.Context { return ctxerr.Quiet(ctx) }

// Explain returns err, the error of a call under [Quiet], so that it matches the error of ctx and
// its cause if the call has ended because of ctx.
func Explain(ctx context.Context, err error) error { return ctxerr.Explain(ctx, err) }
