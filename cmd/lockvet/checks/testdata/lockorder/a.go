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

// Two types have one base, which is two locks.

type base struct{ mu sync.Mutex }

type reader struct {
	base
	to *writer
}

type writer struct {
	base
	store *store
}

type store struct {
	mu     sync.Mutex
	reader *reader
}

func (b *base) touch() {
	b.mu.Lock()
	defer b.mu.Unlock()
}

func (w *writer) write() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.store.put()
}

func (s *store) put() {
	s.mu.Lock()
	defer s.mu.Unlock()
}

func (s *store) get() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reader.touch()
	s.reader.mu.Lock()
	s.reader.mu.Unlock()
}

// The same base in opposite orders is a mistake.

type source struct {
	base
	sink *sink
}

type sink struct {
	base
	source *source
}

func (s *source) push() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sink.mu.Lock() // want `sink.base.mu is acquired while source.base.mu is held, and in pull the other way round`
	s.sink.mu.Unlock()
}

func (s *sink) pull() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.source.touch()
}

// A new object's lock cannot be held by another goroutine, in callees neither.

type pool struct {
	mu   sync.Mutex
	made []*item
}

type item struct {
	mu   sync.Mutex
	pool *pool
}

func (p *pool) get() *item {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := &item{pool: p}
	i.reset()
	j := open(p)
	j.reset()
	p.made = append(p.made, i, j)
	return i
}

func open(p *pool) *item {
	i := &item{pool: p}
	return i
}

func (i *item) reset() {
	i.mu.Lock()
	defer i.mu.Unlock()
}

func (i *item) put() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.pool.keep(i)
}

func (p *pool) keep(i *item) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.made = append(p.made, i)
}
