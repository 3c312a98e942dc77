package known

import (
	"sync"
	"time"
)

// Grpc 795: Lock is written for Unlock.

type grpcServer struct {
	mu    sync.Mutex
	drain bool
}

func (s *grpcServer) gracefulStop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drain {
		s.mu.Lock() // found: doublelock
		return
	}
	s.drain = true
}

// Grpc 3017: a return of a timer's function leaves the lock of the cache held.

type connCache struct {
	mu    sync.Mutex
	conns map[string]*cachedConn
}

type cachedConn struct{ kept bool }

func (c *connCache) remove(addr string, after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	entry := c.conns[addr]
	time.AfterFunc(after, func() {
		c.mu.Lock()
		if entry.kept {
			return // found: missingunlock
		}
		delete(c.conns, addr)
		c.mu.Unlock()
	})
}

// Hugo 5379: a page renders itself under its own lock. Not found: sync.Once calls the function
// that acquires the lock, and a map has the function that leads there.

type page struct {
	once       sync.Once
	mu         sync.Mutex
	shortcodes map[string]func()
	words      int
}

func (p *page) render() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, shortcode := range p.shortcodes {
		shortcode()
	}
}

func (p *page) count() {
	p.once.Do(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.words++
	})
}

func newPage() *page {
	p := &page{shortcodes: map[string]func(){}}
	p.shortcodes["count"] = p.count
	return p
}

// Syncthing 4829: the addresses are removed under the lock, and the notice of it reads them.

type mapping struct {
	mu        sync.RWMutex
	addresses map[string]string
	listeners []func([]string)
}

func (m *mapping) clear() {
	m.mu.Lock()
	var removed []string
	for id, address := range m.addresses {
		removed = append(removed, address)
		delete(m.addresses, id)
	}
	if len(removed) > 0 {
		m.notify(removed) // found: doublelock
	}
	m.mu.Unlock()
}

func (m *mapping) notify(removed []string) {
	m.mu.RLock()
	for _, listener := range m.listeners {
		listener(removed)
	}
	m.mu.RUnlock()
}

// Moby 4951: a removal gives the lock of all devices up and takes it again, under the lock of one
// device. Two removals of one device stop each other.

type devices struct {
	sync.Mutex
	byName map[string]*device
}

type device struct {
	mu   sync.Mutex
	name string
}

func (d *devices) remove(name string) {
	d.Lock()
	defer d.Unlock()
	one := d.byName[name]
	one.mu.Lock() // found: lockorder
	defer one.mu.Unlock()
	d.removed(one)
}

func (d *devices) removed(one *device) {
	d.Unlock()
	time.Sleep(time.Millisecond)
	d.Lock()
	delete(d.byName, one.name)
}

// Moby 7559: continue leaves the lock held, and the next round acquires it again.

type proxy struct {
	mu    sync.Mutex
	read  func([]byte) (from string, err error)
	dial  func() (write func([]byte), err error)
	conns map[string]func([]byte)
}

func (p *proxy) run() {
	buf := make([]byte, 1500)
	for {
		from, err := p.read(buf)
		if err != nil {
			return
		}
		p.mu.Lock()
		write, known := p.conns[from]
		if !known {
			write, err = p.dial()
			if err != nil {
				continue // found: missingunlock
			}
			p.conns[from] = write
		}
		p.mu.Unlock()
		write(buf)
	}
}

// Moby 17176: a return without a device leaves the lock held.

type deletions struct {
	sync.Mutex
	deleted int
}

func (d *deletions) cleanup() error {
	d.Lock()
	if d.deleted == 0 {
		return nil // found: missingunlock
	}
	d.deleted = 0
	d.Unlock()
	return nil
}

// Moby 36114: the attachment of disks calls their removal, which acquires the lock again.

type machine struct {
	sync.Mutex
	disks int
}

func (m *machine) attach(n int) {
	m.Lock()
	defer m.Unlock()
	if n < 0 {
		m.detach() // found: doublelock
	}
	m.disks += n
}

func (m *machine) detach() {
	m.Lock()
	defer m.Unlock()
	m.disks = 0
}

// Kubernetes 30872: two locks are acquired in both orders. Both lead through interfaces.

type queue interface {
	synced() bool
	pop(process func())
}

type fifo struct{ mu sync.RWMutex }

func (f *fifo) synced() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return true
}

func (f *fifo) pop(process func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	process() // found: lockorder
}

type informer struct {
	sync.Mutex
	queue    queue
	clusters int
}

func (i *informer) clustersSynced() bool {
	i.Lock()
	defer i.Unlock()
	return i.queue.synced()
}

func (i *informer) addCluster() {
	i.Lock()
	defer i.Unlock()
	i.clusters++
}

func (i *informer) run() { i.queue.pop(i.addCluster) }

// Kubernetes 62464: a reader reads again, and a writer can wait between.

type memory struct {
	sync.RWMutex
	sets map[string]int
	rest int
}

func (s *memory) setOrDefault(name string) int {
	s.RLock()
	defer s.RUnlock()
	if set, ok := s.set(name); ok { // found: doublelock
		return set
	}
	return s.defaultSet() // found: doublelock
}

func (s *memory) set(name string) (int, bool) {
	s.RLock()
	defer s.RUnlock()
	set, ok := s.sets[name]
	return set, ok
}

func (s *memory) defaultSet() int {
	s.RLock()
	defer s.RUnlock()
	return s.rest
}

func (s *memory) setDefault(rest int) {
	s.Lock()
	defer s.Unlock()
	s.rest = rest
}

// Kubernetes 13135: a callback of the cache acquires the lock under which the cache is filled.

type cacher struct {
	sync.Mutex
	cache *watchCache
}

type watchCache struct {
	sync.RWMutex
	replaced, event func()
}

func newCacher() *cacher {
	c := &cacher{cache: &watchCache{}}
	c.cache.onReplaced(func() { c.Unlock() })
	c.cache.onEvent(c.process)
	return c
}

func (w *watchCache) onReplaced(f func()) { w.replaced = f }

func (w *watchCache) onEvent(f func()) { w.event = f }

func (c *cacher) process() {
	c.Lock()
	defer c.Unlock()
}

func (c *cacher) fill() {
	c.Lock()
	c.cache.replace() // found: lockorder
}

func (w *watchCache) replace() {
	w.Lock()
	defer w.Unlock()
	w.replaced()
}

func (w *watchCache) add() {
	w.Lock()
	defer w.Unlock()
	w.event()
}
