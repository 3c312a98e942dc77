package spin

import (
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/jucgo/locks/internal/pause"
)

// Backoff is what to do between two tries of a loop that spins: a wait that grows from try to
// try. The first waits are pause instructions, in all about as many as take the time in which one
// goroutine hands over to another; spinning for longer costs more than giving way. From then on
// every wait gives the core to other goroutines, so that the loop is live also when the goroutine
// that it waits for has no core of its own, as with GOMAXPROCS=1.
//
// The waits double, and each is shortened by chance by up to a half, so that goroutines that
// collided once do not collide in step for ever.
//
// The zero Backoff is ready to use. It is a plain value that belongs to one goroutine, best a
// local variable of the loop; a copy goes on from where the original was. It orders no memory
// accesses. It allocates nothing, and costs nothing before its first Pause. Java's
// Thread.onSpinWait is a single pause instruction of it.
//
//	var b spin.Backoff
//	for !try() {
//		b.Pause()
//	}
type Backoff struct {
	spun uint32 // pause instructions so far, at most budget
	next uint32 // how many the next wait has at most; 0 stands for 1
}

// handOver is about what it takes to hand over from one goroutine to another.
const handOver = 250 * time.Nanosecond

// budget is how many pause instructions a Backoff spends: those of one hand-over. With a single
// processor there is nobody to spin for.
var budget = affordable(runtime.NumCPU(), pauseTime())

func affordable(cpus int, onePause time.Duration) uint32 {
	// The bounds are for clocks that are too coarse to tell, and for a machine that was too busy
	// to be measured.
	const least, most = 8, 100
	switch {
	case cpus == 1:
		return 0
	case onePause <= 0:
		return least
	}
	return uint32(min(max(handOver/onePause, least), most))
}

// pauseTime measures the pause instruction, which takes 3 to 30 ns depending on the model of the
// processor, in a few microseconds. It has to be done when the process starts: inside a
// testing/synctest bubble the clock stands still.
func pauseTime() time.Duration {
	const pauses = 32
	best := time.Duration(1<<63 - 1)
	for range 4 {
		start := time.Now()
		pause.Pause(pauses)
		best = min(best, time.Since(start))
	}
	return best / pauses
}

// Pause waits, longer than the time before: for some pause instructions at first, and for a round
// of the scheduler once [Backoff.Spun] reports true.
func (b *Backoff) Pause() {
	left := budget - b.spun
	if left == 0 {
		runtime.Gosched()
		return
	}
	n := max(b.next, 1)
	b.next = 2 * n
	n = min(n-rand.Uint32N(n/2+1), left)
	b.spun += n
	pause.Pause(n)
}

// Spun reports whether the time to spin is used up: the next Pause gives the core away. A lock
// that knows how to block does so now.
func (b *Backoff) Spun() bool { return b.spun == budget }

// Reset makes b as good as new. It is due when the loop got somewhere, and goes on.
func (b *Backoff) Reset() { *b = Backoff{} }
