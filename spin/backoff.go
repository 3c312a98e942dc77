package spin

import (
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/jucgo/locks/internal/pause"
	"github.com/jucgo/locks/internal/sched"
)

// Backoff is a pause between two tries of a loop. It grows from try to try. The first pauses are
// pause instructions, in all for about the time of one hand-off between goroutines. To spin for
// longer costs more than to yield. From then on every pause yields the core to other goroutines.
// Therefore the loop makes progress even if the goroutine that it waits for lacks a core of its
// own, as with GOMAXPROCS=1.
//
// The pauses double, and each is shortened at random by up to a half. Therefore goroutines that
// collided once do not collide in step for ever.
//
// The zero Backoff is ready to use. It is a plain value that belongs to one goroutine, best a
// local variable of the loop. A copy continues from the state of the original. It orders no
// memory accesses, allocates nothing, and costs nothing before its first Pause. Java's
// Thread.onSpinWait is one of its pause instructions.
//
//	var b spin.Backoff
//	for !try() {
//		b.Pause()
//	}
type Backoff struct {
	spun uint32 // pause instructions so far, at most budget
	next uint32 // the most pause instructions of the next Pause; 0 stands for 1
}

// handOff is about the time of a hand-off from one goroutine to another.
const handOff = 250 * time.Nanosecond

// budget is the number of pause instructions that a Backoff spends: the time of one hand-off.
// With a single processor it is 0, because the awaited goroutine cannot run meanwhile.
var budget = affordable(runtime.NumCPU(), pauseTime())

func affordable(cpus int, onePause time.Duration) uint32 {
	// The bounds are for clocks that are too coarse, and for machines that were too busy to be
	// measured.
	const least, most = 8, 100
	switch {
	case cpus == 1:
		return 0
	case onePause <= 0:
		return least
	}
	return uint32(min(max(handOff/onePause, least), most))
}

// pauseTime measures the pause instruction, which takes 3 to 30 ns, depending on the processor. The
// measurement takes a few microseconds. It must happen at the start of the process, because the
// clock stands still in a testing/synctest bubble.
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

// Pause pauses for longer than the call before. At first Pause spends pause instructions. Once
// [Backoff.Spun] reports true, Pause yields to the scheduler.
func (b *Backoff) Pause() {
	sched.Begin("Pause", b)
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

// Spun reports whether the budget for spinning is used up, so that the next Pause yields. A lock
// that can park its waiter parks the waiter now.
func (b *Backoff) Spun() bool { return b.spun == budget }

// Reset makes b a zero Backoff. Call it when the loop has succeeded and goes on.
func (b *Backoff) Reset() { *b = Backoff{} }
