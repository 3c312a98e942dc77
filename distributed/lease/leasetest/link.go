package leasetest

import (
	"context"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// Link is the network between one client and all servers of its store. Each fault happens to all
// connections. Connections go through the Link if the client dials with [Link.DialContext], or
// connects to the address of a [Link.Proxy]. A client of a server in memory connects with
// [Link.Pipe]. A Link must not be copied.
type Link struct {
	tb   testing.TB
	ttl  time.Duration
	port *process // in a simulation, or nil
	nth  int      // the server's number of Server, or -1

	mu      sync.Mutex
	proxies map[string]*Proxy // by network and address, "" in front of the server in memory
	servers map[int]*Link     // of Server
	trouble func(*Proxy)      // what has been done to the proxies, or nil
}

// NewLink returns a Link that lasts until the test ends.
func NewLink(tb testing.TB) *Link {
	l := &Link{tb: tb, nth: -1, proxies: make(map[string]*Proxy)}
	tb.Cleanup(l.close) // when the clients have been closed
	return l
}

// close closes all proxies. It waits for their connections without l.mu: in a bubble of
// testing/synctest, time would stand still while a client that connects waits for l.mu.
func (l *Link) close() {
	l.do((*Proxy).Refuse)
	l.mu.Lock()
	l.trouble = (*Proxy).close // of those to come, which have no connections
	proxies := slices.Collect(maps.Values(l.proxies))
	servers := slices.Collect(maps.Values(l.servers))
	l.mu.Unlock()
	for _, p := range proxies {
		p.close()
	}
	for _, s := range servers {
		s.close()
	}
}

// Server returns the network between the client and the nth of several servers, counted from 0. A
// fault of l happens to the connections with each server. A fault of the Link that Server returns
// happens to the connections with this server. See World.Servers.
func (l *Link) Server(n int) *Link {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.servers[n]
	if s == nil {
		s = &Link{tb: l.tb, ttl: l.ttl, port: l.port, nth: n, proxies: make(map[string]*Proxy), trouble: l.trouble}
		if l.servers == nil {
			l.servers = make(map[int]*Link)
		}
		l.servers[n] = s
	}
	return s
}

// TTL is how long the client's sessions should last if they have a time of their own, as with a
// driver.Session. It is a minute unless the check waits for the end of a session.
func (l *Link) TTL() time.Duration {
	if l.ttl <= 0 {
		return time.Minute
	}
	return l.ttl
}

// Proxy returns the Proxy in front of the server at a TCP address.
func (l *Link) Proxy(server string) *Proxy { return l.proxy("tcp", server) }

func (l *Link) proxy(network, server string) *Proxy {
	return l.proxyOf(network+" "+server, func() *Proxy { return newProxy(l.tb, network, server) })
}

// proxyOf returns the Proxy with this key, which open opens the first time.
func (l *Link) proxyOf(key string, open func() *Proxy) *Proxy {
	l.mu.Lock()
	defer l.mu.Unlock()
	p, ok := l.proxies[key]
	if !ok {
		p = open()
		l.proxies[key] = p
		if l.trouble != nil {
			l.trouble(p)
		}
	}
	return p
}

// DialContext connects to a server through the Link. It has the signature of the DialContext of
// net.Dialer.
func (l *Link) DialContext(ctx context.Context, network, server string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, "tcp", l.proxy(network, server).Addr())
}

// Pipe connects to a server in memory through the Link, and returns the client's end. It calls
// serve in a new goroutine, with the server's end: a net.Pipe. Each piece of data arrives after a
// random time of less than a millisecond.
//
// Pipe opens no socket, so it works in a bubble of testing/synctest: see [TestInVirtualTime].
func (l *Link) Pipe(serve func(conn net.Conn)) net.Conn {
	client, end := net.Pipe()
	if l.port != nil {
		l.port.below.Store(true)
	}
	p := l.proxyOf("", func() *Proxy { return &Proxy{pairs: make(map[*pair]struct{})} })
	p.admit(end, func(string) (net.Conn, error) {
		server, end := net.Pipe()
		go serve(end)
		return server, nil
	})
	return client
}

// lag returns how long a message in memory takes.
func lag() time.Duration { return time.Duration(50+rand.IntN(950)) * time.Microsecond }

// Used says whether the client has ever connected through the Link.
func (l *Link) Used() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.proxies {
		if p.Requests() > 0 {
			return true
		}
	}
	for _, s := range l.servers {
		if s.Used() {
			return true
		}
	}
	return false
}

// Connections returns how many connections there are.
func (l *Link) Connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, p := range l.proxies {
		n += p.Connections()
	}
	for _, s := range l.servers {
		n += s.Connections()
	}
	return n
}

// do calls trouble for all proxies, and for each later proxy.
func (l *Link) do(trouble func(*Proxy)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trouble = trouble
	for _, p := range l.proxies {
		trouble(p)
	}
	for _, s := range l.servers {
		s.do(trouble)
	}
}

// Cut is [Proxy.Cut] of all connections.
func (l *Link) Cut() { l.do((*Proxy).Cut) }

// CutReplies is [Proxy.CutReplies] of all connections.
func (l *Link) CutReplies() { l.do((*Proxy).CutReplies) }

// CutRequests is [Proxy.CutRequests] of all connections.
func (l *Link) CutRequests() { l.do((*Proxy).CutRequests) }

// Delay is [Proxy.Delay] of all connections.
func (l *Link) Delay(d time.Duration) { l.do(func(p *Proxy) { p.Delay(d) }) }

// Refuse is [Proxy.Refuse] of all connections.
func (l *Link) Refuse() { l.do((*Proxy).Refuse) }

// Heal ends all faults of all connections.
func (l *Link) Heal() {
	l.do((*Proxy).Heal)
	l.forget()
}

// forget makes later proxies begin without a trouble.
func (l *Link) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trouble = nil
	for _, s := range l.servers {
		s.forget()
	}
}

// Reset closes all connections.
func (l *Link) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.proxies {
		p.Reset()
	}
	for _, s := range l.servers {
		s.Reset()
	}
}
