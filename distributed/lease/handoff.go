package lease

import "time"

// handoff decides whether an owner that releases the lock leaves the store's lock to the next
// local waiter. It is guarded by localQueue.mu.
//
//	the store gives the lock      onGrant
//	a local waiter gets it        next
//	the owner releases            decide: handOff, probe or toStore
//	the store was probed          onProbe
//	the store has the lock back   onRelease, and takeYield by the next local owner
//
// Local turns are limited, because waiters elsewhere wait for the end of all of them:
// [WithMaxLocalHandoffs] turns, and a quarter of the lease. A lock that its owner has extended to
// less than half of a lease goes to the store: the next owner asks for a whole lease. If other
// clients wanted the lock when it was taken, only goroutines that already waited here have a turn.
// But turns go on while they together take less time than a hand-over to another process: to stop
// earlier would make all waiters slower. If no other client wanted the lock, the store is probed,
// and more turns follow while no other client wants it.
type handoff struct {
	turns     int       // local owners since the store was asked or probed last
	waited    int       // local waiters when the lock was taken
	contended bool      // other clients wanted the lock when it was taken: turns are for the waiters of that time
	wanted    bool      // other clients wanted the lock when it was taken or probed last: no probe follows
	overtaken bool      // other clients waited at the last release, when there was no local waiter to yield
	probing   time.Time // when the probe under way was sent, or zero
	yield     time.Time // until when the next local owner lets other clients go first
}

// verdict is the decision about a lock that its owner releases.
type verdict int

const (
	toStore verdict = iota // release it
	handOff                // to the next local waiter
	probe                  // hand off, and ask the store whether others wait
)

// maxProbe is how long turns go on without an answer to a probe.
const maxProbe = 20 * time.Millisecond

// tripsOfHandOver is the largest number of round trips until another process holds a released
// lock.
const tripsOfHandOver = 4

// onGrant begins the turns of a lock that the store has given, while waited local goroutines wait.
// The flag refused says that the lock was held at first. The flag yielded says that other clients
// went first.
func (h *handoff) onGrant(refused, yielded bool, waited int) {
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

// decide returns the verdict about g, which its owner releases while a local waiter waits. The
// number of allowed hand-offs is limit. The store can be probed if canProbe is true.
func (h *handoff) decide(g *grant, limit int, canProbe bool, now time.Time) verdict {
	age := now.Sub(g.taken)
	if g.fixed || g.pinned || limit == 0 || age >= g.ttl/4 || g.over().Sub(now) < g.ttl/2 {
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

// onProbe ends a probe. With same, the lock has not been back to the store since the probe began.
// With free, no other client waits. If both are true, the turns begin anew.
func (h *handoff) onProbe(same, free bool) {
	h.probing = time.Time{}
	switch {
	case !same:
	case free:
		h.turns = 0
	default:
		h.wanted = true
	}
}

// onRelease notes yield, the time in which other clients may acquire the lock undisturbed by this
// client. It is 0 if no other client waits. If queued is true, a local waiter waits, and yields for
// this time.
func (h *handoff) onRelease(now time.Time, yield time.Duration, queued bool) {
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
