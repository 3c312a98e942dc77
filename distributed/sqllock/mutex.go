package sqllock

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// checkName returns why name cannot be the name of a lock.
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

func newMutex(c *lease.Client, name string, opts []lease.MutexOption) *lease.Mutex {
	return c.Mutex(name, append([]lease.MutexOption{driver.WithRefusal(checkName(name))}, opts...)...)
}
