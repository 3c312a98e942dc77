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

// forsake takes n, whose user does not wait after all, out of the queue. A signal that n got meanwhile, from one
// who does hold the lock, goes on to the next waiter.
func (c *Cond) forsake(n *node) {
	s := c.s
	s.guard.Lock()
	waiting := n.in == &c.queue
	if waiting {
		c.queue.remove(n)
	}
	s.guard.Unlock()
	if !waiting {
		s.await(n, c.policy, nil, false)
		c.Signal()
		s.Unlock(c.policy)
	}
	n.recycle()
}

// takeBack takes the outer lock for a waiter that has the gate, and opens the gate for the next one.
func (c *Cond) takeBack() {
	defer c.s.Unlock(c.policy)
	c.outer.Lock()
}
