package known

import (
	"errors"
	"fmt"
	"strings"
	"sync"
)

// Cockroach 584: a break leaves the lock of the gossip held.

type gossip struct {
	mu     sync.Mutex
	closed bool
}

func (g *gossip) bootstrap(stalled <-chan bool) {
	for {
		g.mu.Lock()
		if g.closed {
			break
		}
		g.mu.Unlock()
		<-stalled
	}
} // found: missingunlock

// Cockroach 3710: a reader of the store reads it again, four calls deeper. Not found: the check
// cannot know that the store of a replica is the store that has the replica.

type raftStore struct {
	mu       sync.RWMutex
	queue    *raftQueue
	replicas []*raftReplica
}

type raftReplica struct{ store *raftStore }

type raftQueue struct{ mu sync.Mutex }

func (s *raftStore) scan() {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, r := range s.replicas {
		s.queue.maybeAdd(r)
	}
}

func (q *raftQueue) maybeAdd(r *raftReplica) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r.store.status()
}

func (s *raftStore) status() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.replicas)
}

func (s *raftStore) add(r *raftReplica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replicas = append(s.replicas, r)
}

// Cockroach 7504: leases and the cache of names are locked in both orders.

type lease struct {
	mu   sync.Mutex
	name string
	refs int
}

type tableState struct {
	mu     sync.Mutex
	names  *nameCache
	active map[string]*lease
}

type nameCache struct {
	mu     sync.Mutex
	leases map[string]*lease
}

func (t *tableState) release(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.active[name]
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refs--; l.refs == 0 {
		t.remove(l)
	}
}

func (t *tableState) remove(l *lease) {
	delete(t.active, l.name)
	t.names.remove(l)
}

func (c *nameCache) remove(l *lease) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.leases, l.name)
}

func (c *nameCache) get(name string) *lease {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.leases[name]
	if l == nil {
		return nil
	}
	l.mu.Lock() // found: lockorder
	defer l.mu.Unlock()
	l.refs++
	return l
}

// Cockroach 9935: the exit after a failure acquires the lock of the log again.

type log struct {
	mu    sync.Mutex
	lines int
}

func (l *log) output() {
	l.mu.Lock()
	if err := l.create(); err != nil {
		l.exit(err) // found: doublelock
	}
	l.lines++
	l.mu.Unlock()
}

func (l *log) create() error {
	if l.lines > 9 {
		return errors.New("full")
	}
	return nil
}

func (l *log) exit(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	panic(err)
}

// Cockroach 10214: heartbeats and replicas are locked in both orders.

type heartbeatStore struct {
	coalesced struct {
		sync.Mutex
		responses []int
	}
	replicas map[int]*heartbeatReplica
}

type heartbeatReplica struct {
	raftMu sync.Mutex
	mu     sync.Mutex
	store  *heartbeatStore
	lost   bool
}

func (s *heartbeatStore) send() {
	s.coalesced.Lock()
	defer s.coalesced.Unlock()
	for _, to := range s.coalesced.responses {
		s.sendTo(to)
	}
}

func (s *heartbeatStore) sendTo(to int) { s.replicas[to].unreachable() }

func (r *heartbeatReplica) unreachable() {
	r.raftMu.Lock()
	defer r.raftMu.Unlock()
	r.lost = true
}

func (r *heartbeatReplica) tick() {
	r.raftMu.Lock()
	defer r.raftMu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.quiesce() // found: lockorder
}

func (r *heartbeatReplica) quiesce() {
	if !r.lost {
		r.store.coalesced.Lock()
		r.store.coalesced.responses = append(r.store.coalesced.responses, 1)
		r.store.coalesced.Unlock()
	}
}

// Cockroach 6181: a reader prints the cache, and its String reads again.

type rangeCache struct {
	mu     sync.RWMutex
	ranges []string
}

func (c *rangeCache) lookup() {
	c.mu.RLock()
	fmt.Printf("look up in %s\n", c) // found: doublelock
	c.mu.RUnlock()
	c.mu.Lock()
	c.ranges = nil
	c.mu.Unlock()
}

func (c *rangeCache) String() string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return strings.Join(c.ranges, " ")
}

// Cockroach 16167: the L of a condition is the read side of a lock that is read again below.

type executor struct {
	mu      sync.RWMutex
	changed *sync.Cond
	config  int
}

func newExecutor() *executor {
	e := &executor{}
	e.changed = sync.NewCond(e.mu.RLocker())
	return e
}

func (e *executor) run() {
	e.changed.L.Lock()
	defer e.changed.L.Unlock()
	e.prepare() // found: doublelock
}

func (e *executor) prepare() { e.database() }

func (e *executor) database() int {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return e.config
}

func (e *executor) update(config int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.config = config
}
