package syncq

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/park"
)

// Cond is the queue of one condition of a lock. Its methods are for the lock's holder, except where
// they say otherwise.
//
// A waiter is in the condition's queue or in the lock's, and moves between them with the lock's
// guard held. A signal and the limit of the wait both take the waiter out of the condition's queue.
// The first of the two decides how the wait ended; the second finds the waiter gone from that
// queue.
type Cond struct {
	s     *Sync
	r     *Reentrant // the same, if the lock can be re-entered
	queue list       // guarded by s.guard

	tallied *Tallied // whose Sync s is, or nil

	// waiters is queue.len, stored with the guard held after each change of the queue, and before
	// the change of the word that follows. Signal and Broadcast load waiters without the guard.
	//
	// No signal is lost. A waiter stores waiters before it releases the lock: enqueue. A goroutine
	// that changes what the lock guards acquires the lock after that release. So its Signal, with
	// the lock or after it, loads a number that counts the waiter, until the waiter has left the
	// queue. A goroutine that had the lock before the waiter has changed what the waiter looks at
	// before the waiter decided to wait. Its late Signal may miss the waiter, as if it came
	// earlier.
	waiters atomic.Int32
}

// NewCond returns a condition of a lock without owners whose synchronizer is s. The policy is
// s.Policy, or FIFO for a lock whose zero value is FIFO.
func NewCond(s *Sync, policy Policy) *Cond {
	s.guard.Lock()
	s.queue.admitBy(policy)
	s.guard.Unlock()
	return &Cond{s: s}
}

// Sync returns the synchronizer of c's lock.
func (c *Cond) Sync() *Sync { return c.s }

// Holds returns whether c's lock is held exclusively, and the number of shared holds. Any goroutine
// may call it.
func (c *Cond) Holds() (exclusively bool, shared int) {
	if c.tallied != nil {
		return c.tallied.Holds()
	}
	return c.s.Owner() != 0, c.s.Shared()
}

// lock takes the guard, and moves the holds of a Tallied to the word.
func (c *Cond) lock() {
	c.s.guard.Lock()
	if c.tallied != nil {
		c.tallied.moveToWord()
	}
}

// Wait gives up all exclusive holds of p, a goroutine or a party of a lock without owners. It
// waits for a signal until l ends, takes as many holds again, and reports whether a signal ended
// the wait.
func (c *Cond) Wait(p Party, l *park.Limit) (signalled bool) {
	holds := int32(0)
	if c.r != nil {
		holds, c.r.Holds = c.r.Holds, 0
	}
	n := c.s.newNode(p, false)
	l.Open(&n.place)
	guard := c.enqueue(n, drop)
	signalled, queued := true, false
	if l != nil {
		signalled, queued = c.awaitSignal(n, l, guard)
	} else {
		// This is awaitSignal in the frame of the caller: see wait.
		n.place.ParkAndUnlock(guard)
		queued = n.policy == NonFair && !n.compete()
	}
	if queued {
		n.awaitLock()
	}
	n.recycle()
	if c.r != nil {
		c.r.Holds = holds
	}
	if goid.Recording() {
		c.s.Acquired(p)
	}
	return signalled
}

// enqueue puts n in c's queue, and releases the lock by next. Like node.enqueue it may return the
// guard, held, for n's first park to give back. A group of readers is unparked without the guard.
func (c *Cond) enqueue(n *node, next step) (guard *sync.Mutex) {
	s := c.s
	c.lock()
	c.queue.push(n)
	c.waiters.Store(c.queue.len)
	wake, _ := s.advance(next)
	if !n.place.IsOpen() && (wake == nil || wake.wake == nil) {
		unpark(wake)
		return &s.guard
	}
	s.guard.Unlock()
	unpark(wake)
	return nil
}

// awaitSignal waits until a signal or the limit has taken n out of c's queue. It reports in
// signalled whether a signal did, and in queued whether n may still wait for the lock. The guard is
// the result of enqueue.
func (c *Cond) awaitSignal(n *node, l *park.Limit, guard *sync.Mutex) (signalled, queued bool) {
	s := c.s
	if l.Park(&n.place, guard) {
		return true, n.policy == NonFair && !n.compete()
	}
	c.lock()
	signalled, queued = n.in != &c.queue, true
	var wake *node
	if !signalled {
		c.remove(n)
		wake, queued = n.tryEnqueue()
	}
	s.guard.Unlock()
	unpark(wake)
	return signalled, queued
}

// remove takes n out of c's queue. The guard is held.
func (c *Cond) remove(n *node) {
	c.queue.remove(n)
	c.waiters.Store(c.queue.len)
}

// Signal moves the longest waiter to the lock's queue, and reports whether there was one. On return
// the waiter is there; it runs when it holds the lock.
//
// If the lock is free, which only a lock without owners allows, the waiter gets it or is woken.
//
// Without a waiter it is a load of waiters, and takes no guard.
func (c *Cond) Signal() bool { return c.waiters.Load() != 0 && c.transfer(1, 0) == 1 }

// Broadcast moves all waiters to the lock's queue, in their order, and returns their number. Under
// NonFair the lock then goes from one to the next.
func (c *Cond) Broadcast() (moved int) {
	n := int(c.waiters.Load())
	since := time.Duration(0)
	if n > 1 {
		since = due
	}
	for moved < n {
		k := c.transfer(min(part, n-moved), since)
		if k == 0 {
			break // the rest gave up
		}
		moved += k
	}
	return moved
}

// transfer moves the first most waiters, or as many as there are, and returns their number.
func (c *Cond) transfer(most int, since time.Duration) (moved int) {
	s := c.s
	var wake *node
	last := &wake
	c.lock()
	if since == 0 && s.queue.policy() == NonFair && s.queue.head != nil {
		since = clock()
	}
	for n := c.queue.head; n != nil && moved < most; n = c.queue.head {
		c.queue.shift(n)
		n.since = since
		// A lock without owners may be free. Then n gets it at once, and if any goroutine unlocks
		// it now, so does the next waiter.
		if *last = n.push(); *last != nil {
			last = &n.wake
		}
		moved++
	}
	c.waiters.Store(c.queue.len)
	s.guard.Unlock()
	unpark(wake)
	return moved
}

// Len returns the number of waiters, each of which has released the lock. Any goroutine may call
// Len.
func (c *Cond) Len() int {
	c.s.guard.Lock()
	defer c.s.guard.Unlock()
	return int(c.queue.len)
}

// Waiters returns the waiting owners, longest wait first. Any goroutine may call it.
func (c *Cond) Waiters() []int64 { return c.queue.owners(&c.s.guard) }
