package redislock_test

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// proxy stands between a client and a server, and does to their connections what networks do.
type proxy struct {
	l net.Listener

	mu     sync.Mutex
	server string
	conns  map[net.Conn]struct{}
	up     bool // what the client sends is swallowed
	down   bool // what the server sends is swallowed
	delay  time.Duration
	// drop has the reply swallowed to the next request that contains these bytes, and everything after it on
	// its connection.
	drop    []byte
	dropped int
	match   func(reply []byte) bool // swallows what the server sends, if not nil
	wg      sync.WaitGroup
}

func startProxy(tb testing.TB, server string) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	p := &proxy{l: l, server: server, conns: make(map[net.Conn]struct{})}
	p.wg.Go(p.accept)
	tb.Cleanup(func() {
		l.Close()
		p.reset()
		p.wg.Wait()
	})
	return p
}

func (p *proxy) addr() string { return p.l.Addr().String() }

func (p *proxy) set(f func(p *proxy)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(p)
}

// cut swallows everything, in both directions, until heal.
func (p *proxy) cut()  { p.set(func(p *proxy) { p.up, p.down = true, true }) }
func (p *proxy) heal() { p.set(func(p *proxy) { p.up, p.down, p.delay = false, false, 0 }) }

// dropReply has the reply to the next request swallowed that contains text.
func (p *proxy) dropReply(text string) { p.set(func(p *proxy) { p.drop = []byte(text) }) }

// drops returns how many replies were swallowed by dropReply.
func (p *proxy) drops() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped
}

// reset closes all connections.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.Close()
	}
}

func (p *proxy) accept() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		addr := p.server
		p.mu.Unlock()
		server, err := net.Dial("tcp", addr)
		if err != nil {
			client.Close()
			continue
		}
		p.set(func(p *proxy) { p.conns[client], p.conns[server] = struct{}{}, struct{}{} })
		deaf := new(bool) // guarded by p.mu
		p.wg.Go(func() { p.copy(server, client, true, deaf) })
		p.wg.Go(func() { p.copy(client, server, false, deaf) })
	}
}

// copy passes on what comes from src, which is the client if up is set.
func (p *proxy) copy(dst, src net.Conn, up bool, deaf *bool) {
	defer func() {
		dst.Close()
		src.Close()
		p.set(func(p *proxy) { delete(p.conns, dst); delete(p.conns, src) })
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := src.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		swallow, delay := p.down || *deaf, p.delay
		if !up && p.match != nil && p.match(buf[:n]) {
			swallow = true
		}
		if up {
			swallow = p.up
			if len(p.drop) > 0 && bytes.Contains(buf[:n], p.drop) {
				p.drop = nil
				p.dropped++
				*deaf = true
			}
		}
		p.mu.Unlock()
		if delay > 0 && !up {
			time.Sleep(delay)
		}
		if swallow {
			continue
		}
		if _, err := dst.Write(buf[:n]); err != nil {
			return
		}
	}
}
