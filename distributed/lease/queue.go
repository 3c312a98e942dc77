package lease

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/reentrant"
)

// localQueues is the local queues of the names that a client uses.
type localQueues struct {
	*base
	releaser *releaser

	mu     sync.Mutex
	closed bool
	names  map[string]*localQueue
}

// localQueue is the state of one name in this process, or of one owner of a [WithShared] name. It
// is in use while a goroutine holds the lock, waits for it, or undoes something.
//
// Several goroutines of one owner may have the turn. Only one of them at a time may talk to the
// store: it makes the queue busy.
type localQueue struct {
	all   *localQueues
	name  string
	turn  *reentrant.Mutex // the waiters in order of arrival, and the owner whose turn it is
	users atomic.Int64     // from 0 to more only with localQueues.mu held

	mu      sync.Mutex
	depth   int           // holds of turn that count
	extra   int           // how many of them, except the first, are users too
	hold    *hold         // the owner's hold, if the owner has the store's lock too
	grant   *grant        // the store's lock in this process: the owner's, or handed off to the next owner
	handoff handoff       // whether the next owner gets grant from this owner
	busy    bool          // a goroutine talks to the store about grant
	idle    chan struct{} // closed when busy ends, or nil if no goroutine waits for that
	asks    string        // the acquisition by which the owner waits in the store, while busy
}

// use returns name's queue with one more user. If name is without a queue, use returns last, an
// earlier queue of that name that is no longer in use. If last is nil, use makes a queue.
func (qs *localQueues) use(name string, last *localQueue) (*localQueue, error) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	if qs.closed {
		return nil, locks.ErrClosed
	}
	q := qs.names[name]
	if q == nil {
		if q = last; q == nil {
			q = &localQueue{all: qs, name: name, turn: reentrant.New(locks.FIFO)}
		}
		qs.names[name] = q
	}
	q.users.Add(1)
	return q, nil
}

// find returns name's queue, or nil.
func (qs *localQueues) find(name string) *localQueue {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.names[name]
}

// list returns the queues whose names begin with prefix.
func (qs *localQueues) list(prefix string) (list []*localQueue) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for name, q := range qs.names {
		if strings.HasPrefix(name, prefix) {
			list = append(list, q)
		}
	}
	return list
}

// close makes use fail, and returns all queues.
func (qs *localQueues) close() []*localQueue {
	qs.mu.Lock()
	qs.closed = true
	qs.mu.Unlock()
	return qs.list("")
}

// keep counts one more user of q, which has some.
func (q *localQueue) keep() { q.users.Add(1) }

// drop counts one user less, and forgets q with the last. A goroutine that enters meanwhile has
// counted itself before the second look, or finds q gone.
func (q *localQueue) drop() {
	if q.users.Add(-1) > 0 {
		return
	}
	q.all.mu.Lock()
	defer q.all.mu.Unlock()
	if q.users.Load() == 0 && q.all.names[q.name] == q {
		delete(q.all.names, q.name)
	}
}

// holdOf returns the hold if it is o's. q.mu is held: a hold ends before its owner's turn, so the
// hold and the owner of the turn belong together only under q.mu.
func (q *localQueue) holdOf(o locks.Owner) *hold {
	if q.hold == nil || q.turn.Owner() != o {
		return nil
	}
	return q.hold
}

// reenter counts one more hold if o has the lock, and reports whether o has it. An error says why
// the hold is not counted.
func (q *localQueue) reenter(o locks.Owner) (held bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	h := q.holdOf(o)
	if h == nil {
		return false, nil
	}
	if err := h.Err(); err != nil {
		return true, err
	}
	if _, err := q.turn.TryLockContext(adapter.As(o)); err != nil {
		return true, ctxerr.Bare(err)
	}
	q.depth++
	return true, nil
}

// enter waits for the turn of the caller, whose owner is o. It reports in ok whether the caller has
// its turn, and in waited whether the caller waited. No method of ctx is called once the caller has
// its turn.
func (q *localQueue) enter(ctx context.Context, o locks.Owner, wait bool) (ok, waited bool, err error) {
	ok, err = q.turn.TryLockContext(adapter.As(o))
	if !ok && err == nil && wait {
		waited = true
		err = adapter.Until(ctx, q.all.open, q.turn.LockContext)
		ok = err == nil
	}
	if ok {
		q.mu.Lock()
		if q.depth > 0 {
			q.extra++
		}
		q.depth++
		q.mu.Unlock()
	}
	return ok, waited, ctxerr.Bare(err)
}

// start makes q busy. The result left is the grant that an earlier owner did not release, or nil.
// The result yield is the time for which other clients go first. q.mu is held.
func (q *localQueue) start(now time.Time) (left *grant, yield time.Duration) {
	left, yield = q.grant, q.handoff.takeYield(now)
	q.grant, q.busy = nil, true
	return left, yield
}

