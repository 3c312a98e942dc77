package sqllock

import (
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

// Mutex is a lock of one name and kind: a [lease.Mutex]. If no lock can have the name, an
// acquisition returns an error that says why.
type Mutex struct {
	*lease.Mutex
}

var (
	_ locks.Leased    = (*Mutex)(nil)
	_ locks.Inspector = (*Mutex)(nil)
)

// WithFixedTTL makes holds end after d, without renewal. See [lease.WithFixedTTL].
func WithFixedTTL(d time.Duration) lease.MutexOption { return lease.WithFixedTTL(d) }

func newMutex(c *lease.Client, name string, opts []lease.MutexOption) *Mutex {
	return &Mutex{c.Mutex(name, append([]lease.MutexOption{lease.Refuse(checkName(name))}, opts...)...)}
}
