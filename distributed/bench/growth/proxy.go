package main

import (
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// proxy passes connections on to a server, and counts what goes through them.
type proxy struct {
	l        net.Listener
	to       string
	messages atomic.Int64 // reads from clients
	bytes    atomic.Int64 // of both directions

	mu    sync.Mutex
	conns map[net.Conn]bool
	ended bool
}

func newProxy(to string) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{l: l, to: to, conns: make(map[net.Conn]bool)}
	go p.serve()
	return p, nil
}

func (p *proxy) addr() string { return p.l.Addr().String() }

func (p *proxy) calls() (messages, bytes int64) { return p.messages.Load(), p.bytes.Load() }

func (p *proxy) serve() {
	for {
		from, err := p.l.Accept()
		if err != nil {
			return
		}
		to, err := net.DialTimeout("tcp", p.to, 10*time.Second)
		if err != nil {
			from.Close()
			continue
		}
		if !p.add(from) || !p.add(to) {
			from.Close()
			to.Close()
			return
		}
		go p.pass(from, to, &p.messages)
		go p.pass(to, from, nil)
	}
}

func (p *proxy) add(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = true
	return !p.ended
}

// pass copies one direction until either side ends.
func (p *proxy) pass(from, to net.Conn, messages *atomic.Int64) {
	defer from.Close()
	defer to.Close()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, from)
	}()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			p.bytes.Add(int64(n))
			if messages != nil {
				messages.Add(1)
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (p *proxy) close() {
	p.l.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for c := range p.conns {
		c.Close()
	}
}