// finish makes q idle.
func (q *localQueue) finish() {
	q.mu.Lock()
	q.finishLocked()
	q.mu.Unlock()
}

// finishLocked is finish with q.mu held.
func (q *localQueue) finishLocked() {
	q.busy, q.asks = false, ""
	if q.idle != nil {
		close(q.idle)
		q.idle = nil
	}
}

// whenIdle returns a channel that is closed when q, which is busy, becomes idle. q.mu is held.
func (q *localQueue) whenIdle() <-chan struct{} {
	if q.idle == nil {
		q.idle = make(chan struct{})
	}
	return q.idle
}

// fewer counts one hold less, and reports whether q has one user less too. q.mu is held.
func (q *localQueue) fewer() bool {
	q.depth--
	if q.depth > 0 {
		if q.extra == 0 {
			return false
		}
		q.extra--
	}
	return true
}

// unlock ends one hold of o, whose turn it is.
func (q *localQueue) unlock(o locks.Owner) error {
	ctx := adapter.As(o)
	q.mu.Lock()
	h := q.holdOf(o)
	if h == nil { // another goroutine of the owner is about to get the hold, or has just released it
		q.mu.Unlock()
		return locks.ErrNotHeld
	}
	now := q.all.now()
	err := h.g.errAt(now)
	if q.depth > 1 {
		_ = q.turn.UnlockContext(ctx) // before another goroutine can see the last hold
		user := q.fewer()
		q.mu.Unlock()
		if user {
			q.drop()
		}
		return err
	}
	defer q.drop()
	q.fewer()
	h.released.Store(true)
	q.hold = nil
	switch {
	case err != nil:
		q.grant, q.busy = nil, true // until Close can see the sweep
		q.mu.Unlock()
		q.all.releaser.sweepLapsed(h.g)
		q.finish()
	case q.handsOff(h.g, now):
		q.mu.Unlock()
		_ = q.turn.UnlockContext(ctx)
		return q.releaseUnclaimed(ctx)
	default:
		q.grant, q.busy = nil, true
		q.mu.Unlock()
		var yield time.Duration
		yield, err = q.all.releaser.release(h.g)
		q.mu.Lock()
		q.handoff.onRelease(q.all.now(), yield, q.turn.HasQueued())
		q.finishLocked()
		q.mu.Unlock()
	}
	_ = q.turn.UnlockContext(ctx)
	return err
}

// handsOff reports whether g goes to the next local waiter. q.mu is held. If the client is closing,
// the waiter does not take g: Close, the waiter or the caller releases it.
func (q *localQueue) handsOff(g *grant, now time.Time) bool {
	if !q.turn.HasQueued() {
		return false
	}
	switch q.handoff.decide(g, q.all.handoffs, q.all.prober != nil, now) {
	case handOff:
		return true
	case probe:
		if !q.all.begin() {
			return false
		}
		go q.probe(g)
		return true
	}
	return false
}

// probe asks the store whether others wait for g's lock. It ends the job that the caller has
// begun.
func (q *localQueue) probe(g *grant) {
	defer q.all.finish()
	others, err := q.all.prober.Contended(q.all.life, g.id.Name)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.handoff.onProbe(q.grant == g, err == nil && !others)
}

// leave ends o's turn, whose acquisition did not get the store's lock.
func (q *localQueue) leave(o locks.Owner) {
	ctx := adapter.As(o)
	q.mu.Lock()
	user := q.fewer()
	if h := q.hold; q.depth == 0 && h != nil {
		// Another goroutine of the owner has acquired the lock since, and has unlocked it as one
		// of two holds. Therefore the last hold is released here. Or the hold is lost.
		h.released.Store(true)
		q.hold, q.grant = nil, nil
		q.busy = true
		q.keep()
		q.all.spawn(func() {
			defer q.drop()
			q.all.releaser.release(h.g)
			q.finish()
		})
	}
	q.mu.Unlock()
	_ = q.turn.UnlockContext(ctx)
	q.releaseUnclaimed(ctx)
	if user {
		q.drop()
	}
}

// releaseUnclaimed releases a lock that was handed off to a local waiter that has gone away. ctx
// has the caller's owner, and never ends.
func (q *localQueue) releaseUnclaimed(ctx context.Context) error {
	q.mu.Lock()
	nothing := q.grant == nil
	q.mu.Unlock()
	if nothing || q.turn.IsLocked() {
		return nil // the owner whose turn it is looks after the grant
	}
	if ok, err := q.turn.TryLockContext(ctx); !ok {
		return err
	}
	defer func() { _ = q.turn.UnlockContext(ctx) }()
	q.mu.Lock()
	g := q.grant
	if g == nil || q.hold != nil || q.busy {
		q.mu.Unlock()
		return nil
	}
	q.grant, q.busy = nil, true
	q.mu.Unlock()
	defer q.finish()
	_, err := q.all.releaser.release(g)
	return err
}
