package lockorder

import (
	"sync"

	"github.com/jucgo/locks/fair"
)

type server struct {
	mu    fair.Mutex
	conns map[*conn]bool
}

type conn struct {
	mu     sync.Mutex
	server *server
	open   bool
}

func (s *server) add(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.mu.Lock() // want `conn.mu is acquired while server.mu is held, and in close the other way round: add locks server.mu \(line \d+\), then locks conn.mu \(line \d+\); close locks conn.mu \(line \d+\), then calls remove, which locks server.mu \(line \d+\)`
	c.open = true
	c.mu.Unlock()
	s.conns[c] = true
}

func (c *conn) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server.remove(c)
}

func (s *server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

var first, second sync.Mutex

func forward() {
	first.Lock()
	second.Lock() // want `second is acquired while first is held, and in backward the other way round`
	second.Unlock()
	first.Unlock()
}

func backward() {
	second.Lock()
	first.Lock()
	first.Unlock()
	second.Unlock()
}

// What follows is right.

type a struct{ mu sync.Mutex }
type b struct{ mu sync.Mutex }
type gate struct{ mu sync.Mutex }

func gatedForward(g *gate, x *a, y *b) {
	g.mu.Lock()
	defer g.mu.Unlock()
	x.mu.Lock()
	y.mu.Lock()
	y.mu.Unlock()
	x.mu.Unlock()
}

func gatedBackward(g *gate, x *a, y *b) {
	g.mu.Lock()
	defer g.mu.Unlock()
	y.mu.Lock()
	x.mu.Lock()
	x.mu.Unlock()
	y.mu.Unlock()
}

type c struct{ mu sync.Mutex }
type d struct{ mu sync.Mutex }

func oneAfterTheOther(x *c, y *d) {
	x.mu.Lock()
	x.mu.Unlock()
	y.mu.Lock()
	y.mu.Unlock()
}

func nested(x *c, y *d) {
	y.mu.Lock()
	defer y.mu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
}

func tries(x *c, y *d) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if y.mu.TryLock() {
		y.mu.Unlock()
	}
}

func made(y *d) *c {
	x := &c{}
	x.mu.Lock()
	defer x.mu.Unlock()
	y.mu.Lock()
	defer y.mu.Unlock()
	return x
}

type e struct{ mu sync.RWMutex }
type f struct{ mu sync.Mutex }

func reads(x *e, y *f) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	y.mu.Lock()
	defer y.mu.Unlock()
}

func readsToo(x *e, y *f) {
	y.mu.Lock()
	defer y.mu.Unlock()
	x.mu.RLock()
	defer x.mu.RUnlock()
}

func later(x *c, y *d) {
	x.mu.Lock()
	defer x.mu.Unlock()
	go locked(y)
}

func locked(y *d) {
	y.mu.Lock()
	defer y.mu.Unlock()
}
