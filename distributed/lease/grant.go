package lease

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// grant is the store's lock in this process, from the moment when the store gave it until it is
// released or lost. Its times are times of [driver.Now].
//
//	valid      now < until, not gone   answered -> valid, later; request -> valid, sooner;
//	                                   lose or time -> lost; release -> released
//	lost       gone, cause is set      for good
//	released   gone, cause is nil      for good
type grant struct {
	s        *schedule
	id       driver.HoldID
	token    uint64
	ttl      time.Duration // of a renewal
	taken    time.Time     // when the request that took the lock was sent
	fixed    bool          // not renewed
	handOver time.Duration // about how long it takes until another process holds the lock once it is released
	doubt    time.Time     // until when an earlier request of the acquisition may have an effect, or zero
	several  bool          // more than one earlier request may have an effect
	pinned   bool          // not to be handed off to local waiters. Guarded by localQueue.mu

	mu    sync.Mutex
	until time.Time     // when it ends unless it is prolonged
	trip  time.Duration // how long the request for until took: the store may count from its answer
	kept  time.Time     // until when the store may keep the lock because of answered requests
	gone  bool
	cause error         // why the grant is lost
	told  bool          // the loss is told, see schedule.tell
	lost  chan struct{} // closed when the grant is lost; made by lossChan
	first hold          // the hold of the owner that took the lock

	requests []*pending    // on their way
	unknown  time.Duration // the shortest time of the requests without an answer
	longest  time.Duration // the longest time of the requests without an answer, see endDoubt
	late     time.Time     // until when a request without an answer may be carried out, or zero
	denied   bool          // the store does not have the hold any more: no request can prolong it
	renewed  time.Time     // when the latest answered request was sent, or zero
	silent   int           // how many requests since then are without an answer

	// Guarded by schedule.mu.
	renewAt time.Time // zero: not renewed
	at      time.Time // when the schedule looks at it, perhaps too early
	index   int       // in the schedule's heap, or -1
}

// err returns nil while g is valid, and else why it is not.
func (g *grant) err() error { return g.errAt(g.s.now()) }

// errAt is err at the time now.
func (g *grant) errAt(now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.expire(now)
	switch {
	case !g.gone:
		return nil
	case g.cause != nil:
		return g.cause
	}
	return errReleased
}

// expire makes g lost if its time is over. g.mu is held.
func (g *grant) expire(now time.Time) {
	if !g.gone && !now.Before(g.until) {
		g.loseLocked(nil)
	}
}

// lose makes g lost, unless it is gone, and reports whether it did. cause, if not nil, says why.
func (g *grant) lose(cause error) bool {
	if cause != nil { // its text is made here, since Error may be code of the program
		cause = fmt.Errorf("%w: %w", locks.ErrLost, adapter.OfStore(nil, cause))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.gone {
		return false
	}
	g.loseLocked(cause)
	return true
}

// loseLocked makes g lost, which is not gone. cause matches ErrLost, or is nil. g.mu is held.
func (g *grant) loseLocked(cause error) {
	g.gone = true
	if g.cause = cause; cause == nil {
		g.cause = locks.ErrLost
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

// lossChan returns the channel that is closed when g is lost.
func (g *grant) lossChan() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.lost == nil {
		g.lost = make(chan struct{})
	}
	return g.lost
}

// release ends a valid g without a loss, and reports whether it was valid.
func (g *grant) release() bool {
	now := g.s.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.expire(now)
	if g.gone {
		return false
	}
	g.gone = true
	return true
}

// end returns when g ends unless it is prolonged.
func (g *grant) end() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.until
}

// over returns when g has ended in the store at the latest, if the request for until was the last
// one.
func (g *grant) over() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.overLocked()
}

// overLocked is over with g.mu held.
func (g *grant) overLocked() time.Time { return g.until.Add(g.s.marginOf(g.ttl) + g.trip) }

// atMost returns until when the store may keep g. That time is later than over for two reasons. The
// store may not have carried out a request that shortens g, or a request after it. And a request to
// prolong g may be without an answer: the store may have carried out that request, or may carry it
// out before g ends.
func (g *grant) atMost() time.Time {
	now := g.s.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.endDoubt(now)
	over := g.overLocked()
	if g.denied {
		return over
	}
	if g.kept.After(over) {
		over = g.kept
	}
	longest := g.longest
	for _, p := range g.requests {
		longest = max(longest, p.d)
	}
	return over.Add(longest)
}

// isLapsed reports whether g is lost by time alone.
func (g *grant) isLapsed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.cause == locks.ErrLost
}

// span returns when g ends unless it is prolonged, and when the last answered request to prolong it
// was sent.
func (g *grant) span() (until, renewed time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.until, g.renewed
}

