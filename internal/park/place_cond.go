//go:build !go1.26 || go1.27 || !gc || wasm || race || msan || asan || goexperiment.goroutineleakprofile || locks_nolinkname

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

// Init prepares p for Wait.
func (p *Place) Init() {
	if p.cond.L == nil {
		p.cond.L = locker{p}
	}
}

// Begin may precede Wait, and End or Reset follow it, so that the block profile has the wait. Of what comes in
// between it should be the most.
func (p *Place) Begin() {}

// End ends what Begin began.
func (p *Place) End() {}

// Wait is Park for a place that is initialised and not open. It may be inlined: a goroutine
// that comes back from a switch pays for every frame that it returns through.
func (p *Place) Wait() {
	p.cond.Wait()
	p.state.Load() // sees Unpark's swap, for the race detector, which does not know cond's order
}

func (p *Place) wake() {
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

// Fetch does nothing: where the goroutine is, only the runtime knows.
func (p *Place) Fetch(frame uintptr) {}

// forget takes the permit, if there is one.
func (p *Place) forget() {
	if p.state.Load() == permit {
		p.state.Store(empty)
	}
}

// busy reports whether somebody is parked here.
func (p *Place) busy() bool { return p.state.Load() == parked }
