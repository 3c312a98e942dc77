package zklock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// heir says that the own node of a waiter is the next one: its turn comes when one node goes.
//
// Numbers in a directory only grow, and the directory stays as long as the own node is in it. So the nodes before the own one
// become fewer, and never more; of two that were made because the answer to the first was lost, the second has the greater number.
// (When the numbers have run over, later ones sort before. Nobody here accepts one of those, and Curator's client takes the lock
// with it at once, whoever holds it.) If a list of the children has only one of them, and that is deleted, the lock is the waiter's,
// whether that one held it or waited: there is no need for another list, provided that the own node is still there. If it were
// not, the waiter would have heard so before:
//
//	the list shows the own node and one before it; it may be that which was asked for together with the creation of the own
//	node, for the server carries out the requests of a connection in their order, or any later one
//	both have watches, and the server tells of deletions in the order in which they happen, on one connection
//	so when it tells of that of the one before, and has told of none of the own one, the own one was there at that moment
//
// A change of the own node's data uses up its watch: so it ends that the waiter is an heir, until the watch is there again.
//
// With another connection the watches are set anew, and in what order they go off says nothing: link is the connection in which
// the own node was made and both watches were confirmed, and the heir is one as long as that is the present one. Whatever else
// happens leads to another list.
//
// It is so for a mutex. A writer that becomes a reader leaves a node with its number behind.
type heir struct {
	path string // of the node before, or ""
	link int64
	turn bool // that node was deleted
}

// expect makes r the heir of a node that it watches, which was the only one before its own, if the server says that its own node
// is there. link is that of the time before the watch was set.
func (r *record) expect(ctx context.Context, path string, link int64) error {
	r.mu.Lock()
	known := r.heir.path == path && r.heir.link == link
	r.mu.Unlock()
	if known {
		return nil
	}
	st, err := r.own.observe(ctx, r.ear(r.own))
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return errNoOwn
	case err != nil:
		return nil // it will ask
	}
	r.read(st)
	r.mu.Lock()
	r.heir = heir{path: path, link: link}
	r.mu.Unlock()
	if !r.own.s.points.isArmed(place{r.own.path(), false}) { // its watch was used up before there was an heir to disinherit
		r.disinherit()
	}
	return nil
}

// disinherit has r ask when its turn comes.
func (r *record) disinherit() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heir = heir{}
}

// passed is told that the node at path was deleted, and reports whether that makes it the heir's turn. An event that comes before
// expect has done its work only rouses r.
func (r *record) passed(path string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.heir.path != path {
		return false
	}
	r.heir.turn = true
	return true
}

// succeeds reports whether r has the lock without asking. The leader must have confirmed the session lately, for the hold
// counts from then.
func (r *record) succeeds() bool {
	r.mu.Lock()
	h := r.heir
	r.heir.turn = false
	r.mu.Unlock()
	if !h.turn {
		return false
	}
	at, ok := r.own.s.confirmed(h.link, r.span)
	if ok {
		r.from(at)
	}
	return ok
}

// from has the hold count from at, or from earlier if that is known.
func (r *record) from(at time.Time) {
	if r.since.IsZero() || at.Before(r.since) {
		r.since = at
	}
}

// confirm has the leader know the session still, by an answer that is not too old, and the hold count from then.
func (r *record) confirm(ctx context.Context) error {
	s := r.own.s
	at, ok := s.confirmed(s.links.Load(), r.span)
	if !ok {
		if err := s.sync(ctx, r.own.dir); isTrouble(err) {
			return err
		}
		if at, ok = s.confirmed(s.links.Load(), s.term()); !ok { // another connection, or an answer that took long
			return errTimeout
		}
	}
	r.from(at)
	return nil
}

// look is a list of the queue that was asked for with the event that the node before has gone, while who waits for that is
// still to be woken. Like any other list that is made while the own node is there it tells at least of all who are before it.
type look struct {
	flight
	s     *session
	dir   string
	done  chan struct{} // closed when names and err are set
	names []string
	err   error
}

// hurry returns the look that list will wait for, which is to be asked for now, or nil if there is no connection.
func (r *record) hurry(s *session, dir string) *look {
	l := &look{s: s, dir: dir}
	if !s.departNow(&l.flight) {
		return nil
	}
	l.done = make(chan struct{})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.look = l
	return l
}

func (l *look) ask() {
	l.names, _, l.err = l.s.conn.Children(l.dir)
	l.s.land(&l.flight, !isTrouble(l.err))
	close(l.done)
}

// looked returns r's look, if that has ended.
func (r *record) looked() *look {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.look != nil {
		select {
		case <-r.look.done:
			return r.look
		default:
		}
	}
	return nil
}

