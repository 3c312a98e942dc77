package shop

import (
	"errors"
	"sync"
)

var errFull = errors.New("full")

type Server struct {
	mu    sync.Mutex
	conns map[*Conn]bool
}

type Conn struct {
	mu     sync.Mutex
	server *Server
	open   bool
}

func (s *Server) Add(c *Conn) error {
	s.mu.Lock()
	if len(s.conns) > 99 {
		return errFull
	}
	c.mu.Lock()
	defer c.mu.Lock()
	c.open = true
	s.conns[c] = true
	s.mu.Unlock()
	return nil
}

func (c *Conn) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open = false
	c.server.remove(c) // locks Server.mu
}

func (s *Server) remove(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}
