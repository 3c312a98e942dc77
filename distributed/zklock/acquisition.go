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
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// acquisition is the state of one acquisition, and of its hold, in ZooKeeper. The lease client
// sends its requests one after the other. Only events, renewals and losses come at any time.
type acquisition struct {
	st       *store
	id       driver.HoldID
	revoke   func(token uint64) // called when another client asks for the hold, or nil
	bell     adapter.Bell       // of the waiter
	listener listener
	ahead    atomic.Pointer[ahead]

	turn sync.Mutex // held by the request that asks, see request
	attempt

	mu    sync.Mutex
	phase phase
	hold  *hold // from the grant on; nil again after reset
}

// phase says which goroutine uses the nodes of an acquisition, and deletes them when end is called:
//
//	phase    the nodes belong to      end
//	resting  no goroutine             deletes the nodes -> over
//	asking   the request under way    leaves the nodes to the request -> left
//	left     the request under way    does nothing: the request deletes the nodes at its end
//	over     end                      deletes the nodes that still exist
//
// ask goes from resting to asking and back. After left and over, ask does nothing.
type phase int

const (
	resting phase = iota
	asking
	left
	over
)

// attempt is the part of an acquisition that its requests hand on to each other. The request whose
// turn it is uses the attempt. In the phase over, end uses the attempt.
type attempt struct {
	req     driver.Request // the present request
	placed  bool           // an earlier request has the lock, or a place to keep
	dropped bool           // given up by a request without a place: the next request begins anew
	under   *node          // of the write lock that the owner of a read lock holds, or nil
	nodes
}

// nodes are the nodes that an acquisition has made.
type nodes struct {
	own    *node   // the place in the queue, or the lock
	more   []*node // the further leases of a semaphore
	queued *node   // the place in the queue before the semaphore
}

// all returns the nodes that exist, or are being deleted.
func (ns nodes) all() (all []*node) {
	for _, n := range append([]*node{ns.own, ns.queued}, ns.more...) {
		if n != nil {
			all = append(all, n)
		}
	}
	return all
}

// leases returns the own node and the further leases.
func (ns nodes) leases() []*node { return append([]*node{ns.own}, ns.more...) }

// hold is the hold of an acquisition.
type hold struct {
	leases  []*node
	reply   driver.Reply // of the grant
	guard   *time.Timer  // looks at the leases, which sets their watches
	revoked bool         // the holder was asked to give the lock back
}

// ahead is a request for the children of n's directory. The request was sent when the node that n
// waits for had gone, before the waiter was awake.
type ahead struct {
	n *node
	pending[[]string]
}

// step goes on with an acquisition: see recipe.
type step func(ctx context.Context) (held bool, err error)

// ask goes on with step until the lock is held or must be waited for. Requests that fail are
// repeated for half of the session timeout.
//
// The caller has its turn. The caller may be abandoned, and another goroutine may call end before
// or meanwhile: see phase.
func (a *acquisition) ask(step step) (driver.Reply, error) {
	ctx, cancel := a.st.within(a.st.Term() / 2)
	defer cancel()
	if !a.goFrom(resting, asking) {
		return driver.Reply{}, nil
	}
	held, err := a.proceed(ctx, step)
	if !a.goFrom(asking, resting) {
		a.reset()
		return driver.Reply{}, err
	}
	if h := a.holding(); held && h != nil {
		return h.reply, nil
	}
	return driver.Reply{}, err
}

// goFrom changes the phase from old to next. It reports false, and changes nothing, if the phase is
// not old.
func (a *acquisition) goFrom(old, next phase) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.phase != old {
		return false
	}
	a.phase = next
	return true
}

// young is how long a holder's node stays without a watch. Most nodes are deleted by then, and the
// event of a watch would delay the next holder.
const young = 100 * time.Millisecond