// told reports whether r may know that it has the lock.
func (r *record) told() bool {
	if r.looked() != nil {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.heir.turn
}

// current is for how long the answer to a look counts. It stays true that nobody is before the own node, but that is not watched: so
// who takes its word overlooks for that much longer that somebody has deleted it.
const current = time.Second

// list returns the children of the directory of n, r's node: those asked for by hurry, if that was lately. Then the hold counts from
// that time.
func (r *record) list(ctx context.Context, n *node) ([]string, error) {
	r.mu.Lock()
	l := r.look
	r.look = nil
	r.mu.Unlock()
	if l == nil || l.s != n.s || l.dir != n.dir || time.Since(l.sent) > current {
		return n.s.children(ctx, n.dir)
	}
	select {
	case <-l.done:
	case <-l.s.dead:
		return nil, zk.ErrSessionExpired
	case <-ctx.Done():
		return nil, errTimeout
	}
	r.from(l.sent)
	return l.names, l.err
}

// turns are how long a turn of a lock has taken lately, by the lock's name: from one holder to the next.
type turns struct {
	mu sync.Mutex
	m  map[string]time.Duration
}

// How far a waiter looks ahead. Behind more others, or where turns are shorter, it is not worth the while.
const (
	farthest = 16
	briefest = time.Millisecond
	mostLook = 3   // times in one wait
	mostName = 256 // locks that are known
)

func (t *turns) get(name string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.m[name]
}

func (t *turns) set(name string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, ok := t.m[name]
	switch {
	case ok:
		d = (old + d) / 2
	case len(t.m) >= mostName || t.m == nil:
		t.m = make(map[string]time.Duration)
	}
	t.m[name] = d
}

// foresee has r ask when it will probably be behind only one other, the holder: n are before it. So it is an heir when its turn
// comes, and need not ask then, when everybody waits for it. If that was too early, it is tried again; if too late, it asks when
// its turn comes. It is a guess only when to ask: what comes of that does not depend on it.
func (r *record) foresee(n int) {
	if r.ahead == 0 {
		r.queued, r.ahead = time.Now(), n
	}
	turn := r.st.turns.get(r.ref.Name)
	if turn < briefest || n > farthest || r.looks == mostLook {
		return
	}
	r.looks++
	r.ears.Lock()
	defer r.ears.Unlock()
	if r.foreseen != nil {
		r.foreseen.Stop()
	}
	// The turn that has begun is half over, on average; and the last one shall be.
	r.foreseen = time.AfterFunc(time.Duration(n-1)*turn, r.rouse)
}

// learn notes how long a turn takes, when r has waited for several.
func (r *record) learn() {
	if r.ahead > 0 {
		r.st.turns.set(r.ref.Name, 2*time.Since(r.queued)/time.Duration(2*r.ahead-1)) // less the half that was over
	}
}

// guards are the nodes of holders that want to hear of them, as soon as they are no longer young.
//
// The server tells of a node's deletion whoever watches it: the next in the queue, and the holder, if it does. Most nodes are
// deleted by who made them, within moments, and then this is an event for nothing, which is in the way of the next holder's. So
// a node gets its watch only when the lock has been held by it for a while. One timer does for all. Who waits has no need of one,
// but for an heir: it looks for its node before it has the lock, and now and then.
type guards struct {
	mu    sync.Mutex
	young map[*node]guarded
	armed bool
}

type guarded struct {
	r     *record
	since time.Time
}

// youth is for how long a holder's node has no watch, at least; twice that at most.
const youth = 100 * time.Millisecond

// guard has r hear of it, soon, if its own node n is deleted by somebody else, or its data has changed.
func (r *record) guard(n *node) {
	if n.observed() {
		return
	}
	c := r.st.core
	g := &c.guards
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.young == nil {
		g.young = make(map[*node]guarded)
	}
	g.young[n] = guarded{r, time.Now()}
	if !g.armed {
		g.armed = true
		time.AfterFunc(youth, c.grown)
	}
}

// forget ends guard. It may be called with n.mu held.
func (g *guards) forget(n *node) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.young, n)
}

// grown sets the watches that are due.
func (c *core) grown() {
	g := &c.guards
	due := make(map[*node]*record)
	g.mu.Lock()
	for n, y := range g.young {
		if time.Since(y.since) >= youth {
			due[n] = y.r
			delete(g.young, n)
		}
	}
	g.armed = len(g.young) > 0 && c.life.Err() == nil
	if g.armed {
		time.AfterFunc(youth, c.grown)
	}
	g.mu.Unlock()
	if len(due) > 0 {
		c.spawn(func() { c.protect(due) })
	}
}

// protect sets watches on nodes.
func (c *core) protect(nodes map[*node]*record) {
	slots := make(chan struct{}, atOnce)
	var wg sync.WaitGroup
	for n, r := range nodes {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			r.protect(n)
		})
	}
	wg.Wait()
}

// protect has r hear of it if its own node n is deleted by somebody else, or its data has changed. If that cannot be told to the
// server now, the next renewal does.
func (r *record) protect(n *node) {
	if n.observed() {
		return
	}
	ctx := r.st.patience()
	var st stat
	err := persist(ctx, n.s, func() (err error) {
		st, err = n.observe(ctx, r.ear(n))
		return err
	})
	switch {
	case err == nil:
		r.read(st)
	case errors.Is(err, zk.ErrNoNode) && !n.doomed():
		r.over(n)
	}
}
