package zklock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// recipe is the part that differs between the kinds of locks: which nodes an acquisition makes, and
// which nodes it waits for.
type recipe interface {
	// step goes on until a has the lock or, if wait is set, watches the node that it has to wait
	// for.
	step(ctx context.Context, a *acquisition, wait bool) (held bool, err error)
	// busy reports whether other clients hold the lock of req and leave no room, or wait for the
	// lock.
	busy(ctx context.Context, c *core, req driver.Request) (bool, error)
	// inspect returns the nodes of the lock called name.
	inspect(ctx context.Context, s *session, name string) (sight, error)
}

// store is the [driver.Store] of the locks of one kind. It knows the acquisitions under way and
// the holds.
type store struct {
	*core
	recipe recipe
	lost   func(driver.HoldID, error)

	mu           sync.Mutex
	acquisitions map[driver.HoldID]*acquisition
}

var (
	_ driver.Store        = (*store)(nil)
	_ driver.Queue        = (*store)(nil)
	_ driver.LossNotifier = (*store)(nil)
	_ driver.Session      = (*store)(nil)
	_ driver.Inspector    = (*store)(nil)
	_ driver.Punctual     = (*store)(nil)
)

func newStore(c *core, r recipe) *store {
	st := &store{core: c, recipe: r, acquisitions: make(map[driver.HoldID]*acquisition)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stores = append(c.stores, st)
	return st
}

// NotifyLoss is part of [driver.LossNotifier].
func (st *store) NotifyLoss(lost func(driver.HoldID, error)) { st.lost = lost }

// begin returns the acquisition of req, and begins the acquisition if there is none.
func (st *store) begin(req driver.Request) *acquisition {
	if a := st.find(req.HoldID); a != nil {
		return a
	}
	a := &acquisition{st: st, id: req.HoldID, wake: make(chan struct{}, 1)}
	a.revoke, _ = req.Data.(func(token uint64))
	if req.Writer != "" {
		a.under = st.writer(driver.HoldID{Name: req.Name, Acquisition: req.Writer})
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if first := st.acquisitions[req.HoldID]; first != nil {
		return first
	}
	st.acquisitions[req.HoldID] = a
	return a
}

// find returns an acquisition that was begun, or nil.
func (st *store) find(id driver.HoldID) *acquisition {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.acquisitions[id]
}

// forget forgets a. It keeps a newer acquisition that a late request has begun under the same id.
func (st *store) forget(a *acquisition) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.acquisitions[a.id] == a {
		delete(st.acquisitions, a.id)
	}
}

// writer returns the node of a hold of the write half of a lock, or nil.
func (c *core) writer(id driver.HoldID) *node {
	c.mu.Lock()
	stores := c.stores
	c.mu.Unlock()
	for _, st := range stores {
		if st.recipe != (queue{writeMode}) {
			continue
		}
		if a := st.find(id); a != nil {
			return a.holding()
		}
	}
	return nil
}

// Enqueue takes the lock, or a place in its queue.
func (st *store) Enqueue(ctx context.Context, req driver.Request) (driver.Reply, error) {
	reply, err := st.request(ctx, req, func(ctx context.Context, a *acquisition) (bool, error) {
		return st.recipe.step(ctx, a, true)
	}, func(err error) bool {
		return !errors.Is(err, driver.ErrRefused) && !errors.Is(err, locks.ErrForeign)
	})
	reply.Listening = true // Watch returns a.wake
	return reply, err
}

// Acquire takes the lock if no other client holds it or waits for it. Otherwise it leaves nothing
// behind.
func (st *store) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	return st.request(ctx, req, func(ctx context.Context, a *acquisition) (bool, error) {
		if a.own == nil && a.queued == nil && a.under == nil {
			if busy, err := st.busy(ctx, req); busy || err != nil {
				return false, err
			}
		}
		return st.recipe.step(ctx, a, false)
	}, func(error) bool { return false })
}

