package etcdlock

// SemaphoreLock returns the semaphore called name, of one permit, as a lock.
func (c *Client) SemaphoreLock(name string) *Mutex {
	return c.mutex(counting, name, c.semaphore(name), nil)
}
