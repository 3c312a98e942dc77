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
		return errors.New("the name is empty")
	case len(name) > MaxName:
		return fmt.Errorf("the name has %d bytes, at most %d are allowed", len(name), MaxName)
	case !utf8.ValidString(name) || strings.IndexByte(name, 0) >= 0:
		return errors.New("the name is not text, which is UTF-8 without NUL")
	}
	return nil
}

// Mutex is a lock of one name and kind, with the rules of a [lease.Mutex]. If no lock can have the
// name, an acquisition returns an error that says why.
type Mutex struct{ m *lease.Mutex }

var (
	_ locks.Leased    = (*Mutex)(nil)
	_ locks.Inspector = (*Mutex)(nil)
)

// WithFixedTTL makes holds end after d, without renewal. See [lease.WithFixedTTL].
func WithFixedTTL(d time.Duration) lease.MutexOption { return lease.WithFixedTTL(d) }

func newMutex(c *lease.Client, name string, opts []lease.MutexOption) *Mutex {
	return &Mutex{c.Mutex(name, append([]lease.MutexOption{lease.WithRefusal(checkName(name))}, opts...)...)}
}

// LockContext acquires the lock, and waits for it until ctx ends. See [lease.Mutex.LockContext].
func (l *Mutex) LockContext(ctx context.Context) error { return l.m.LockContext(ctx) }

// TryLockContext acquires the lock if nobody holds it. It waits for the database's answer until
// ctx ends.
func (l *Mutex) TryLockContext(ctx context.Context) (bool, error) { return l.m.TryLockContext(ctx) }

// UnlockContext releases one hold of the caller. See [lease.Mutex.UnlockContext] for what an error
// says.
func (l *Mutex) UnlockContext(ctx context.Context) error { return l.m.UnlockContext(ctx) }

// Hold returns the caller's hold, or an error matching [locks.ErrNotHeld].
func (l *Mutex) Hold(ctx context.Context) (locks.Hold, error) { return l.m.Hold(ctx) }

// ForceUnlock frees the lock of a [Table] without its holder's consent, and reports whether it was
// held. See [lease.Mutex.ForceUnlock]. Other locks return [errors.ErrUnsupported].
func (l *Mutex) ForceUnlock(ctx context.Context) (bool, error) { return l.m.ForceUnlock(ctx) }

// Name returns the name of the lock.
func (l *Mutex) Name() string { return l.m.Name() }

// LockKey gives [locks.Multi] its order, the same one in every process. See [lease.Mutex.LockKey].
func (l *Mutex) LockKey() string { return l.m.LockKey() }

// SameLock reports whether other is this lock. See [lease.Mutex.SameLock].
func (l *Mutex) SameLock(ctx context.Context, other locks.TryLocker) (bool, error) {
	if o, ok := other.(*Mutex); ok {
		other = o.m
	}
	return l.m.SameLock(ctx, other)
}

// QueueLength returns how many goroutines of this process wait for their turn at the lock.
func (l *Mutex) QueueLength() int { return l.m.QueueLength() }

// String describes the lock and its state in this process.
func (l *Mutex) String() string { return l.m.String() }
