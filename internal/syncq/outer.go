package syncq

// What a condition does with a lock that has no Sync. Such a lock may panic in its Unlock, as one does whose user
// turns out not to hold it, or in its Lock, and others have to get on all the same.

// giveUp releases the outer lock for the waiter n, which is in c's queue already, so that no signal is missed. If that
// panics there is no wait: n is out of the queue again when the panic goes on.
func (c *Cond) giveUp(n *node) {
	released := false
	defer func() {
		if !released {
			c.forsake(n)
		}
	}()
	c.outer.Unlock()
	released = true
}

// forsake takes n, whose user does not wait after all, out of the queue that it is in. A signal that n got meanwhile goes
// on to the next waiter, without a wait for those who were signalled before: they wait for a lock that n's user may still
// have, as one can signal without it.
func (c *Cond) forsake(n *node) {
	s := c.s
	s.guard.Lock()
	signalled := n.in != &c.queue
	var next *node
	switch n.in {
	case &c.queue:
		c.queue.remove(n)
	case &s.queue:
		next = s.cancel(n)
	}
	granted := n.state.Load() == granted
	s.guard.Unlock()
	unpark(next)
	if granted {
		n.place.Park() // the unpark was, or is about to be
	}
	if signalled {
		c.Signal()
	}
	if granted {
		s.Unlock(c.policy)
	}
	n.recycle()
}

// takeBack takes the outer lock for a waiter that has the gate, and opens the gate for the next one.
func (c *Cond) takeBack() {
	defer c.s.Unlock(c.policy)
	c.outer.Lock()
}
