package doublelock

import (
	"context"
	"sync"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
)

type cache struct {
	mu    sync.Mutex
	rw    sync.RWMutex
	fair  fair.Mutex
	inner struct{ sync.Mutex }
	m     map[string]int
}

func (c *cache) size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.m)
}

func (c *cache) empty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size() == 0 // want `size calls Lock of c.mu, which this function already holds: it waits for itself`
}

// Both branches make one mistake.
func (c *cache) emptyOrNot(yes bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if yes {
		return c.size() == 0 // want `size calls Lock of c.mu, which this function already holds: it waits for itself`
	}
	return c.size() > 0
}

func (c *cache) sizeOrNone() int {
	if c == nil {
		return 0
	}
	return c.size()
}

func (c *cache) notNil() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sizeOrNone() // want `sizeOrNone calls size, which calls Lock of c.mu, which this function already holds`
}

func (c *cache) twice() {
	c.mu.Lock()
	c.mu.Lock() // want `Lock of c.mu, which this function already holds: it waits for itself`
	c.mu.Unlock()
}

func (c *cache) deeper() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.clear(true) { // want `clear calls drop, which calls Lock of c.mu, which this function already holds`
		c.m = nil
	}
}

func (c *cache) clear(really bool) bool {
	if really {
		drop(c, 1)
	} else {
		drop(c, 2)
	}
	return true
}

func drop(c *cache, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m[""] = n
}

func (c *cache) embedded() {
	c.inner.Lock()
	defer c.inner.Unlock()
	c.embeddedToo() // want `embeddedToo calls Lock of c.inner, which this function already holds`
}

func (c *cache) embeddedToo() {
	c.inner.Lock()
	c.inner.Unlock()
}

func (c *cache) withContext(ctx context.Context) error {
	c.fair.Lock()
	defer c.fair.Unlock()
	return c.contextToo(ctx) // want `contextToo calls LockContext of c.fair, which this function already holds`
}

func (c *cache) contextToo(ctx context.Context) error {
	if err := c.fair.LockContext(ctx); err != nil {
		return err
	}
	c.fair.Unlock()
	return nil
}

func (c *cache) writes() {
	c.rw.Lock()
	defer c.rw.Unlock()
	c.reads() // want `reads calls RLock of c.rw, which this function already holds`
}

func (c *cache) reads() int {
	c.rw.RLock()
	defer c.rw.RUnlock()
	return len(c.m)
}

func (c *cache) readsTwice() int {
	c.rw.RLock()
	defer c.rw.RUnlock()
	return c.reads() // want `reads calls RLock of c.rw, which this function already reads: a writer that waits between them stops both`
}

var table sync.Mutex

func global() {
	table.Lock()
	defer table.Unlock()
	globalToo() // want `globalToo calls Lock of table, which this function already holds`
}

func globalToo() {
	table.Lock()
	defer table.Unlock()
}

func each(caches []*cache) {
	for _, c := range caches {
		c.mu.Lock()
		c.size() // want `size calls Lock of c.mu, which this function already holds`
		c.mu.Unlock()
	}
}

// What follows is right.

func (c *cache) sometimes() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ifEmpty(func() int { return 1 })
}

// ifEmpty does not acquire the lock on every path.
func (c *cache) ifEmpty(f func() int) {
	if len(c.m) > 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m[""] = f()
}

func (c *cache) orElse() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.full()
}

func (c *cache) full() bool { return len(c.m) == 0 || c.size() > 9 }

func (c *cache) after() {
	c.mu.Lock()
	c.m = nil
	c.mu.Unlock()
	c.size()
	go c.size()
	defer c.size()
}

func (c *cache) another(other *cache) {
	c.mu.Lock()
	defer c.mu.Unlock()
	other.size()
}

func (c *cache) elsewhere() {
	c.mu.Lock()
	defer c.mu.Unlock()
	go c.size()
	go func() { c.size() }()
}

type reader struct {
	sync.RWMutex
	n int
}

// No function writes.
func (r *reader) sum() int {
	r.RLock()
	defer r.RUnlock()
	return r.get() + 1
}

func (r *reader) get() int {
	r.RLock()
	defer r.RUnlock()
	return r.n
}

type released struct{ mu sync.Mutex }

func (r *released) work() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pause()
	r.again() // want `again calls Lock of r.mu, which this function already holds: it waits for itself`
}

// pause gives the lock of its caller up for a while.
func (r *released) pause() {
	r.mu.Unlock()
	r.mu.Lock()
}

func (r *released) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
}

type reenters struct {
	mu  reentrant.Mutex
	any locks.Locker
}

func (r *reenters) work() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.again()
}

func (r *reenters) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
}

func (r *reenters) unknown(ctx context.Context) error {
	if err := r.any.LockContext(ctx); err != nil {
		return err
	}
	if err := r.any.LockContext(ctx); err != nil {
		return err
	}
	return r.any.UnlockContext(ctx)
}

type node struct {
	mu   sync.Mutex
	next *node
	n    int
}

func (n *node) sum() (sum int) {
	for ; n != nil; n = n.next {
		n.mu.Lock()
		sum += n.n
		defer n.mu.Unlock()
	}
	return sum
}

func (n *node) deep() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.next == nil {
		return n.n
	}
	return n.n + n.next.deep()
}

func (n *node) advanced() {
	n.mu.Lock()
	defer n.mu.Unlock()
	last(n)
}

func last(n *node) {
	for n.next != nil {
		n = n.next
	}
	n.mu.Lock()
	defer n.mu.Unlock()
}

type window struct{ current *node }

func (w *window) move(to *node) {
	w.current.mu.Lock()
	defer w.current.mu.Unlock()
	w.set(to)
	w.current.mu.Lock()
	defer w.current.mu.Unlock()
}

func (w *window) set(to *node) { w.current = to }

var current = &node{}

func renewed() {
	current.mu.Lock()
	renew()
	current.mu.Lock()
}

func renew() { current = &node{} }
