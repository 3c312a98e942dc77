package syncq

import (
	"context"
	"math"
	"sync"
	"time"
)

// Cond is the queue of one condition of a lock. Its methods are for the lock's holder,
// except where they say otherwise.
//
// A waiter is in the condition's queue or in the lock's, and moves between
// them with the lock's guard held. Whether a wait ends by a signal or by its limit is who
// takes the waiter out of the condition's queue; the other finds it gone.
type Cond struct {
	s      *Sync
	policy Policy
	outer  sync.Locker
	queue  list // guarded by s.guard
}

// NewCond returns a condition of the lock whose synchronizer is s.
func NewCond(s *Sync, policy Policy) *Cond { return &Cond{s: s, policy: policy} }

// NewCondOver returns a condition of a lock that has no Sync. In place of the lock's
// own queue it has a gate, a Sync that is free but while waiters come back: each
// takes the lock behind the gate and only then lets the next one through,
// so that a broadcast does not send them all at the lock together.
func NewCondOver(l sync.Locker) *Cond { return &Cond{s: new(Sync), policy: FIFO, outer: l} }

// Sync returns the synchronizer of c's lock.
func (c *Cond) Sync() *Sync { return c.s }

// Wait gives up all exclusive holds, waits for a signal, and takes as many holds again.
func (c *Cond) Wait(p Party) { c.wait(newNode(p, false), nil) }

// WaitFor is Wait for at most d, and reports whether a signal ended it. Either way the
// lock is held again.
func (c *Cond) WaitFor(p Party, d time.Duration) bool {
	l := after(d)
	defer l.stop()
	_, signalled := c.wait(newNode(p, false), &l)
	return signalled
}

// WaitContext is Wait until ctx ends, and reports whether a signal ended it. Either
// way the lock is held again.
func (c *Cond) WaitContext(ctx context.Context, p Party) bool {
	_, signalled := c.WaitOwned(ctx, p)
	return signalled
}

// WaitOwned is WaitContext for an owner of which another goroutine may just have released the lock, or
// begun to share it too. Then it does nothing, and reports that it has not waited.
func (c *Cond) WaitOwned(ctx context.Context, p Party) (waited, signalled bool) {
	l := until(ctx)
	return c.wait(newNode(p, false), &l)
}

func (c *Cond) wait(n *node, l *limit) (waited, signalled bool) {
	s := c.s
	if l != nil {
		l.permit = n.place.Open()
	}
	p, owner := Party{n.value, n.who, n.kind}, int64(n.value)>>shift
	var holds int64
	s.guard.Lock()
	if c.outer == nil {
		if explicit(owner) && (!s.HeldBy(owner) || s.covered.own() > 0) {
			s.guard.Unlock()
			n.recycle()
			return false, false
		}
		holds, s.Holds = s.Holds, 0
	}
	n.patient = l == nil && c.outer == nil // who waits at a gate may have to leave it
	c.queue.push(n)
	if c.outer != nil {
		s.guard.Unlock()
		c.giveUp(n)
	} else {
		next := s.release(c.policy, 0)
		s.guard.Unlock()
		unpark(next)
	}

	if l == nil {
		n.place.Wait()
		for !s.mine(n, c.policy) {
			n.place.Wait()
		}
		signalled = true
	} else {
		signalled = c.awaitLimited(n, l)
	}
	n.recycle()
	if c.outer != nil {
		c.takeBack()
		return true, signalled
	}
	if holds > 0 {
		s.restore(p, c.policy, holds)
	}
	if explicit(owner) {
		s.siblings(owner)
	}
	if Recording() && s.Kind() != nil {
		s.Record(p.who)
	}
	return true, signalled
}

// restore gives p, who has come back to the lock, as many holds again as it had beyond the first.
//
// It adds them: other goroutines of an explicit owner may have come in together with this one. And they may have given a
// hold back already, and the lock with it, since no more than one showed; then that was the first of those that the wait gave
// up, and the rest takes the lock once more.
func (s *Sync) restore(p Party, policy Policy, holds int64) {
	for ; holds > 0; holds-- {
		s.guard.Lock()
		held := s.HeldBy(int64(p.value) >> shift)
		if held {
			s.Holds += holds
		}
		s.guard.Unlock()
		if held {
			return
		}
		s.Lock(p, policy)
	}
}

// awaitLimited waits in c, then in the lock's queue until n holds the lock, and
// reports whether it left c by a signal.
func (c *Cond) awaitLimited(n *node, l *limit) (signalled bool) {
	s := c.s
	if l.park(n) {
		s.await(n, c.policy, nil, true)
		return true
	}
	s.guard.Lock()
	signalled = n.in != &c.queue
	queued := true
	if !signalled {
		c.queue.remove(n)
		queued = s.enqueueGuarded(n, c.policy)
	}
	s.guard.Unlock()
	if queued {
		if s.readers.Load() != nil {
			s.Left(c.policy)
		}
		s.await(n, c.policy, nil, false)
	}
	return signalled
}

// Signal moves the longest waiter to the lock's queue, and reports whether
// there was one. On return it is there; it runs when the lock is its own.
//
// If the lock is free, which only a lock without owners allows, the waiter gets it or
// is roused.
func (c *Cond) Signal() bool {
	return c.transfer(1) == 1
}

// Broadcast moves all waiters to the lock's queue, in their order, and returns their number.
func (c *Cond) Broadcast() int {
	return c.transfer(math.MaxInt)
}

// transfer moves the first most waiters, or as many as there are, and returns their number.
func (c *Cond) transfer(most int) (k int) {
	s := c.s
	at := due
	s.guard.Lock()
	if c.policy == NonFair && min(most, c.queue.len) == 1 {
		at = now()
	}
	for n := c.queue.head; n != nil && k < most; n = c.queue.head {
		c.queue.remove(n)
		n.since = at
		s.transfer(n, c.policy)
		k++
	}
	if c.policy == NonFair && k > 1 {
		s.owe()
	}
	s.guard.Unlock()
	if k > 0 && s.readers.Load() != nil {
		s.Left(c.policy) // if another goroutine of the signaller's owner has given the lock up
	}
	return k
}

// owe has the next release hand the lock over, unless it is free or the first in the queue was there before those who are
// due, who come after it. The guard is held, and somebody is in the queue.
func (s *Sync) owe() {
	for s.queue.head.since == due {
		w := s.Word.Load()
		if free(w) || s.Word.CompareAndSwap(w, w&^woken|handoff) {
			return
		}
	}
}

// transfer puts the waiter n, whose user is parked, in the lock's queue. The
// guard is held.
func (s *Sync) transfer(n *node, policy Policy) {
	for {
		w := s.Word.Load()
		switch {
		case !free(w):
			if w&queued != 0 || s.Word.CompareAndSwap(w, w&^biased|queued) {
				s.join(n)
				return
			}
		case policy == FIFO: // free, so nobody waits
			if s.Word.CompareAndSwap(w, n.value) {
				n.state.Store(granted)
				n.place.Unpark()
				return
			}
		case s.Word.CompareAndSwap(w, queued|woken):
			s.join(n)
			if w&woken == 0 {
				unpark(s.rouse())
			}
			return
		}
	}
}

// Len returns the number of waiters. Anybody may call it.
func (c *Cond) Len() int {
	c.s.guard.Lock()
	defer c.s.guard.Unlock()
	return c.queue.len
}

// Waiters returns the waiting parties, longest wait first. Anybody may call it.
func (c *Cond) Waiters() []int64 {
	c.s.guard.Lock()
	defer c.s.guard.Unlock()
	return c.queue.owners()
}
