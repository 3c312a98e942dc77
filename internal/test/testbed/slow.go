package testbed

import (
	"context"
	"sync"
	"time"
)

// Slow is a context of a program's own type, whose methods may take their time. Once armed, each of
// Deadline, Done and Err runs a function before it answers, one at a time. Value runs none: a store
// asks for values in the middle of a request.
type Slow struct {
	context.Context

	mu sync.Mutex
	f  func()
}

// Arm makes the methods run f from now on. A nil f ends that.
func (c *Slow) Arm(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.f = f
}

func (c *Slow) run() {
	c.mu.Lock()
	f := c.f
	c.f = nil
	c.mu.Unlock()
	if f != nil {
		f()
		c.Arm(f)
	}
}

// Deadline implements [context.Context].
func (c *Slow) Deadline() (time.Time, bool) { c.run(); return c.Context.Deadline() }

// Done implements [context.Context].
func (c *Slow) Done() <-chan struct{} { c.run(); return c.Context.Done() }

// Err implements [context.Context].
func (c *Slow) Err() error { c.run(); return c.Context.Err() }