// request is Acquire and Enqueue. keeps reports whether the acquisition keeps its place after a
// request that did not get the lock; the argument is the error of the request, or nil.
//
// Two requests for one acquisition may be under way: package lease repeats a request without a
// reply, and the first request may be late. They take turns, and each continues from the state that
// the request before it has left:
//
//	the request before          the next one
//	holds                       returns that hold
//	has a place, or no answer   goes on with its nodes
//	has no place                begins the acquisition anew
//	was ended, by whatever      asks nothing
//
// A request that has no place deletes only the nodes that it has made itself.
func (st *store) request(ctx context.Context, req driver.Request,
	step func(ctx context.Context, a *acquisition) (bool, error), keeps func(error) bool) (driver.Reply, error) {
	a := st.begin(req)
	for a.turn.Lock(); a.dropped; a.turn.Lock() {
		a.turn.Unlock()
		a = st.begin(req)
	}
	defer a.turn.Unlock()
	a.permits, a.size = req.Weigh()
	a.named = req.Size > 0
	if a.holding() != nil {
		if reply, err := st.Lookup(ctx, req); reply.Held || err != nil {
			return reply, err
		}
		a.placed = false // the hold has ended, and the place with it
	}
	reply, err := a.ask(func(ctx context.Context) (bool, error) { return step(ctx, a) }, req.TTL)
	err = outcome(err)
	switch {
	case reply.Held || keeps(err):
		a.placed = true
	case !a.placed && a.leave():
		a.dropped = true
		st.forget(a)
		await(ctx, a.end(), patience)
	}
	return reply, err
}

// busy reports whether others hold the lock of req, or wait for it. A server that lags behind the
// leader may still see an old holder, so the server first catches up.
func (st *store) busy(ctx context.Context, req driver.Request) (bool, error) {
	busy, err := st.recipe.busy(ctx, st.core, req)
	if !busy || err != nil {
		return false, err
	}
	s, err := st.session(ctx)
	if err != nil {
		return false, err
	}
	if err := s.sync(ctx, req.Name); err != nil {
		return false, err
	}
	return st.recipe.busy(ctx, st.core, req)
}

// patience is how long a call waits for the deletion of a node, which goes on without it.
const patience = time.Second

// Punctual is part of [driver.Punctual].
func (st *store) Punctual() bool { return true }

// Release deletes the nodes of a hold. It does not report a hold that was found lost.
func (st *store) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	a := st.find(id)
	if a == nil {
		return driver.Released{}, nil
	}
	if err := a.endInTime(ctx); err != nil {
		return driver.Released{}, outcome(fmt.Errorf("delete the node in %q: %w", id.Name, err))
	}
	st.forget(a)
	// Waiters in the queue of the store go first without help from here.
	return driver.Released{Held: a.removed(), Awaited: st.recipe == ephemeral{}}, nil
}

// Leave deletes the nodes of a waiter. A deletion that takes long goes on in the background.
func (st *store) Leave(ctx context.Context, id driver.HoldID) error {
	if a := st.find(id); a != nil && (a.leave() || a.isLeft()) {
		st.forget(a)
		await(ctx, a.end(), patience)
	}
	return nil
}

// Lost deletes the nodes of a lost hold. The session of the hold may live on.
func (st *store) Lost(id driver.HoldID) {
	if a := st.find(id); a != nil {
		st.forget(a)
		a.end()
	}
}

