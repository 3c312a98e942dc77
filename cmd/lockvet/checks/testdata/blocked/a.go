package blocked

import (
	"sync"
	"time"
)

type broadcasts struct {
	mu      sync.Mutex
	updates chan int
	done    chan struct{}
	last    int
}

func newBroadcasts() *broadcasts {
	b := &broadcasts{updates: make(chan int, 1), done: make(chan struct{})}
	go b.run()
	return b
}

func (b *broadcasts) run() {
	defer close(b.done)
	for u := range b.updates {
		b.mu.Lock()
		b.last = u
		b.mu.Unlock()
	}
}

func (b *broadcasts) stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.updates)
	<-b.done // want `receive from b.done while b.mu is held, which run needs too \(line 22\): both wait`
}

func (b *broadcasts) stopRight() {
	b.mu.Lock()
	close(b.updates)
	b.mu.Unlock()
	<-b.done
}

// A callee waits, and a field has the callback that needs the lock.

type keeper struct {
	mu     sync.Mutex
	added  chan string
	remove func(string)
}

func newKeeper() *keeper {
	k := &keeper{added: make(chan string)}
	k.remove = func(string) {
		k.mu.Lock()
		defer k.mu.Unlock()
	}
	go k.keep()
	return k
}

func (k *keeper) keep() {
	for {
		select {
		case <-k.added:
		case <-time.After(time.Second):
			k.remove("")
		}
	}
}

func (k *keeper) assign(name string) {
	k.mu.Lock()
	k.add(name) // want `add sends on k.added while k.mu is held, which keep needs too \(line 65\): both wait`
	k.mu.Unlock()
}

func (k *keeper) add(name string) { k.added <- name }

// A WaitGroup.

type group struct {
	mu      sync.Mutex
	workers sync.WaitGroup
	done    int
}

func (g *group) start() {
	g.workers.Add(1)
	go func() {
		defer g.workers.Done()
		g.mu.Lock()
		g.done++
		g.mu.Unlock()
	}()
}

func (g *group) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.workers.Wait() // want `wait for g.workers while g.mu is held, which a function in start needs too \(line 91\): both wait`
}

// A condition of another lock.

type store struct {
	mu, state sync.Mutex
	changed   *sync.Cond
	n         int
}

func newStore() *store {
	s := &store{}
	s.changed = sync.NewCond(&s.state)
	return s
}

func (s *store) set(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Lock()
	defer s.state.Unlock()
	s.n = n
	s.changed.Broadcast()
}

func (s *store) await() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Lock()
	defer s.state.Unlock()
	for s.n == 0 {
		s.changed.Wait() // want `wait for s.changed while s.mu is held, which set needs too \(line 124\): both wait`
	}
}

// All cases of a select need the lock.

type port struct {
	mu    sync.Mutex
	in    chan int
	ended chan struct{}
}

func newPort() *port { return &port{in: make(chan int), ended: make(chan struct{})} }

func (p *port) give(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.in <- n:
	default:
	}
}

func (p *port) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.ended)
}

func (p *port) take() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	select { // want `select while p.mu is held, which give needs too \(line 151\): both wait`
	case n := <-p.in:
		return n
	case <-p.ended:
		return 0
	}
}

func (p *port) takeFor(d time.Duration) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case n := <-p.in:
		return n
	case <-time.After(d):
		return 0
	}
}

// What follows is right.

// The receiver needs no lock.

type events struct {
	mu sync.Mutex
	c  chan int
	n  int
}

func newEvents() *events {
	e := &events{c: make(chan int)}
	e.mu.Lock()
	go e.send()
	e.mu.Unlock()
	return e
}

func (e *events) send() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.c <- e.n
}

func (e *events) receive() int { return <-e.c }

// The lock is acquired before the goroutine starts.

type client struct {
	mu    sync.Mutex
	ready chan error
}

func dial() error {
	c := &client{ready: make(chan error)}
	c.init()
	return <-c.ready
}

func (c *client) init() {
	c.mu.Lock()
	defer c.mu.Unlock()
	go c.read()
}

func (c *client) read() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ready <- nil
}

// A parameter decides.

type server struct {
	mu   sync.Mutex
	done chan struct{}
}

func newServer() *server { return &server{done: make(chan struct{})} }

func (s *server) listen() {
	defer close(s.done)
	for {
		s.mu.Lock()
		s.mu.Unlock()
		s.close(false)
	}
}

