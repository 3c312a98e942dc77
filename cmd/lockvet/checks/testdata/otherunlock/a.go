package otherunlock

import "sync"

type account struct {
	mu      sync.Mutex
	balance int
}

func (a *account) add(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.balance += n
}

func (a *account) move(to *account, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	to.mu.Lock()
	defer a.mu.Unlock() // want `Unlock of a.mu, which this function has not acquired: to.mu, which it has acquired, stays locked`
	a.balance -= n
	to.balance += n
}

type server struct {
	mu    sync.RWMutex
	stats sync.RWMutex
	conns int
	sent  int
}

func (s *server) count() (int, int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.stats.RLock()
	defer s.stats.RUnlock()
	return s.conns, s.sent
}

func (s *server) send() {
	s.stats.Lock()
	s.sent++
	s.mu.Unlock() // want `Unlock of s.mu, which this function has not acquired: s.stats, which it has acquired, stays locked`
}

type reader struct {
	mu    sync.RWMutex
	stats sync.RWMutex
	conns int
	sent  int
}

func (s *reader) count() (int, int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.stats.RLock()
	defer s.stats.RUnlock()
	return s.conns, s.sent
}

func (s *reader) reads() int {
	s.mu.RLock()
	defer s.stats.RUnlock() // want `RUnlock of s.stats, which this function has not acquired: s.mu, which it has acquired, stays locked`
	return s.conns
}

type early struct {
	mu    sync.RWMutex
	stats sync.RWMutex
	conns int
	sent  int
}

func (s *early) count() (int, int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	s.stats.RLock()
	defer s.stats.RUnlock()
	return s.conns, s.sent
}

func (s *early) set(n int) bool {
	s.mu.Lock()
	if n > s.conns {
		s.stats.Unlock() // want `Unlock of s.stats, which this function has not acquired: s.mu, which it has acquired, stays locked`
		return false
	}
	s.conns = n
	s.mu.Unlock()
	return true
}

// What follows is right.

// The caller holds what next releases.

type list struct {
	mu   sync.Mutex
	next *list
}

func (l *list) last() *list {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.next
}

func advance(from, to *list) {
	to.mu.Lock()
	from.mu.Unlock()
}

func walk(l *list) {
	l.mu.Lock()
	for l.next != nil {
		n := l.next
		advance(l, n)
		l = n
	}
	l.mu.Unlock()
}

// Another function releases the lock that begin keeps.

type phases struct{ first, second sync.Mutex }

func (p *phases) start() { p.first.Lock() }

func (p *phases) middle() {
	p.second.Lock()
	p.first.Unlock()
}

func (p *phases) end() { p.second.Unlock() }

func (p *phases) all() {
	p.first.Lock()
	p.first.Unlock()
	p.second.Lock()
	p.second.Unlock()
}

// A variable can be another name of the object.

type outer struct{ in *inner }

type inner struct {
	mu sync.Mutex
	n  int
}

func (i *inner) add() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.n++
}

func (o *outer) add() {
	i := o.in
	i.mu.Lock()
	i.n++
	o.in.mu.Unlock()
}

func (o *outer) addTo(i *inner) {
	i.mu.Lock()
	i.n++
	o.in.mu.Unlock()
}

// A pointer can lead to the same lock.

type half struct{ mu, other *sync.Mutex }

func (h *half) both() {
	h.mu.Lock()
	h.mu.Unlock()
	h.other.Lock()
	h.other.Unlock()
}

func (h *half) mixed() {
	h.mu.Lock()
	h.other.Unlock()
}

// exchange gives up the first lock, which the caller holds, for the second one.
func (q *pair) exchange() {
	q.second.Lock()
	q.first.Unlock()
}

type pair struct{ first, second sync.Mutex }

func (q *pair) all() {
	q.first.Lock()
	q.first.Unlock()
	q.second.Lock()
	q.second.Unlock()
}
