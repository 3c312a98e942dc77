package files

import "sync"

type server struct {
	mu    sync.Mutex
	conns map[*conn]bool
}

func (s *server) add(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	s.conns[c] = true
}

type broadcasts struct {
	mu      sync.Mutex
	updates chan int
	n       int
}

func newBroadcasts() *broadcasts {
	b := &broadcasts{updates: make(chan int)}
	go b.run(b.updates)
	return b
}

func (b *broadcasts) add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.updates <- n
}
