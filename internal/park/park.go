// Package park gives one goroutine a place to wait: the permit of
// java.util.concurrent.locks.LockSupport, for a place instead of a thread.
//
// A wait that nothing can cut short is a sync.WaitGroup's. Of the public ways to
// block in Go it is the one that can be kept and used again: it parks as fast as a
// channel and allocates nothing; inside a testing/synctest bubble it counts as
// durably blocked, so virtual time goes on; and once woken it belongs to no
// bubble, whereas a channel made in a bubble stays bound to it for good and would
// kill the process when a pool hands it to a goroutine outside.
//
// A wait that a context or a timer can cut short is a select on a fresh channel, which
// is never used again.
//
// Either way, like everything that blocks durably, a goroutine parked inside a
// bubble has to be unparked from inside it: the runtime ends the process otherwise.
package park

import (
	"sync"
	"sync/atomic"
)

// The states of a Place, and who leaves each of them:
//
//	empty   no permit, nobody waits     Unpark -> permit, Park -> parked
//	permit  a permit, nobody waits      Park -> empty
//	parked  the user waits or is about  Unpark -> empty, and wakes
//	        to wait on wg, whose
//	        counter is 1
//
// No wake-up is lost, because both parties leave empty by compare-and-swap: an
// Unpark that comes before finds empty and leaves the permit that Park takes; one
// that comes after finds parked, and the WaitGroup remembers a Done that
// precedes the Wait.
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
	wg    sync.WaitGroup
	c     chan struct{} // if not nil, carries the permit instead
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
	if p.state.CompareAndSwap(permit, empty) {
		return
	}
	p.wg.Add(1)
	if !p.state.CompareAndSwap(empty, parked) {
		p.state.Store(empty) // a permit came in between: take it
		p.wg.Done()
	}
	// Waits even after a Done of its own: it is Wait that takes an idle WaitGroup
	// out of its bubble.
	p.wg.Wait()
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
				p.wg.Done()
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