// Lookup asks for the node of a hold. The nodes of an acquisition without a hold have been deleted,
// or will be.
func (st *store) Lookup(ctx context.Context, req driver.Request) (driver.Reply, error) {
	a := st.find(req.HoldID)
	if a == nil || a.holding() == nil {
		return driver.Reply{}, nil
	}
	held, err := st.Renew(ctx, []driver.HoldID{a.id}, 0)
	if !held[0] {
		return driver.Reply{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.reply, nil
}

// Watch returns the wake-ups of a waiter.
func (st *store) Watch(ctx context.Context, id driver.HoldID) (driver.Watch, error) {
	return wakeUps{st.begin(driver.Request{HoldID: id}).wake}, nil
}

type wakeUps struct{ wake <-chan struct{} }

func (w wakeUps) C() <-chan struct{} { return w.wake }

func (w wakeUps) Close() {} // Leave, or the hold's end, ends them

// Renew makes the leader confirm each session, and reads the nodes whose watches are not set. The
// deletion of the other nodes would have been reported.
func (st *store) Renew(ctx context.Context, holds []driver.HoldID, _ time.Duration) ([]bool, error) {
	held := make([]bool, len(holds))
	confirmed := make(map[*session]bool)
	var refusal error
	for i, h := range holds {
		a := st.find(h)
		if a == nil {
			continue
		}
		n := a.holding()
		if n == nil || n.s.isOver() {
			continue
		}
		err := error(nil)
		if !confirmed[n.s] {
			err = repeat(ctx, n.s, func() error { return n.s.sync(ctx, "/") })
			confirmed[n.s] = !inDoubt(err)
		}
		for _, part := range a.parts() {
			if err == nil && !part.watched() {
				err = repeat(ctx, part.s, func() error { return a.check(ctx, part) })
			}
		}
		switch {
		case inDoubt(err) && !n.s.isOver():
			return make([]bool, len(holds)), err // only holds that the leader has confirmed count
		case classOf(err) == request: // the server does not say whether the node exists
			refusal = err
		}
		held[i] = err == nil && a.holding() == n
	}
	return held, refusal
}

// repeat repeats a request until there is an answer, ctx ends, or the session is over.
func repeat(ctx context.Context, s *session, ask func() error) error {
	for {
		err := ask()
		if !inDoubt(err) || ctx.Err() != nil || s.isOver() {
			return err
		}
		adapter.Sleep(ctx, 5*time.Millisecond)
	}
}

// drop is called when s is over: its holds are lost, and waiters begin anew.
func (st *store) drop(s *session, why error) {
	st.mu.Lock()
	var all []*acquisition
	for _, a := range st.acquisitions {
		all = append(all, a)
	}
	st.mu.Unlock()
	for _, a := range all {
		if n := a.holding(); n == nil {
			a.notify()
		} else if n.s == s {
			st.lost(a.id, why)
		}
	}
}

// await waits until all are done, for d at most, or until ctx ends.
func await(ctx context.Context, done []<-chan struct{}, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for _, ch := range done {
		select {
		case <-ch:
		case <-timer.C:
			return errNoAnswer
		case <-ctx.Done():
			return errNoAnswer
		}
	}
	return nil
}

// acquisition is the state of one acquisition, and of its hold, in ZooKeeper. The lease client
// sends its requests one after the other. Only events, renewals and losses come at any time.
type acquisition struct {
	st     *store
	id     driver.HoldID
	revoke func(token uint64) // called when the hold is asked for, if not nil
	wake   chan struct{}      // notifies the waiter

	turn sync.Mutex // held by the request that asks, see request

	// Used by the request whose turn it is.
	placed  bool // an earlier request has the lock, or a place to keep
	dropped bool // given up by a request without a place: the next one begins anew

	permits, size int64 // see driver.Request.Weigh
	named         bool  // its nodes contain its name: one acquisition may have several leases

	// Used by the goroutine that asks, or by end if none asks.
	under  *node         // of the write lock that the owner of a read lock holds, or nil
	own    *node         // the place in the queue, or the lock
	more   []*node       // the further leases of a semaphore
	queued *node         // the place in the queue before the semaphore
	term   time.Duration // how long the hold shall last
	since  time.Time     // when the hold begins to count, if not with the request for it
	at     place         // what it waits for
	on     *session      // where; nil if nothing

	mu     sync.Mutex
	asking bool         // own and queued belong to the goroutine that asks
	ended  bool         // not wanted any more: the goroutine that asks deletes the nodes
	held   []*node      // own and more, from the grant to the end of the hold
	had    bool         // own was held
	reply  driver.Reply // of the grant
	asked  bool         // to give the lock back
	told   bool         // so
	guard  *time.Timer  // looks at held, which sets the watch

	ahead atomic.Pointer[ahead]
}

// ahead is a request for the children of n's directory. The request was sent when the node that n
// waits for had gone, before the waiter was awake.
type ahead struct {
	n *node
	pending[[]string]
}

// step goes on with an acquisition: see recipe.
type step func(ctx context.Context) (held bool, err error)

// ask goes on with step until the lock is held or has to be waited for. Requests that fail are
// repeated for half of the session timeout.
//
// The caller has its turn. The caller may be abandoned, and another goroutine may call end before
// or meanwhile. After end, ask does nothing. The nodes are deleted by:
//
//	asking  ended
//	no      no     nobody
//	yes     no     nobody
//	no      yes    end
//	yes     yes    ask, at its end
func (a *acquisition) ask(step step, d time.Duration) (driver.Reply, error) {
	ctx, cancel := a.st.within(a.st.Term() / 2)
	defer cancel()
	a.mu.Lock()
	if a.ended {
		a.mu.Unlock()
		return driver.Reply{}, nil
	}
	a.asking, a.term = true, d
	a.mu.Unlock()
	held, err := a.proceed(ctx, step)
	a.mu.Lock()
	ended, reply := a.ended, a.reply
	a.asking = ended
	a.mu.Unlock()
	if ended {
		a.reset()
	}
	if ended || !held {
		return driver.Reply{}, err
	}
	return reply, nil
}

// young is how long a holder's node has no watch. Most nodes are deleted by then, and the event
// of a watch would delay the next holder.
const young = 100 * time.Millisecond

// proceed is ask while asking is set.
func (a *acquisition) proceed(ctx context.Context, step step) (bool, error) {
	for {
		if a.own != nil && a.own.s.isOver() || a.queued != nil && a.queued.s.isOver() {
			a.reset()
		}
		held, err := step(ctx)
		switch {
		case a.isLeft() || err == nil && !held:
			return false, err
		case err == nil && a.grant():
			a.ignore()
			return true, nil
		case err == nil || errors.Is(err, errNoOwn):
			a.reset()
		case ctx.Err() != nil || !temporary(err):
			return false, err
		default:
			adapter.Sleep(ctx, 5*time.Millisecond)
		}
	}
}

// temporary reports whether a request that has failed with err may succeed later.
func temporary(err error) bool {
	for _, final := range []error{locks.ErrForeign, locks.ErrClosed, driver.ErrRefused, errBroken} {
		if errors.Is(err, final) {
			return false
		}
	}
	switch classOf(err) {
	case moment, login: // package lease asks again, after longer pauses
		return false
	}
	return inDoubt(err)
}

// errBroken is the error of a lock that cannot be acquired at all.
var errBroken = errors.New("the lock cannot be used")

// grant begins the hold. It reports false if the session is over.
func (a *acquisition) grant() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.own.s.isOver() {
		return false
	}
	held := append([]*node{a.own}, a.more...)
	a.held, a.had, a.reply = held, true, driver.Reply{Held: true, Token: a.own.zxid(), Since: a.since}
	a.guard = time.AfterFunc(young, func() {
		for _, n := range held {
			a.look(n)
		}
	})
	return true
}

// reset deletes the nodes, so that the next step begins anew.
func (a *acquisition) reset() {
	a.ignore()
	a.discard()
	a.own, a.more, a.queued, a.since = nil, nil, nil, time.Time{}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held, a.had = nil, false
}

// discard deletes the nodes, and returns channels that close when the deletions have ended.
func (a *acquisition) discard() (done []<-chan struct{}) {
	for _, n := range a.nodes() {
		done = append(done, n.discard())
	}
	return done
}

// end ends the hold, or the wait, for good. It deletes the nodes, and returns channels that close
// when the deletions have ended.
func (a *acquisition) end() (done []<-chan struct{}) {
	a.mu.Lock()
	a.ended, a.held = true, nil
	if a.guard != nil {
		a.guard.Stop()
	}
	asking := a.asking
	a.mu.Unlock()
	if asking {
		return nil
	}
	a.ignore()
	return a.discard()
}

// endInTime calls end, and waits for the deletions. It returns the error of a server that refuses
// to delete a node. The deletion is then repeated in the background.
func (a *acquisition) endInTime(ctx context.Context) error {
	done := a.end()
	refused := make(chan error, 1)
	if done != nil {
		for _, n := range a.nodes() {
			n.whenRefused(func(err error) {
				select {
				case refused <- err:
				default:
				}
			})
		}
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for _, ch := range done {
		select {
		case <-ch:
		case err := <-refused:
			return err
		case <-timer.C:
			return errNoAnswer
		case <-ctx.Done():
			return errNoAnswer
		}
	}
	return nil
}

// nodes returns the nodes that a has made.
func (a *acquisition) nodes() (all []*node) {
	for _, n := range append([]*node{a.own, a.queued}, a.more...) {
		if n != nil {
			all = append(all, n)
		}
	}
	return all
}

// leave ends the wait for good. It reports false if a holds, or was ended before. The caller calls
// end.
func (a *acquisition) leave() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended || a.held != nil {
		return false
	}
	a.ended = true
	return true
}

// removed reports, after end, whether the lock was held until this client deleted the own node.
func (a *acquisition) removed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.asking && a.had && a.own.removed() &&
		!slices.ContainsFunc(a.more, func(n *node) bool { return !n.removed() })
}

