package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
)

// grant is the store's lock in the hands of this process, from the moment when the store gave it to
// that when it is given back or lost.
//
//	valid  now < until, not gone      answered -> valid, later; request -> valid, sooner; lose, or time -> lost; retire -> retired
//	lost   gone, lost is closed       for good
//	retired   gone, lost is open      for good: given back
type grant struct {
	ref   HoldID
	token uint64
	lease time.Duration // of a renewal
	taken time.Time     // when the request that took it was sent
	fixed bool          // not renewed
	// handOver is about how long it takes until somebody elsewhere holds the lock once it is given back.
	handOver time.Duration

	doubt time.Time // until when an earlier request of its owner may have an effect yet, or zero

	pinned bool // not to be left to others here. Guarded by entry.mu

	mu      sync.Mutex
	until   time.Time // when it is over unless it is prolonged
	gone    bool
	cause   error         // why it is lost
	told    bool          // the [Session] knows that it is
	lost    chan struct{} // made when asked for
	rival   bool          // somebody else waited, or held the lock, when it was asked for
	refused bool          // he held it
	first   hold          // of who took it

	requests []*pending    // on their way
	unknown  time.Duration // the shortest time of those of which nothing is known
	late     time.Time     // until when that counts: zero if there are none

	// Guarded by the scheduler's mutex.
	renewAt time.Time // zero: not
	at      time.Time // when to look at it, which may be too early
	index   int       // in its heap, or -1
}

// err returns nil while g is valid, and why not otherwise.
func (g *grant) err() error { return g.errAt(time.Now()) }

// errAt is err as of now.
func (g *grant) errAt(now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.gone && !now.Before(g.until) {
		g.loseLocked(nil)
	}
	switch {
	case !g.gone:
		return nil
	case g.cause != nil:
		return g.cause
	}
	return locks.ErrNotHeld
}

// lose makes g lost, for cause if that is not nil, unless it is gone, and reports whether it did.
func (g *grant) lose(cause error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone {
		return false
	}
	g.loseLocked(cause)
	return true
}

func (g *grant) loseLocked(cause error) {
	g.gone = true
	g.cause = locks.ErrLost
	if cause != nil {
		g.cause = fmt.Errorf("%w: %w", locks.ErrLost, cause)
	}
	if g.lost == nil {
		g.lost = closedChan
	} else {
		close(g.lost)
	}
}

var closedChan = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// lostChan returns the channel that is closed when g is lost.
func (g *grant) lostChan() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lost == nil {
		g.lost = make(chan struct{})
	}
	return g.lost
}

// retire ends a valid g without a loss, and reports whether it was valid.
func (g *grant) retire() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.gone && !time.Now().Before(g.until) {
		g.loseLocked(nil)
	}
	if g.gone {
		return false
	}
	g.gone = true
	return true
}

func (g *grant) deadline() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.until
}

// hold is a grant in the hands of one holder.
type hold struct {
	c        *Client
	g        *grant
	released atomic.Bool
}

var _ locks.Hold = (*hold)(nil)

// taken returns the hold of who took g.
func (c *Client) taken(g *grant) *hold {
	g.first.c, g.first.g = c, g
	return &g.first
}

func (h *hold) Lost() <-chan struct{} { return h.g.lostChan() }

func (h *hold) Err() error {
	if h.released.Load() {
		return locks.ErrNotHeld
	}
	return h.g.err()
}

func (h *hold) Token() uint64 { return h.g.token }

func (h *hold) Deadline() (time.Time, bool) { return h.g.deadline(), true }

func (h *hold) Extend(ctx context.Context, d time.Duration) error {
	const op = "lease: Extend"
	if err := check(op, ctx); err != nil {
		return err
	}
	if d < time.Millisecond { // as of every lease: what is meant as a number of seconds must not end the hold
		return fmt.Errorf("%s by %v, which is shorter than 1ms", op, d)
	}
	fail := func(err error) error { return fmt.Errorf("%s of %q: %w", op, h.g.ref.Name, err) }
	if h.Err() != nil {
		return fail(locks.ErrLost)
	}
	d = h.c.longest(d)
	for range extensions {
		whole, err := h.extend(ctx, d)
		h.c.sched.update(h.g)
		if err != nil {
			return fail(err)
		}
		if whole {
			break
		}
	}
	return nil
}

// extensions is how often an extension is sent that a renewal may have overtaken.
const extensions = 3

// extend prolongs the hold, and reports whether it surely lasts for d.
func (h *hold) extend(ctx context.Context, d time.Duration) (whole bool, err error) {
	ctx, cancel := context.WithDeadline(ctx, h.g.deadline())
	defer cancel()
	p := h.g.request(h.c, d)
	h.c.sched.sooner(h.g)
	ok, err := h.c.store.Renew(ctx, []HoldID{h.g.ref}, d)
	switch {
	case err != nil:
		h.g.unanswered(p)
		if h.Err() != nil {
			err = errors.Join(locks.ErrLost, err)
		}
		return false, err
	case len(ok) != 1 || !ok[0]:
		h.c.lost(h.g, nil)
		return false, locks.ErrLost
	case !h.g.answered(h.c, p) || h.released.Load():
		return false, locks.ErrLost
	}
	return p.least == d, nil
}

// lost makes g lost, and no longer renewed.
func (c *Client) lost(g *grant, cause error) {
	c.sched.remove(g)
	if g.lose(cause) && c.log != nil {
		c.log.Warn("lock lost", "lock", g.ref.Name, "owner", g.ref.Acquisition)
	}
	c.ended(g)
}

// heralded makes r's grant lost, of which the store has told by itself.
func (c *Client) heralded(r HoldID, cause error) {
	if g := c.sched.holder(r.Acquisition, cause); g != nil {
		c.lost(g, cause)
	}
}