// pending is a request that gives a grant another end, from when it is sent until it is answered.
//
// Requests overtake each other, and a request without an answer may be carried out at any time.
// Three rules follow. First: when a request for the time d is sent, the grant ends at most d later.
// The store may see that request as the last. Second: when a request sent at t is answered, the
// grant ends after the shortest time, counted from t, of several requests. These are the answered
// request, the requests on their way with it, and the requests without an answer. The last of them
// to be carried out is carried out after t. Third: when a request is answered, the store keeps the
// grant at most for the longest time, counted from the answer, of that request and the requests on
// their way with it. A request without an answer may add its own time.
//
// A request without an answer may be carried out until g.late. At the end of that time, endDoubt
// counts as if the longest of them had been carried out last, and forgets them.
//
// An earlier request for a place in a queue, which may come late, counts among the requests without
// an answer: see question.makeGrant.
type pending struct {
	sent  time.Time
	d     time.Duration
	least time.Duration // of d, and of the times of the other requests on their way or without an answer
	most  time.Duration // of d, and of the times of the other requests on their way
}

// request notes a request that is about to be sent and that makes g last for d.
func (g *grant) request(d time.Duration) *pending {
	now := g.s.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.requestLocked(&pending{sent: now, d: d, least: d})
}

// renewal is request for the next renewal, or nil if g lasts longer anyway.
func (g *grant) renewal() *pending {
	now := g.s.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	p := &pending{sent: now, d: g.ttl, least: g.ttl}
	if g.until.After(g.endOf(p, p.d)) {
		return nil
	}
	return g.requestLocked(p)
}

// requestLocked is request with g.mu held.
func (g *grant) requestLocked(p *pending) *pending {
	g.endDoubt(p.sent)
	if p.sent.Before(g.late) {
		p.least = min(p.d, g.unknown)
	}
	p.most = p.d
	for _, other := range g.requests {
		other.least = min(other.least, p.d)
		other.most = max(other.most, p.d)
		p.least = min(p.least, other.d)
		p.most = max(p.most, other.d)
	}
	g.requests = append(g.requests, p)
	if until := g.endOf(p, p.d); until.Before(g.until) {
		g.until = until
	}
	return p
}

// endOf returns the time at which a hold ends here if the store gives it for d after p was sent.
func (g *grant) endOf(p *pending, d time.Duration) time.Time { return p.sent.Add(d - g.s.marginOf(d)) }

// noteAnswer notes that p was carried out, and reports whether g is still valid.
func (g *grant) noteAnswer(p *pending) bool {
	now := g.s.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget(p)
	g.expire(now)
	if p.sent.After(g.renewed) {
		g.renewed, g.silent = p.sent, 0
	}
	// A lost grant stays lost: the schedule has yet to see its end, and would renew the grant for
	// ever.
	if g.cause != nil {
		return false
	}
	if until := g.endOf(p, p.least); until.After(g.until) {
		g.until, g.trip = until, now.Sub(p.sent)
	}
	g.kept = now.Add(p.most)
	return !g.gone
}

// noteNoAnswer notes that the outcome of p is unknown and will stay so.
func (g *grant) noteNoAnswer(p *pending) {
	now := g.s.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget(p)
	g.doubtLocked(now, p)
	g.silent++
}

// noteDoubt notes that another request was sent with p, is without an answer, and will stay so. It
// is called before noteAnswer.
func (g *grant) noteDoubt(p *pending) {
	now := g.s.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.doubtLocked(now, p)
}

// doubtLocked notes that a request for as long as p may be carried out until it can come no more.
// g.mu is held.
func (g *grant) doubtLocked(now time.Time, p *pending) {
	if !now.Before(g.late) {
		g.unknown = p.d
	}
	g.unknown, g.longest = min(g.unknown, p.d), max(g.longest, p.d)
	g.late = now.Add(latest)
}

// endDoubt notes that the requests without an answer are not carried out any more, if that is so by
// now. The store may have carried one out at the last moment, after it carried out the requests on
// their way. g.mu is held.
func (g *grant) endDoubt(now time.Time) {
	if g.longest == 0 || now.Before(g.late) {
		return
	}
	if until := g.late.Add(g.longest); until.After(g.kept) {
		g.kept = until
	}
	for _, p := range g.requests {
		p.most = max(p.most, g.longest)
	}
	g.longest = 0
}

// noteDenial notes that the store does not have the hold any more, so that no request can prolong
// it.
func (g *grant) noteDenial() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.denied = true
}

// forget removes p from the requests on their way. g.mu is held.
func (g *grant) forget(p *pending) {
	if i := slices.Index(g.requests, p); i >= 0 {
		g.requests = slices.Delete(g.requests, i, i+1)
	}
}