func (s *server) close(wait bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(wait)
}

func (s *server) end(wait bool) {
	if wait {
		<-s.done
	}
}

// Other code has the channel.

type shared struct {
	mu sync.Mutex
	C  chan int
}

func newShared() *shared { return &shared{C: make(chan int)} }

func (s *shared) send() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.C <- 1
}

func (s *shared) receive() {
	s.mu.Lock()
	defer s.mu.Unlock()
	<-s.C
}

// A condition gives up the lock that is embedded in its own.

type counted struct {
	sync.Mutex
	n int
}

func embedded() {
	var mu counted
	changed := sync.NewCond(&mu)
	go func() {
		mu.Lock()
		defer mu.Unlock()
		mu.n++
		changed.Signal()
	}()
	mu.Lock()
	for mu.n == 0 {
		changed.Wait()
	}
	mu.Unlock()
}

// A buffer of one has room for the first send.

type queue struct {
	mu   sync.Mutex
	free int
	next []*turn
}

type turn struct{ given chan int }

func (q *queue) wait() int {
	t := &turn{given: make(chan int, 1)}
	q.mu.Lock()
	q.next = append(q.next, t)
	q.mu.Unlock()
	for {
		select {
		case n := <-t.given:
			q.mu.Lock()
			q.free += n
			q.mu.Unlock()
			return n
		case <-time.After(time.Second):
		}
	}
}

func (q *queue) give() {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := q.next[0]
	q.next = q.next[1:]
	t.given <- 1
}

// Each receive is on another channel, and needs no lock.

type jobs struct {
	mu  sync.Mutex
	all []*job
}

type job struct{ done chan bool }

func newJob() *job { return &job{done: make(chan bool, 1)} }

func (j *jobs) finish(one *job) {
	j.mu.Lock()
	defer j.mu.Unlock()
	one.done <- true
}

func (j *jobs) await() {
	for i := range j.all {
		<-j.all[i].done
	}
}

// A token that is put back has room.

type tokens struct {
	mu    sync.Mutex
	token chan int
}

func newTokens() *tokens {
	t := &tokens{token: make(chan int, 1)}
	t.token <- 1
	return t
}

func (t *tokens) run() {
	for {
		n := <-t.token
		t.mu.Lock()
		t.token <- n + 1
		t.mu.Unlock()
	}
}

func (t *tokens) drain() {
	for {
		t.mu.Lock()
		<-t.token
		t.mu.Unlock()
	}
}

// A length under the lock shows the room.

type latest struct {
	mu sync.Mutex
	c  chan int
}

func newLatest() *latest { return &latest{c: make(chan int, 1)} }

func (l *latest) put(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.c) == 0 {
		l.c <- n
	}
}

func (l *latest) take() {
	for {
		l.mu.Lock()
		l.mu.Unlock()
		<-l.c
	}
}

// A send that repeats has no room for the second.

type pair struct {
	mu sync.Mutex
	c  chan int
}

func newPair() *pair { return &pair{c: make(chan int, 1)} }

func (p *pair) put() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := range 2 {
		p.c <- n // want `send on p.c while p.mu is held, which take needs too \(line \d+\): both wait`
	}
}

func (p *pair) take() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return <-p.c
}

// A receive in a loop of the caller waits for further sends.

type feed struct {
	mu sync.Mutex
	c  chan int
	n  int
}

func newFeed() *feed { return &feed{c: make(chan int, 1)} }

func (f *feed) put(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.c <- n // want `send on f.c while f.mu is held, which step needs too \(line \d+\): both wait`
}

func (f *feed) run() {
	for {
		f.step()
	}
}

func (f *feed) step() {
	f.mu.Lock()
	f.n++
	f.mu.Unlock()
	f.n = <-f.c
}

// A channel in a map or a slice is not known.

type index struct {
	mu  sync.Mutex
	all map[string]chan int
	few []chan int
}

func (i *index) askOne(name string) int {
	c := make(chan int)
	i.all[name] = c
	go i.answer(c)
	i.mu.Lock()
	defer i.mu.Unlock()
	return <-c
}

func (i *index) askFew() int {
	c := make(chan int)
	i.few = append(i.few, c)
	go i.answer(c)
	i.mu.Lock()
	defer i.mu.Unlock()
	return <-c
}

func (i *index) answer(c chan int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	c <- 1
}
