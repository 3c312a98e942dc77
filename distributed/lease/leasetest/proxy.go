package leasetest

import (
	"bytes"
	"net"
	"sync"
	"testing"
	"time"
)

// Proxy stands between clients and a server, and causes the faults of networks in their
// connections. A Proxy must not be copied.
type Proxy struct {
	l net.Listener // nil in front of a server in memory

	mu      sync.Mutex
	network string
	server  string
	pairs   map[*pair]struct{}
	refuse  bool
	up      bool // what the client sends is swallowed
	down    bool // what the server sends is swallowed
	delay   time.Duration
	drop    []byte
	nth     int  // the how manieth match it is, from 1
	ends    bool // the connection ends instead of the reply
	dropped int
	asked   int // how often a client has connected or sent something
	match   func(reply []byte) bool
	wg      sync.WaitGroup
}

// pair is a connection of a client, with its connection to the server.
type pair struct {
	client, server net.Conn

	// Guarded by Proxy.mu.
	deaf bool // what the server sends is swallowed
	ends bool // what the server sends next ends the connection
	lost bool // something was swallowed by a cut
}

func (c *pair) close() {
	c.client.Close()
	c.server.Close()
}

// NewProxy starts a Proxy in front of the server at a TCP address until the test ends.
func NewProxy(tb testing.TB, server string) *Proxy {
	tb.Helper()
	p := newProxy(tb, "tcp", server)
	tb.Cleanup(p.close)
	return p
}

func newProxy(tb testing.TB, network, server string) *Proxy {
	tb.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{l: l, network: network, server: server, pairs: make(map[*pair]struct{})}
	p.wg.Go(p.accept)
	return p
}

func (p *Proxy) close() {
	if p.l != nil {
		p.l.Close()
	}
	p.Refuse()
	p.wg.Wait()
}

// Addr returns the address where the proxy listens.
func (p *Proxy) Addr() string { return p.l.Addr().String() }

func (p *Proxy) set(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
}

// Lead directs new connections to another server.
func (p *Proxy) Lead(server string) { p.set(func() { p.server = server }) }

// Cut swallows everything, in both directions, until [Proxy.Heal], except for the ends of
// connections. New connections are accepted, and deaf and dumb.
func (p *Proxy) Cut() { p.set(func() { p.up, p.down = true, true }) }

// CutReplies swallows all data that the server sends, until [Proxy.Heal].
func (p *Proxy) CutReplies() { p.set(func() { p.down = true }) }

// CutRequests swallows all data that the clients send, until [Proxy.Heal].
func (p *Proxy) CutRequests() { p.set(func() { p.up = true }) }

// Delay delays all data that the server sends by d, one piece after the other, until
// [Proxy.Heal].
func (p *Proxy) Delay(d time.Duration) { p.set(func() { p.delay = d }) }

// Refuse ends all connections, and each new connection at once, until [Proxy.Heal].
func (p *Proxy) Refuse() {
	p.set(func() { p.refuse = true })
	p.Reset()
}

// Heal ends the effects of Cut, CutReplies, CutRequests, Delay, Refuse and Swallow. Data that a
// cut has swallowed does not come back. Therefore the connections concerned end: no network
// delivers later data without the data before it.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.up, p.down, p.refuse, p.delay, p.match = false, false, false, 0, nil
	for c := range p.pairs {
		if c.lost {
			c.close()
		}
	}
}

// DropReply swallows the reply to the nth request from now that contains text, counted from 1,
// and everything after it on its connection.
func (p *Proxy) DropReply(text string, nth int) {
	p.set(func() { p.drop, p.nth, p.ends = []byte(text), nth, false })
}

// ResetReply closes the connection of the nth request from now that contains text, counted from 1,
// when the server replies. Thus the client learns at once that the reply is lost, after the server
// has carried the request out.
func (p *Proxy) ResetReply(text string, nth int) {
	p.set(func() { p.drop, p.nth, p.ends = []byte(text), nth, true })
}

// Drops returns how many replies were lost by [Proxy.DropReply] and [Proxy.ResetReply].
func (p *Proxy) Drops() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dropped
}

// Connections returns how many connections of clients there are.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pairs)
}

// Requests returns how often clients have connected or sent something.
func (p *Proxy) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

// Swallow swallows each piece of data from the server for which match returns true, until
// [Proxy.Heal].
func (p *Proxy) Swallow(match func(reply []byte) bool) { p.set(func() { p.match = match }) }

// Reset closes all connections.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pairs {
		c.close()
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.l.Accept()
		if err != nil {
			return
		}
		p.admit(client, func(server string) (net.Conn, error) { return net.Dial(p.network, server) })
	}
}

// admit joins the connection of a client with a connection to the server, which dial opens. It
// closes the client's connection if dial fails, or if connections are refused.
func (p *Proxy) admit(client net.Conn, dial func(server string) (net.Conn, error)) {
	p.mu.Lock()
	p.asked++
	refuse, to := p.refuse, p.server
	p.mu.Unlock()
	if refuse {
		client.Close()
		return
	}
	server, err := dial(to)
	if err != nil {
		client.Close()
		return
	}
	c := &pair{client: client, server: server}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse { // meanwhile
		c.close()
		return
	}
	p.pairs[c] = struct{}{}
	p.wg.Go(func() { p.copy(c, true) })
	p.wg.Go(func() { p.copy(c, false) })
}

// copy forwards the client's data if up is set, or else the server's data.
func (p *Proxy) copy(c *pair, up bool) {
	defer func() {
		c.close()
		p.set(func() { delete(p.pairs, c) })
	}()
	src, dst := c.server, c.client
	if up {
		src, dst = dst, src
	}
	size := 64 << 10
	if p.l == nil { // a net.Pipe carries little, and tests have many of them
		size = 4 << 10
	}
	buf := make([]byte, size)
	for {
		n, err := src.Read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		delay := p.delay
		cut := up && p.up || !up && p.down
		c.lost = c.lost || cut
		swallow, ends := cut, false
		if up {
			p.asked++
			if p.nth > 0 && bytes.Contains(buf[:n], p.drop) {
				if p.nth--; p.nth == 0 {
					p.dropped++
					c.deaf, c.ends = !p.ends, p.ends
				}
			}
		} else {
			swallow = cut || c.deaf || p.match != nil && p.match(buf[:n])
			ends = c.ends
		}
		p.mu.Unlock()
		if ends {
			return
		}
		if p.l == nil {
			time.Sleep(lag())
		}
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
