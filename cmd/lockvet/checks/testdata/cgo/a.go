package cgo

// static int one(void) { return 1; }
import "C"

import "sync"

type counter struct {
	mu sync.Mutex
	n  C.int
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Lock() // found: deferlock
	c.n += C.one()
}

func (c *counter) get() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return int(c.n)
}

func (c *counter) more() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	//lockvet:ignore doublelock so does one alone on its line
	return 1 + c.get()
}

func (c *counter) twice() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return 2 * c.get() //lockvet:ignore doublelock a comment of the file counts too
}
