package lockupgrade

import (
	"context"
	"sync"

	"github.com/jucgo/locks/rwlock"
)

type cache struct {
	mu  sync.RWMutex
	own rwlock.RWMutex
	m   map[string]string
}

func (c *cache) get(key string) string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if v, ok := c.m[key]; ok {
		return v
	}
	c.mu.Lock() // want `Lock of c.mu under its read lock, which never gets the lock`
	defer c.mu.Unlock()
	c.m[key] = "new"
	return "new"
}

func (c *cache) context(ctx context.Context) error {
	if err := c.own.RLockContext(ctx); err != nil {
		return err
	}
	defer c.own.RUnlock()
	if err := c.own.LockContext(ctx); err != nil { // want `LockContext of c.own under its read lock`
		return err
	}
	c.own.Unlock()
	return nil
}

func (c *cache) set(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m[key] = "set"
}

func (c *cache) deferred(key string) string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	defer c.set(key) // want `deferred set calls Lock of c.mu before the deferred RUnlock: it never gets the lock`
	return c.m[key]
}

// What follows is right.

func (c *cache) getAgain(key string) string {
	c.mu.RLock()
	v, ok := c.m[key]
	c.mu.RUnlock()
	if !ok {
		c.mu.Lock()
		c.m[key] = "new"
		c.mu.Unlock()
	}
	return v
}

func (c *cache) upgrade() {
	c.own.RLock()
	if c.own.TryUpgrade() {
		c.own.Unlock()
	} else {
		c.own.RUnlock()
	}
	c.own.Lock()
	c.own.Unlock()
}

func (c *cache) downgrade() {
	c.own.Lock()
	c.own.RLock()
	c.own.Unlock()
	c.own.RUnlock()
}

func (c *cache) other(d *cache) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	d.mu.Lock()
	defer d.mu.Unlock()
}

type table struct {
	rw sync.RWMutex
	n  int
}

func (c *table) throughACall() {
	c.rw.RLock()
	defer c.rw.RUnlock()
	c.set(1) // want `set calls Lock of c.rw under its read lock, which never gets the lock`
}

func (c *table) set(n int) {
	c.rw.Lock()
	defer c.rw.Unlock()
	c.n = n
}
