package lease

import (
	"context"
	"errors"
	"fmt"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// The errors by which programs tell the answers of a store apart. They are the errors of package
// driver, which has the table of their meanings.
var (
	// ErrRefused is matched by errors that say that a request was surely not carried out.
	ErrRefused = driver.ErrRefused
	// ErrLogin is matched by errors that say that the store does not accept the password, the
	// token or the certificate.
	ErrLogin = driver.ErrLogin
	// ErrUnavailable is matched by temporary errors, after which an acquisition asks again, see
	// [WithRetry].
	ErrUnavailable = driver.ErrUnavailable
	// ErrUnreachable is matched by errors that say that no connection to the store could be made.
	// They match [ErrUnavailable] too. The store's address may be wrong.
	ErrUnreachable = driver.ErrUnreachable
)

func (l *Mutex) fail(ctx context.Context, op string, err error) error {
	if l.c == nil {
		if err != nil {
			err = fmt.Errorf("lease: %s %q: %w", op, shorten(l.name), err)
		}
		return err
	}
	return l.c.fail(ctx, op, l.name, err)
}

// shorten is a name, or the beginning of a long one.
func shorten(name string) string {
	if len(name) > 255 {
		return name[:64] + "..."
	}
	return name
}

// final reports whether err is an answer about the lock that no later request changes: the lock
// under the name is not the hold's.
func final(err error) bool { return errors.Is(err, locks.ErrForeign) || errors.Is(err, locks.ErrLost) }

// isRefusal reports whether the server has refused the request or the connection, and not only at
// this moment.
func isRefusal(err error) bool { return errors.Is(err, ErrRefused) && !errors.Is(err, ErrUnavailable) }

// transient reports whether a waiter asks again after err. It does not ask again if the server
// has refused the request and not only the connection.
func transient(err error) bool {
	return !final(err) && (!isRefusal(err) || errors.Is(err, ErrLogin))
}
