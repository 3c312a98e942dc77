package ephemeral

import (
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/zklock"
	"github.com/jucgo/locks/distributed/zklock/internal/hook"
)

// New returns the lock called name that is a single node. It is owned by a goroutine or by an
// explicit owner, and reentrant. See the package for when not to use it.
func New(c *zklock.Client, name string) *lease.Mutex {
	return c.Mutex(name, driver.WithData(hook.Ephemeral))
}