func (a *acquisition) isLeft() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ended
}

// holding returns the node of the hold, or the first of several, or nil.
func (a *acquisition) holding() *node {
	if held := a.parts(); held != nil {
		return held[0]
	}
	return nil
}

// parts returns the nodes of the hold.
func (a *acquisition) parts() []*node {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held
}

// notify makes the waiter ask again.
func (a *acquisition) notify() {
	select {
	case a.wake <- struct{}{}:
	default:
	}
}

// listen makes the next event at a place call f. It ends the listening at any other place.
func (a *acquisition) listen(s *session, at place, f func()) {
	if a.on != s || a.at != at {
		a.ignore()
	}
	a.on, a.at = s, at
	s.watches.listen(at, a, func(zk.Event) { f() })
}

// ignore ends the effect of listen. Two calls of end may call ignore at once.
func (a *acquisition) ignore() {
	a.mu.Lock()
	on, at := a.on, a.at
	a.on = nil
	a.mu.Unlock()
	if on != nil {
		on.watches.ignore(at, a)
	}
}

// heard is called at a change of the own node n. It does not block.
func (a *acquisition) heard(n *node, gone bool) {
	if gone {
		a.vanished(n)
		return
	}
	a.look(n)
}

// look checks the own node n in the background.
func (a *acquisition) look(n *node) {
	a.st.jobs.Go(func() {
		ctx, cancel := a.st.within(n.s.term())
		defer cancel()
		repeat(ctx, n.s, func() error { return a.check(ctx, n) })
	})
}

