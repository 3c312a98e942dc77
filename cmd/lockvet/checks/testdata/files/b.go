package files

import "sync"

type conn struct {
	mu sync.Mutex
	of *server
}

func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	delete(c.of.conns, c)
}

func (b *broadcasts) run(updates chan int) {
	for {
		b.mu.Lock()
		b.n += <-updates
		b.mu.Unlock()
	}
}

func (b *broadcasts) again(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.updates <- n
}

func (b *broadcasts) next() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n += <-b.updates
}
