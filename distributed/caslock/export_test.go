package caslock

// Remembered returns how many documents the client remembers.
func (c *Client) Remembered() int {
	c.locks.sights.mu.Lock()
	defer c.locks.sights.mu.Unlock()
	return len(c.locks.sights.byName)
}

// RememberFew makes the client forget documents as soon as it may.
func (c *Client) RememberFew() { c.locks.sights.least, c.semaphores.sights.least = 1, 1 }
