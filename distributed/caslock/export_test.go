package caslock

// Remembered returns how many documents the client remembers.
func (c *Client) Remembered() int {
	c.locks.sights.mu.Lock()
	defer c.locks.sights.mu.Unlock()
	return len(c.locks.sights.byName)
}

// RememberFew makes the client forget documents as soon as it may.
func (c *Client) RememberFew() { c.locks.sights.least, c.semaphores.sights.least = 1, 1 }

// Batches returns how many batches of releases gather or are under way.
func (c *Client) Batches() int {
	c.semaphores.mu.Lock()
	defer c.semaphores.mu.Unlock()
	return len(c.semaphores.batches)
}
