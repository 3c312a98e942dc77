package files

func (c *conn) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	delete(c.of.conns, c)
}

func (b *broadcasts) poll() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n += <-b.updates
}
