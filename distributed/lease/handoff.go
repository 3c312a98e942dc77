package lease

import "time"

// handoff decides whether an owner that releases the lock leaves the store's lock to the next
// local waiter. It is guarded by localQueue.mu.
//
//	the store gives the lock      taken
//	a local waiter gets it        next
//	the owner releases            decide: handOff, probe or toStore
//	the store was probed          probed
//	the store has the lock back   released, and takeYield by the next local owner
//
// Local turns are limited, because waiters elsewhere wait for the end of all of them:
// [WithMaxLocalHandoffs] turns, and a quarter of the lease. If others wanted the lock when it was
// taken, only those have a turn that waited here already. But turns which together take less time
// than a hand-over to another process go on: to stop earlier would make everybody slower. If
// nobody wanted it, the store is probed, and more turns follow while nobody does.
type handoff struct {
	turns     int       // local owners since the store was asked or probed last
	waited    int       // local waiters when the lock was taken
	contended bool      // others wanted the lock when it was taken: turns are for those that waited
	wanted    bool      // others wanted it when it was taken or probed last: it is not probed again
	overtaken bool      // others wanted it when it was released the last time, without a local waiter to yield
	probing   time.Time // when the probe under way was sent, or zero
	yield     time.Time // until when the next local owner lets others go first
}

// verdict is what an owner does that releases the lock.
type verdict int

const (
	toStore verdict = iota // release it
	handOff                // to the next local waiter
	probe                  // hand off, and ask the store whether others wait
)

// maxProbe is how long turns go on without an answer to a probe.
const maxProbe = 20 * time.Millisecond

// tripsOfHandOver is how many round trips it takes at most until another process holds a lock
// that was released.
const tripsOfHandOver = 4

// taken begins the turns of a lock that the store has given, while waited local goroutines wait.
// refused says that the lock was held at first, and yielded that others went first.
func (h *handoff) taken(refused, yielded bool, waited int) {
	*h = handoff{
		turns:     1,
		waited:    waited,
		contended: refused || h.overtaken,
		wanted:    refused || yielded,
		probing:   h.probing,
		yield:     h.yield,
	}
}

// next counts the turn of a local waiter that got the lock by a hand-off.
func (h *handoff) next() { h.turns++ }

// decide says what the owner of g does with it, which has a local waiter. limit is how many
// hand-offs are allowed, and canProbe whether the store can be probed.
func (h *handoff) decide(g *grant, limit int, canProbe bool, now time.Time) verdict {
	age := now.Sub(g.taken)
	if g.fixed || g.pinned || limit == 0 || age >= g.ttl/4 {
		return toStore
	}
	if h.contended && age >= g.handOver {
		limit = min(limit, h.waited)
	}
	switch {
	case h.turns <= limit:
		return handOff
	case !canProbe || h.wanted:
		return toStore
	case h.probing.IsZero():
		h.probing = now
		return probe
	case now.Sub(h.probing) < maxProbe:
		return handOff
	}
	return toStore
}

// probed ends a probe. same says that the lock is still that of the probe's time, and free that
// nobody else waits: then the turns begin anew.
func (h *handoff) probed(same, free bool) {
	h.probing = time.Time{}
	switch {
	case !same:
	case free:
		h.turns = 0
	default:
		h.wanted = true
	}
}

// released notes for how long others should have the opportunity to acquire the lock, 0 if
// nobody waits. queued says that there is a local waiter, which yields for that long.
func (h *handoff) released(now time.Time, yield time.Duration, queued bool) {
	if queued {
		h.yield = now.Add(yield)
	} else {
		h.overtaken = yield > 0
	}
}

// takeYield returns for how long the caller, the next local owner, lets others go first.
func (h *handoff) takeYield(now time.Time) time.Duration {
	if h.yield.IsZero() {
		return 0
	}
	yield := h.yield.Sub(now)
	h.yield = time.Time{}
	return max(yield, 0)
}