// proceed is ask in the phase asking.
func (a *acquisition) proceed(ctx context.Context, step step) (bool, error) {
	for {
		if a.own != nil && a.own.s.isOver() || a.queued != nil && a.queued.s.isOver() {
			a.reset()
		}
		var since time.Time
		held, err := step(ctx)
		if held && err == nil {
			since, err = a.own.s.confirm(ctx, a.req.TTL)
		}
		switch {
		case a.isEnded() || err == nil && !held:
			return false, err
		case err == nil && a.grant(since):
			a.listener.ignore()
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
	case classes.Moment, classes.Connection: // package lease asks again, after longer pauses
		return false
	}
	return inDoubt(err)
}

// errBroken is the error of a lock that cannot be acquired at all.
var errBroken = errors.New("the lock cannot be used")

// grant begins the hold, which counts from since. It reports false if the session is over.
func (a *acquisition) grant(since time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.own.s.isOver() {
		return false
	}
	leases := a.leases()
	a.hold = &hold{
		leases: leases,
		reply:  driver.Reply{Held: true, Token: a.own.zxid(), Since: since},
		guard: time.AfterFunc(young, func() {
			for _, n := range leases {
				a.look(n)
			}
		}),
	}
	return true
}

// reset deletes the nodes, so that the next step begins anew.
func (a *acquisition) reset() {
	a.discard()
	a.nodes = nodes{}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.hold = nil
}

// discard stops listening and deletes the nodes. It returns channels that close when the deletions
// have ended.
func (a *acquisition) discard() (done []<-chan struct{}) {
	a.listener.ignore()
	for _, n := range a.all() {
		done = append(done, n.discard())
	}
	return done
}

// end ends the hold, or the wait, for good. It deletes the nodes, and returns channels that close
// when the deletions have ended. If the request under way deletes the nodes, end returns nil.
func (a *acquisition) end() (done []<-chan struct{}) {
	a.mu.Lock()
	if a.hold != nil {
		a.hold.guard.Stop()
	}
	mine := a.finish() == over
	a.mu.Unlock()
	if !mine {
		return nil
	}
	return a.discard()
}

// finish goes to the last phase, and returns it. a.mu is held.
func (a *acquisition) finish() phase {
	switch a.phase {
	case resting:
		a.phase = over
	case asking:
		a.phase = left
	}
	return a.phase
}

// endInTime calls end, and waits for the deletions. It returns the error of a server that refuses
// to delete a node. The deletion is then repeated in the background.
func (a *acquisition) endInTime(ctx context.Context) error {
	done := a.end()
	if done == nil {
		return nil
	}
	refused := make(chan error, 1)
	for _, n := range a.all() {
		n.whenRefused(func(err error) {
			select {
			case refused <- err:
			default:
			}
		})
	}
	return await(ctx, done, refused)
}

// leave ends the wait for good. It reports false if a holds, or was ended before. The caller calls
// end.
func (a *acquisition) leave() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.phase >= left || a.hold != nil {
		return false
	}
	a.finish()
	return true
}

// isEnded reports whether end or leave was called.
func (a *acquisition) isEnded() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.phase >= left
}

// removed reports, after end, whether the lock was held until this client deleted the own node.
func (a *acquisition) removed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.phase == over && a.hold != nil &&
		!slices.ContainsFunc(a.hold.leases, func(n *node) bool { return !n.removed() })
}

// holding returns the hold, or nil if there is none or the hold was ended.
func (a *acquisition) holding() *hold {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.phase >= left {
		return nil
	}
	return a.hold
}

// onChange is called at a change of the own node n. It does not block.
func (a *acquisition) onChange(n *node, gone bool) {
	if gone {
		a.onDeletion(n)
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
		a.onDeletion(n)
	} else if err == nil && string(st.data) == revoked {
		a.onRevocation()
	}
	return err
}

// onDeletion is called when another client has deleted the own node n.
func (a *acquisition) onDeletion(n *node) {
	if h := a.holding(); h != nil && slices.Contains(h.leases, n) {
		a.st.lost(a.id, fmt.Errorf("its node was deleted: %w", zk.ErrNoNode))
	}
}

// revoked is the data by which Curator asks a holder to give the lock back.
const revoked = "__REVOKE__"

// onRevocation notifies the holder, once, that another client asks it to give the lock back.
func (a *acquisition) onRevocation() {
	h := a.holding()
	if h == nil || a.revoke == nil {
		return
	}
	a.mu.Lock()
	first := !h.revoked
	h.revoked = true
	a.mu.Unlock()
	if first {
		go a.revoke(h.reply.Token) // the user's function, for which nobody waits
	}
}

// data returns the data of a node: like Curator, the address of the client, or nothing if the lock
// can be revoked. If inspectors need the name of the acquisition, the name follows in another line.
func (a *acquisition) data(s *session) []byte {
	switch {
	case a.revoke != nil:
		return []byte{}
	case a.req.Size > 0: // one acquisition may have several leases
		return []byte(s.host() + "\n" + a.id.Acquisition)
	}
	return []byte(s.host())
}

// listener is the target at which an acquisition listens. A listener listens at one target at a
// time.
type listener struct {
	mu sync.Mutex
	on *session // nil if at no target
	at target
}

// listen makes the next event at a target call f. It ends the listening at any other target.
func (l *listener) listen(s *session, at target, f func()) {
	if on, before := l.move(s, at); on != nil && (on != s || before != at) {
		on.watches.ignore(before, l)
	}
	s.watches.listen(at, l, func(zk.Event) { f() })
}

// ignore ends the effect of listen. Two calls of end may call ignore at once.
func (l *listener) ignore() {
	if on, at := l.move(nil, target{}); on != nil {
		on.watches.ignore(at, l)
	}
}

// move changes the target, and returns the target before.
func (l *listener) move(s *session, at target) (on *session, before target) {
	l.mu.Lock()
	defer l.mu.Unlock()
	on, before = l.on, l.at
	l.on, l.at = s, at
	return on, before
}
