package lease

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/reentrant"
)

// entry is the state of one name in this process, or of one owner of a [Shared] name. It exists
// while a goroutine holds the lock, waits for it, or undoes something.
type entry struct {
	name  string
	queue *reentrant.Mutex // the local queue, and the owner that has passed it
	users atomic.Int64     // from 0 to more only with Client.mu held

	mu      sync.Mutex
	depth   int     // holds of queue that count
	extra   int     // how many of them, except the first, are users too
	hold    *hold   // the owner's, if it has the store's lock too
	grant   *grant  // the store's lock in this process: the owner's, or passed to the next one
	handoff handoff // whether the next owner gets grant from this one
	// busy is set while one goroutine talks to the store about grant. No other one may do so
	// then. idle, if a goroutine waits for the end of that, is closed at the end.
	busy bool
	idle chan struct{}
	asks string // the acquisition by which the owner waits in the store, while busy
}

// holdOf returns the hold if it is o's. e.mu is held: a hold ends before its owner leaves the
// queue, so the two belong together only under e.mu.
func (e *entry) holdOf(o locks.Owner) *hold {
	if e.hold == nil || e.queue.Owner() != o {
		return nil
	}
	return e.hold
}

// reenter counts one more hold if o has the lock, and reports whether o has it. An error says why
// the hold is not counted.
func (e *entry) reenter(ctx context.Context, o locks.Owner) (held bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.holdOf(o)
	if h == nil {
		return false, nil
	}
	if err := h.Err(); err != nil {
		return true, err
	}
	if _, err := e.queue.TryLockContext(ctx); err != nil {
		return true, ctxerr.Bare(err)
	}
	e.depth++
	return true, nil
}

// pass passes e's local queue, and reports whether the caller had to wait for that.
func (c *Client) pass(ctx context.Context, e *entry, wait bool) (ok, waited bool, err error) {
	ok, err = e.queue.TryLockContext(ctx)
	if !ok && err == nil && wait {
		waited = true
		err = c.waitLocally(ctx, e)
		ok = err == nil
	}
	if ok {
		e.mu.Lock()
		if e.depth > 0 {
			e.extra++
		}
		e.depth++
		e.mu.Unlock()
	}
	return ok, waited, ctxerr.Bare(err)
}

// waitLocally waits in e's local queue until ctx ends or the client is closed.
func (c *Client) waitLocally(ctx context.Context, e *entry) error {
	var err error
	if ctx.Done() == nil {
		err = e.queue.LockContext(detach(c.open, ctx))
	} else {
		open, cancel := context.WithCancel(ctx)
		stop := context.AfterFunc(c.open, cancel)
		err = e.queue.LockContext(open)
		stop()
		cancel()
	}
	if err != nil && ctx.Err() == nil && c.open.Err() != nil {
		return locks.ErrClosed
	}
	return err
}

// fewer counts one hold less, and reports whether a user of e goes with it. e.mu is held.
func (e *entry) fewer() bool {
	e.depth--
	if e.depth > 0 {
		if e.extra == 0 {
			return false
		}
		e.extra--
	}
	return true
}

// finish ends a time in which e was busy.
func (e *entry) finish() {
	e.mu.Lock()
	e.settled()
	e.mu.Unlock()
}

// settled is finish with e.mu held.
func (e *entry) settled() {
	e.busy, e.asks = false, ""
	if e.idle != nil {
		close(e.idle)
		e.idle = nil
	}
}

// whenIdle returns a channel that is closed when e, which is busy, becomes idle. e.mu is held.
func (e *entry) whenIdle() <-chan struct{} {
	if e.idle == nil {
		e.idle = make(chan struct{})
	}
	return e.idle
}

// use returns name's entry with one more user. If there is none, it is last, unless that is
// nil: an earlier entry of that name, which nobody uses any more.
func (c *Client) use(name string, last *entry) (*entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return nil, locks.ErrClosed
	}
	e := c.entries[name]
	if e == nil {
		if e = last; e == nil {
			e = &entry{name: name, queue: reentrant.New(fair.FIFO)}
		}
		c.entries[name] = e
	}
	e.users.Add(1)
	return e, nil
}

// keep counts one more user of e, which has some.
func (c *Client) keep(e *entry) { e.users.Add(1) }

// unuse counts one user less, and forgets e with the last. A goroutine that enters meanwhile has
// counted itself before the second look, or finds e gone.
func (c *Client) unuse(e *entry) {
	if e.users.Add(-1) > 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.users.Load() == 0 && c.entries[e.name] == e {
		delete(c.entries, e.name)
	}
}

// find returns name's entry, or nil.
func (c *Client) find(name string) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[name]
}

// takeOver is called by the owner that has passed e's queue and will talk to the store. It
// returns what an earlier owner has left: a grant to release, and for how long others go first.
// e.mu is held.
func (e *entry) takeOver(now time.Time) (left *grant, yield time.Duration) {
	left, yield = e.grant, e.handoff.takeYield(now)
	e.grant, e.busy = nil, true
	return left, yield
}
