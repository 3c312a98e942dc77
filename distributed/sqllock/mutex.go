package sqllock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// checkName returns why name cannot be a lock's.
func checkName(name string) error {
	switch {
	case name == "":
		return errors.New("sqllock: empty name of a lock")
	case len(name) > MaxName:
		return fmt.Errorf("sqllock: name of a lock has %d bytes, at most %d are allowed: it begins with %.32q",
			len(name), MaxName, name)
	case !utf8.ValidString(name) || strings.IndexByte(name, 0) >= 0:
		return fmt.Errorf("sqllock: name of a lock %q is not text, which is UTF-8 without NUL", name)
	}
	return nil
}

// Mutex is a lock of one name and kind: a [lease.Mutex]. If no lock can have the name, an
// acquisition returns an error that says why.
type Mutex struct {
	*lease.Mutex
	bad error
}

var _ locks.Leased = (*Mutex)(nil)

// WithFixedTTL makes holds end after d, without renewal. See [lease.WithFixedTTL].
func WithFixedTTL(d time.Duration) lease.MutexOption { return lease.WithFixedTTL(d) }

func newMutex(c *lease.Client, name string, opts []lease.MutexOption) *Mutex {
	return &Mutex{Mutex: c.Mutex(name, opts...), bad: checkName(name)}
}

// LockContext acquires the lock, and waits for it until ctx ends.
func (m *Mutex) LockContext(ctx context.Context) error {
	if m.bad != nil {
		return m.bad
	}
	return m.Mutex.LockContext(ctx)
}

// TryLockContext acquires the lock if it is free. It waits for the database's answer until ctx
// ends.
func (m *Mutex) TryLockContext(ctx context.Context) (bool, error) {
	if m.bad != nil {
		return false, m.bad
	}
	return m.Mutex.TryLockContext(ctx)
}
