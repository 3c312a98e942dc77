package lease

import (
	"context"
	"errors"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
)

// check returns the error of ctx if it is nil or has ended.
func check(ctx context.Context) error {
	if ctx == nil {
		return locks.ErrNilContext
	}
	if ctx.Err() != nil {
		return adapter.Ended(ctx)
	}
	return nil
}

func (l *Mutex) fail(ctx context.Context, op string, err error) error {
	return l.c.fail(ctx, op, l.name, err)
}

// shown is a name, or the beginning of a long one.
func shown(name string) string {
	if len(name) > 255 {
		return name[:64] + "..."
	}
	return name
}

// Mark returns err so that it also matches marks, such as [ErrRefused]. Its text is the text of
// err.
func Mark(err error, marks ...error) error { return marked{err, marks} }

type marked struct {
	error
	marks []error
}

func (m marked) Unwrap() []error { return append([]error{m.error}, m.marks...) }

// final reports whether err is an answer about the lock that no later request changes: the lock
// under the name is not the hold's.
func final(err error) bool { return errors.Is(err, locks.ErrForeign) || errors.Is(err, locks.ErrLost) }

// refused reports whether the server has refused the request or the connection, and not only at
// this moment.
func refused(err error) bool { return errors.Is(err, ErrRefused) && !errors.Is(err, ErrUnavailable) }

// transient reports whether a waiter asks again after err. It does not ask again if the server
// has refused the request and not only the connection.
func transient(err error) bool {
	return !final(err) && (!refused(err) || errors.Is(err, ErrLogin))
}