// check looks at the own node n, and leaves a watch.
func (a *acquisition) check(ctx context.Context, n *node) error {
	st, err := n.look(ctx)
	if errors.Is(err, zk.ErrNoNode) {
		a.vanished(n)
	} else if err == nil && string(st.data) == revoked {
		a.mu.Lock()
		a.asked = true
		a.mu.Unlock()
		a.tell()
	}
	return err
}

// vanished is called when another client has deleted the own node n.
func (a *acquisition) vanished(n *node) {
	a.mu.Lock()
	lost := slices.Contains(a.held, n)
	a.mu.Unlock()
	if lost {
		a.st.lost(a.id, fmt.Errorf("its node was deleted: %w", zk.ErrNoNode))
	}
}

// revoked is the data by which Curator asks a holder to give the lock back.
const revoked = "__REVOKE__"

// tell notifies the holder, once, that another client asks it to give the lock back.
func (a *acquisition) tell() {
	a.mu.Lock()
	held := a.held
	now := a.asked && held != nil && !a.told
	a.told = a.told || now
	a.mu.Unlock()
	if now && a.revoke != nil {
		go a.revoke(held[0].zxid()) // the user's function, for which nobody waits
	}
}

// data returns the data of a node: like Curator, the address of the client, or nothing if the lock
// can be revoked. If inspectors need the name of the acquisition, the name follows in another line.
func (a *acquisition) data(s *session) []byte {
	switch {
	case a.revoke != nil:
		return []byte{}
	case a.named:
		return []byte(s.host() + "\n" + a.id.Acquisition)
	}
	return []byte(s.host())
}
