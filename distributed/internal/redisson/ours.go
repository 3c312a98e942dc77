package redisson

import (
	"context"
	"errors"
	"strconv"

	"github.com/jucgo/locks"
)

// Ours returns a party with its own owner, which takes the locks that lock returns.
func Ours(lock func(kind, name string) locks.TryLocker) Party {
	owner := locks.NewOwner()
	return func(op, kind, name string) string {
		ctx, cancel := context.WithTimeout(locks.WithOwner(context.Background(), owner), 2*patience)
		defer cancel()
		l := lock(kind, name)
		ok, err := true, error(nil)
		switch op {
		case "lock":
			err = l.LockContext(ctx)
		case "try":
			ok, err = l.TryLockContext(ctx)
		case "unlock":
			if err = l.UnlockContext(ctx); errors.Is(err, locks.ErrNotHeld) || errors.Is(err, locks.ErrLost) {
				ok, err = false, nil
			}
		default:
			err = errors.New("no such operation: " + op)
		}
		if err != nil {
			return err.Error()
		}
		return strconv.FormatBool(ok)
	}
}
