// Package outcome translates what the engine returns into the terms of package locks.
package outcome

import (
	"context"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/syncq"
)

// Error returns the error of op under ctx, which ended as out says, or nil if it succeeded.
func Error(op string, ctx context.Context, out syncq.Outcome) error {
	switch out {
	case syncq.Acquired:
		return nil
	case syncq.Ended:
		return ctxerr.Ended(op, ctx)
	}
	return ctxerr.Wrap(op, Cause(out))
}

// Try returns the results of a try of op, which ended as out says.
func Try(op string, out syncq.Outcome) (acquired bool, err error) {
	if out == syncq.Acquired || out == syncq.Busy {
		return out == syncq.Acquired, nil
	}
	return false, ctxerr.Wrap(op, Cause(out))
}

// Cause returns the error that stands for out, which is neither a success nor the end of a context.
func Cause(out syncq.Outcome) error {
	switch out {
	case syncq.Refused:
		return locks.ErrDeadlock
	case syncq.TooMany:
		return locks.ErrTooManyHolds
	case syncq.Upgrade:
		return locks.ErrUpgrade
	case syncq.NotHeld:
		return locks.ErrNotHeld
	}
	panic("locks: an acquisition ended without an outcome")
}

// Owners returns the owners with these numbers.
func Owners(numbers []int64) []locks.Owner {
	owners := make([]locks.Owner, len(numbers))
	for i, n := range numbers {
		owners[i] = locks.Owner(n)
	}
	return owners
}
