package known

import (
	"sync"
	"sync/atomic"
	"time"
)

// Cockroach 1055: the end of a drain is awaited under the lock, and nothing ends it.

type stopper struct {
	mu       sync.Mutex
	draining atomic.Bool
	drain    sync.WaitGroup
}

func (s *stopper) startTask() bool {
	if s.draining.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drain.Add(1)
	return true
}

func (s *stopper) quiesce() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining.Store(true)
	s.drain.Wait() // found: blocked
}

// Etcd 6873: stop waits for the end of a goroutine that needs the lock.

type watches struct {
	mu      sync.Mutex
	updates chan int
	ended   chan struct{}
}

func newWatches() *watches {
	w := &watches{updates: make(chan int, 1), ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		for u := range w.updates {
			w.coalesce(u)
		}
	}()
	return w
}

func (w *watches) coalesce(int) {
	w.mu.Lock()
	defer w.mu.Unlock()
}

func (w *watches) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.updates)
	<-w.ended // found: blocked
}

// Etcd 7443: a balancer reports its addresses under its lock, and the reader tears down connections
// that call back into the balancer.

type balancer interface {
	up() (down func())
	notify() <-chan []int
}

type pinned struct {
	mu      sync.Mutex
	notices chan []int
	pin     int
}

func newPinned() *pinned { return &pinned{notices: make(chan []int, 1)} }

func (p *pinned) up() (down func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notices <- []int{1} // found: blocked
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.pin = 0
		p.notices <- nil
	}
}

func (p *pinned) notify() <-chan []int { return p.notices }

type conn struct {
	mu   sync.Mutex
	down func()
}

type conns struct {
	to  balancer
	all []*conn
}

func (c *conn) connect(b balancer) {
	c.down = b.up()
}

func (c *conn) tearDown() {
	if c.down != nil {
		c.down()
	}
}

func (c *conns) watch() {
	for range c.to.notify() {
		for _, one := range c.all {
			one.tearDown()
		}
	}
}

// Etcd 7492: a token is handed over under the lock that the receiver acquires when tokens expire.

type tokens struct {
	mu     sync.RWMutex
	keeper *tokenKeeper
}

type tokenKeeper struct {
	added  chan string
	remove func(string)
}

func (t *tokens) enable() {
	t.keeper = newTokenKeeper(t.remover())
}

func (t *tokens) remover() func(string) {
	return func(string) {
		t.mu.Lock()
		defer t.mu.Unlock()
	}
}

func newTokenKeeper(remove func(string)) *tokenKeeper {
	k := &tokenKeeper{added: make(chan string, 1), remove: remove}
	go k.run()
	return k
}

func (k *tokenKeeper) run() {
	expired := time.NewTicker(time.Second)
	for {
		select {
		case <-k.added:
		case <-expired.C:
			k.remove("")
		}
	}
}

func (k *tokenKeeper) add(token string) { k.added <- token }

func (t *tokens) assign(token string) {
	t.mu.Lock()
	t.keeper.add(token) // found: blocked
	t.mu.Unlock()
}

// Grpc 1353: addresses are sent under the lock that the receiver needs to tear connections down.

type robin struct {
	mu        sync.Mutex
	addresses chan bool
}

func (r *robin) start() {
	r.addresses = make(chan bool)
	go r.updates()
}

func (r *robin) updates() {
	for {
		r.update()
	}
}

func (r *robin) update() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addresses <- true // found: blocked
}

func (r *robin) down() {
	r.mu.Lock()
	defer r.mu.Unlock()
}

func (r *robin) each() {
	for range r.addresses {
		r.down()
	}
}

// Grpc 1460: the signal that a stream was opened is awaited under the lock that its sender has.

type transport struct {
	mu      sync.Mutex
	awake   chan struct{}
	streams int
}

func newTransport() *transport { return &transport{awake: make(chan struct{})} }

func (t *transport) keepalive() {
	t.mu.Lock()
	if t.streams < 1 {
		<-t.awake // found: blocked
	}
	t.mu.Unlock()
}

func (t *transport) open() {
	t.mu.Lock()
	if t.streams++; t.streams == 1 {
		select {
		case t.awake <- struct{}{}:
		default:
		}
	}
	t.mu.Unlock()
}

// Kubernetes 1321: a watcher gets its result under the lock with which it stops.

type mux struct {
	mu       sync.Mutex
	watchers map[int]*muxWatcher
}

type muxWatcher struct{ result chan int }

func (m *mux) watch() *muxWatcher { return &muxWatcher{result: make(chan int)} }

func (m *mux) distribute() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.watchers {
		w.result <- 1 // found: blocked
	}
}

func (m *mux) stop(id int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.watchers[id].result)
	delete(m.watchers, id)
}

// Kubernetes 6632: a frame resets the idle time under the lock, and the other side has gone.

type framer struct {
	mu    sync.Mutex
	reset chan bool
}

func newFramer() *framer { return &framer{reset: make(chan bool)} }

func (f *framer) end() {
	reset := f.reset
	f.mu.Lock()
	close(reset)
	f.reset = nil
	f.mu.Unlock()
}

func (f *framer) write() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.reset != nil {
		f.reset <- true // found: blocked
	}
}

// Kubernetes 10182: a status is sent under the lock that its receiver acquires for the next one.

type statuses struct {
	mu   sync.RWMutex
	next chan bool
}

func newStatuses() *statuses { return &statuses{next: make(chan bool)} }

func (s *statuses) start() {
	go func() {
		for {
			s.batch()
		}
	}()
}

func (s *statuses) batch() {
	<-s.next
	s.remove()
}

func (s *statuses) remove() {
	s.mu.Lock()
	defer s.mu.Unlock()
}

func (s *statuses) set() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next <- true // found: blocked
}

// Moby 28462: a monitor is ended under the lock of its container, which each probe acquires.

type container struct {
	mu     sync.Mutex
	health *health
}

type health struct{ stop chan struct{} }

func newContainer() *container { return &container{health: &health{make(chan struct{})}} }

func (h *health) channel() chan struct{} { return h.stop }

func (h *health) close() {
	if h.stop != nil {
		h.stop <- struct{}{}
	}
}

func (c *container) start() {
	go monitor(c, c.health.channel())
}

func monitor(c *container, stop chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
			probe(c)
		}
	}
}

func probe(c *container) {
	c.mu.Lock()
	defer c.mu.Unlock()
}

func (c *container) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.health.close() // found: blocked
}
