// Package park gives one goroutine a place to wait: the permit of
// java.util.concurrent.locks.LockSupport, for a place instead of a thread.
//
// A wait that nothing can cut short blocks on a sync.Cond. A sync.Cond can be used again, and
// profiles show the wait: a stack trace and the block profile say where the goroutine waits, and
// the goroutine-leak profile finds a leaked waiter. A sync.Cond allocates nothing, and is never
// bound to a testing/synctest bubble. A pooled channel would be bound: if it was made in a
// bubble, receiving from it outside kills the process.
//
// A wait that a context or a timer can cut short is a select on a fresh channel, which is never
// used again.
//
// A parked goroutine counts as durably blocked in a bubble. Therefore it must be unparked from
// inside the bubble. A goroutine that is parked outside may be unparked from anywhere, unless its
// wait can be cut short.
package park

import (
	"sync"
	"sync/atomic"

	"github.com/jucgo/locks/internal/sched"
)

// The states of a Place, and the calls that leave each of them:
//
//	empty   no permit, no waiter of Park     Unpark -> permit, Park -> parked
//	permit  a permit, no waiter              Park -> empty
//	parked  the waiter has a ticket of cond  Unpark -> empty, and signals
//
// No wake-up is lost, because both calls leave empty by compare-and-swap. An Unpark that comes
// before Park's swap finds empty and leaves a permit, which Park finds. An Unpark that comes after
// the swap finds parked. By then Park has its ticket: cond.Wait takes the ticket before it unlocks
// cond.L, which is where Park's swap is. A signal reaches every ticket that was taken before.
//
// ParkAndUnlock stays in empty. Its waiter has its ticket before it gives the mutex back, and
// Unpark comes from a goroutine that had the mutex after that. The waiter sets guard with the mutex
// held. That Unpark, the only Unpark of this wait, clears guard before it signals. So guard tells
// Unpark whether the waiter is in ParkAndUnlock.
const (
	empty int32 = iota
	permit
	parked
)

// Place is where one goroutine at a time parks. Init makes it ready to use. It must not be copied
// after that. It may go from one goroutine to another when nobody is parked, with the permit that
// may be in it.
type Place struct {
	state atomic.Int32
	guard *sync.Mutex // of a wait that came with it: see ParkAndUnlock
	cond  sync.Cond
	c     chan struct{} // if not nil, carries the permit instead
}

// locker is the L of a Place's cond. It locks nothing.
type locker struct{ p *Place }

func (locker) Lock() {}

// Unlock runs between the taking of the ticket and the wait.
func (l locker) Unlock() {
	if g := l.p.guard; g != nil {
		g.Unlock()
	} else if !l.p.state.CompareAndSwap(empty, parked) {
		l.p.state.Store(empty) // a permit came: take it,
		l.p.cond.Signal()      // and do not wait
	}
}

// Init makes p ready to use. Park does not, so that it is inlined: a goroutine that wakes pays for
// each frame that it returns through.
func (p *Place) Init() { p.cond.L = locker{p} }

// Maker returns a function that makes nodes of waits for a sync.Pool. placeOf returns the Place of
// a node.
func Maker[N any](placeOf func(*N) *Place) func() any {
	return func() any {
		n := new(N)
		placeOf(n).Init()
		return n
	}
}

// Open makes p selectable until it is reset, and returns the channel that delivers its permits. It
// must happen before another goroutine can get at p.
func (p *Place) Open() <-chan struct{} {
	p.c = make(chan struct{}, 1)
	return p.c
}

// Permits returns the channel of an open place, or nil.
func (p *Place) Permits() <-chan struct{} { return p.c }

// IsOpen reports whether the place is open.
func (p *Place) IsOpen() bool { return p.c != nil }

// Park returns as soon as there is a permit, and takes it. Only one goroutine may be in Park at a
// time. A permit says that it is worth looking again, not why.
func (p *Place) Park() {
	if sched.On {
		sched.Parks(p)
	}
	if p.c != nil {
		<-p.c
		if sched.On {
			sched.Woken()
		}
		return
	}
	p.cond.Wait()
	if race {
		p.state.Load() // sees Unpark's write: the detector does not know cond's order
	}
	if sched.On {
		sched.Woken()
	}
}

// ParkAndUnlock is Park for a goroutine that holds the mutex g, which it gives back when it is
// about to sleep. The place is neither open, nor has a permit. There is one Unpark for this wait,
// and its caller has held g after ParkAndUnlock gave it back: a monitor (Hoare, CACM 1974).
// ParkAndUnlock takes two atomic writes less than Park. If g is nil, it is Park.
func (p *Place) ParkAndUnlock(g *sync.Mutex) {
	if g != nil {
		p.guard = g
	}
	p.Park()
}

// Unpark makes a permit available if there is none, and wakes the goroutine that is parked here, if
// any. Two calls make one permit. Any goroutine may call it, but see ParkAndUnlock. It touches
// nothing of p any more once the parked goroutine could have returned.
func (p *Place) Unpark() {
	if p.c != nil {
		select {
		case p.c <- struct{}{}:
		default:
		}
		return
	}
	if p.guard != nil {
		p.guard = nil
		if race {
			p.state.Store(empty) // for Park's load
		}
		p.cond.Signal()
		return
	}
	for !p.state.CompareAndSwap(parked, empty) {
		if p.state.CompareAndSwap(empty, permit) || p.state.Load() == permit {
			return
		}
	}
	p.cond.Signal()
}

// Reset makes p as good as new. It must happen after any other goroutine could get at p.
func (p *Place) Reset() {
	p.c = nil
	if p.state.Load() != empty {
		p.state.Store(empty)
	}
}
