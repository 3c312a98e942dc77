package caslock

// Remembered returns how many documents the client remembers.
func (c *Client) Remembered() int {
	c.store.sights.mu.Lock()
	defer c.store.sights.mu.Unlock()
	return len(c.store.sights.byName)
}
