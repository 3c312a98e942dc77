// Package park gives one goroutine a place to wait: the permit of
// java.util.concurrent.locks.LockSupport, for a place instead of a thread.
//
// A wait that nothing can cut short is a sync.Cond's. Of the public ways to block in Go
// it is the cheapest that can be kept and used again: it needs no table of
// addresses, as semaphores do, and allocates nothing; inside a testing/synctest bubble
// it counts as durably blocked, so virtual time goes on; and it is never bound to a bubble,
// whereas a channel made in one stays bound for good and would kill the process when a pool
// hands it to a goroutine outside.
//
// A wait that a context or a timer can cut short is a select on a fresh channel, which
// is never used again.
//
// Either way, like everything that blocks durably, a goroutine parked inside a
// bubble has to be unparked from inside it: the runtime ends the process otherwise. One
// that is parked outside may be unparked from anywhere, unless its wait can be cut short.
package park

import (
	"sync"
	"sync/atomic"
)

// The states of a Place, and who leaves each of them:
//
//	empty   no permit, nobody waits          Unpark -> permit, Park -> parked
//	permit  a permit, nobody waits           Park -> empty
//	parked  the user has a ticket of cond    Unpark -> empty, and signals
//
// No wake-up is lost, because both parties leave empty by compare-and-swap. An Unpark that
// comes before Park's finds empty and leaves a permit, which Park finds instead. One that comes
// after finds parked; Park has its ticket already, since cond.Wait takes it before it
// unlocks cond.L, which is where Park's swap is; and a signal reaches whoever has a ticket.
const (
	empty int32 = iota
	permit
	parked
)

// Place is where one goroutine at a time parks. The zero Place is ready to
// use; it must not be copied. It may pass from one goroutine to another
// when nobody is parked, with whatever permit is in it.
type Place struct {
	state atomic.Int32
	cond  sync.Cond
	c     chan struct{} // if not nil, carries the permit instead
}

// locker is the L of a Place's cond. It locks nothing.
type locker struct{ p *Place }

func (locker) Lock() {}

// Unlock runs between the taking of the ticket and the wait.
func (l locker) Unlock() {
	if !l.p.state.CompareAndSwap(empty, parked) {
		l.p.state.Store(empty) // a permit came: take it,
		l.p.cond.Signal()      // and do not wait
	}
}

// Open makes p selectable until it is closed, and returns the channel that delivers its
// permits. It must happen before anybody else can get at p.
func (p *Place) Open() <-chan struct{} {
	p.c = make(chan struct{}, 1)
	return p.c
}

// Park returns as soon as there is a permit, and takes it. Only one goroutine
// may be in Park at a time. Users must loop: a permit says that it is worth
// looking again, not why.
func (p *Place) Park() {
	if p.c != nil {
		<-p.c
		return
	}
	if p.cond.L == nil {
		p.Init()
	}
	p.Wait()
}

// Init prepares p for Wait.
func (p *Place) Init() { p.cond.L = locker{p} }

// Wait is Park for a place that is initialised and not open. It may be inlined: a goroutine
// that comes back from a switch pays for every frame that it returns through.
func (p *Place) Wait() {
	p.cond.Wait()
	p.state.Load() // sees Unpark's swap, for the race detector, which does not know cond's order
}

// Unpark makes a permit available if there is none, and wakes the goroutine
// parked here, if any. Two calls make one permit. It may be called by anybody, and
// touches nothing of p any more once the parked goroutine could have returned.
func (p *Place) Unpark() {
	if p.c != nil {
		select {
		case p.c <- struct{}{}:
		default:
		}
		return
	}
	for {
		switch s := p.state.Load(); s {
		case permit:
			return
		case empty:
			if p.state.CompareAndSwap(empty, permit) {
				return
			}
		default:
			if p.state.CompareAndSwap(parked, empty) {
				p.cond.Signal()
				return
			}
		}
	}
}

// Reset makes p as good as new. It must happen after anybody else could get at p.
func (p *Place) Reset() {
	p.c = nil
	if p.state.Load() == permit {
		p.state.Store(empty)
	}
}
