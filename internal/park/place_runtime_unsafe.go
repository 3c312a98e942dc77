//go:build go1.26 && !go1.27 && gc && !wasm && !race && !msan && !asan && !goexperiment.goroutineleakprofile && !locks_nolinkname

package park

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/jucgo/locks/internal/prefetch"
)

// gopark blocks the calling goroutine, unless unlock, which is called on the thread's own stack when the goroutine counts as
// waiting already, reports false.
//
//go:linkname gopark runtime.gopark
func gopark(unlock func(g uintptr, place unsafe.Pointer) bool, place unsafe.Pointer, reason, traced uint8, skip int)

// goready makes a goroutine run that gopark has blocked.
//
//go:linkname goready runtime.goready
func goready(g uintptr, skip int)

//go:linkname cputicks runtime.cputicks
func cputicks() int64

// blockevent adds a wait to the block profile, if that is on.
//
//go:linkname blockevent runtime.blockevent
func blockevent(cycles int64, skip int)

// What the runtime calls a wait of this kind: the only reason that is durable in a bubble, does not
// speak of a channel, and lets a leak profile take the goroutine for one that may run again.
const (
	condWait       = 21 // runtime.waitReasonSyncCondWait
	condWaitTraced = 4  // runtime.traceBlockCondWait
)

// The states of a Place, and who leaves each of them:
//
//	empty        no permit, nobody waits     Unpark -> permit, Park -> a goroutine
//	permit       a permit, nobody waits      Park -> empty
//	a goroutine  it is parked                Unpark -> empty, and readies it
//
// No wake-up is lost, because both parties leave empty by compare-and-swap. An Unpark that comes before Park's finds
// empty and leaves a permit, which Park finds instead. One that comes after finds the goroutine, which
// counts as waiting by then, so that it can be readied, be it on its way to the scheduler still.
//
// A goroutine is the address of the runtime's descriptor, which is never freed. Whoever swaps it out of the Place readies it,
// once, and it is parked until then.
const (
	empty uintptr = iota
	permit
)

// Place is where one goroutine at a time parks. The zero Place is ready to
// use; it must not be copied. It may pass from one goroutine to another
// when nobody is parked, with whatever permit is in it.
type Place struct {
	state atomic.Uintptr
	c     chan struct{} // if not nil, carries the permit instead

	// began is the waiting goroutine's: when the wait began, if it is timed, and else how many there were since one
	// was, negated.
	began int64
}

// commit is gopark's unlock. It must not be instrumented by what needs a goroutine to run on.
//
//go:nosplit
func commit(g uintptr, place unsafe.Pointer) bool {
	p := (*Place)(place)
	if p.state.CompareAndSwap(empty, g) {
		return true
	}
	p.state.Store(empty) // a permit came: take it, and do not wait
	return false
}

// Init prepares p for Wait.
func (p *Place) Init() {}

// Two looks at the clock would make a hand-over dearer by a fifth, and whether there is a block profile the runtime does not
// tell. So the first wait at a Place and every 64th from there are timed, and all once something is in the profile.
const looks = 64

var (
	// profiled says that there is, or was, a block profile. It is never withdrawn.
	profiled atomic.Bool
	// looked is when that was last found out: once a second or so, since it takes an allocation.
	looked atomic.Int64
)

const lookEvery = 1 << 31 // ticks

// Begin may precede Wait, and End or Reset follow it, so that the block profile has the wait. Of what comes in
// between it should be the most.
func (p *Place) Begin() {
	if p.began--; p.began == -1 || p.began < -looks || profiled.Load() {
		p.begin()
	}
}

//go:noinline // so that Begin is inlined
func (p *Place) begin() { p.began = cputicks() }

// End ends what Begin began.
func (p *Place) End() {
	if p.began > 0 {
		p.end()
	}
}

//go:noinline // so that End is inlined
func (p *Place) end() {
	t := cputicks()
	if p.c == nil { // a select speaks for itself
		blockevent(t-p.began, 3)
	}
	p.began = -1
	if last := looked.Load(); !profiled.Load() && (last == 0 || t-last > lookEvery) && looked.CompareAndSwap(last, t) {
		if n, _ := runtime.BlockProfile(nil); n > 0 {
			profiled.Store(true)
		}
	}
}

// Wait is Park for a place that is initialised and not open. It is inlined: a goroutine
// that comes back from a switch pays for every frame that it returns through.
func (p *Place) Wait() {
	gopark(commit, unsafe.Pointer(p), condWait, condWaitTraced, 1)
}

func (p *Place) wake() {
	for {
		switch g := p.state.Load(); g {
		case permit:
			return
		case empty:
			if p.state.CompareAndSwap(empty, permit) {
				return
			}
		default:
			if p.state.CompareAndSwap(g, empty) {
				goready(g, 2)
				return
			}
		}
	}
}

// Fetch has the processor fetch what the goroutine that is parked here, if any, touches first when it goes on. The frame is
// prefetch.Frame's, of one close to its Wait. It is for those who are to be unparked soon, one after the other.
func (p *Place) Fetch(frame uintptr) {
	if g := p.state.Load(); g > permit {
		prefetch.Goroutine(g, frame)
	}
}

// forget takes the permit, if there is one.
func (p *Place) forget() {
	if p.state.Load() == permit {
		p.state.Store(empty)
	}
}

// busy reports whether somebody is parked here.
func (p *Place) busy() bool { return p.state.Load() > permit }
