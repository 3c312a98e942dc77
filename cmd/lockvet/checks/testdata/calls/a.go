// Package calls has mistakes that calls lead to, and the same code without them.
package calls

import (
	"errors"
	"fmt"
	"sync"
)

var errFull = errors.New("full")

// A callee releases the lock of its caller.

type stream struct {
	mu  sync.Mutex
	n   int
	err error
}

func (s *stream) finish(err error) {
	s.err = err
	s.mu.Unlock()
}

func (s *stream) finished() error {
	s.mu.Lock()
	if s.n > 9 {
		s.finish(errFull)
		return errFull
	}
	s.mu.Unlock()
	return nil
}

// The release by finish excuses no other function.
func (s *stream) forgotten(x bool) int {
	s.mu.Lock()
	if x {
		return 0 // found: missingunlock
	}
	s.mu.Unlock()
	return 1
}

func (s *stream) twice() {
	s.mu.Lock()
	s.finish(nil)
	s.mu.Unlock() // found: doubleunlock
}

func (s *stream) deferredCall(x bool) error {
	s.mu.Lock()
	defer s.finish(nil)
	if x {
		return errFull
	}
	return nil
}

// A callee acquires the lock for its caller.

type table struct {
	mu sync.Mutex
	n  int
}

func (t *table) enter() { t.mu.Lock() }

func (t *table) leave() { t.mu.Unlock() }

func (t *table) visit(x bool) int {
	t.enter()
	if x {
		return 0 // found: missingunlock
	}
	t.leave()
	return 1
}

func (t *table) begin(n int) error {
	t.mu.Lock()
	if n > t.n {
		t.mu.Unlock()
		return errFull
	}
	return nil
}

func (t *table) began(x bool) int {
	if err := t.begin(1); err != nil {
		return 0
	}
	if x {
		return 1 // found: missingunlock
	}
	t.leave()
	return 2
}

// A literal called at once, and one in a variable.

type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) atOnce() {
	c.mu.Lock()
	defer c.mu.Unlock()
	func() { // found: doublelock
		c.mu.Lock()
		defer c.mu.Unlock()
		c.n++
	}()
}

func (c *counter) variable() {
	add := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.n++
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	add() // found: doublelock
}

func (c *counter) methodValue() {
	get := c.get
	c.mu.Lock()
	defer c.mu.Unlock()
	get() // found: doublelock
}

func (c *counter) get() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

func (c *counter) unlocker(x bool) int {
	c.mu.Lock()
	unlock := func() { c.mu.Unlock() }
	if x {
		return 1 // found: missingunlock
	}
	unlock()
	return 2
}

func (c *counter) between() {
	add := func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.n++
	}
	c.mu.Lock()
	c.mu.Unlock()
	add()
}

// fmt calls String and Error.

type printed struct {
	mu sync.Mutex
	n  int
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprint(p.n)
}

func (p *printed) print() {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Printf("%d of %v\n", p.n, p) // found: doublelock
}

func (p *printed) address() {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Printf("%p %T %d\n", p, p, p.n)
}

// A callback in a field with one assignment.

type watcher struct {
	mu     sync.Mutex
	notify func()
	other  func()
	seen   int
}

func newWatcher() *watcher {
	w := &watcher{}
	w.notify = w.see
	w.other = w.see
	if w.seen > 0 {
		w.other = func() {}
	}
	return w
}

func (w *watcher) see() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen++
}

func (w *watcher) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notify() // found: doublelock
}

func (w *watcher) fireOther() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.other()
}

// The L of a condition is the lock of which it was made.

type box struct {
	mu   sync.RWMutex
	cond *sync.Cond
	full bool
}

func newBox() *box {
	b := &box{}
	b.cond = sync.NewCond(&b.mu)
	return b
}

func (b *box) put() {
	b.cond.L.Lock()
	defer b.cond.L.Unlock()
	b.full = b.empty() // found: doublelock
}

func (b *box) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.full
}

func (b *box) forget() {
	b.cond.L.Lock()
	if b.full {
		return // found: missingunlock
	}
	b.mu.Unlock()
}

// The last round of a loop may end with the lock, but a further round may not.

func (c *counter) rounds(list []int) {
	for i := 0; i < len(list); i++ {
		c.mu.Lock()
		if list[i] > 9 {
			continue // found: missingunlock
		}
		if i > 5 {
			break
		}
		c.mu.Unlock()
	}
	c.mu.Unlock()
}

// A lock that another function of other code releases later.

type handle struct{ mu sync.Mutex }

func (h *handle) start(x bool) bool {
	h.mu.Lock()
	if x {
		return true
	}
	h.mu.Unlock()
	return false
}

func (h *handle) End() { h.mu.Unlock() }
