package syncq

import (
	"runtime"

	"github.com/jucgo/locks/internal/pause"
	"github.com/jucgo/locks/internal/sched"
)

// Before a goroutine joins a NonFair queue for an exclusive hold, it looks at the lock spinRounds
// times, SpinPause pauses apart. That takes some 800 ns, and a goroutine that is woken takes some
// 10 µs to run on another processor. Take 64 goroutines with 300 ns of work inside of the lock and
// 300 ns outside. With 16 rounds two of them go on in turns, while the others sleep, and an
// acquisition takes 0.8 times what it takes with 4. More rounds cost two goroutines without work
// more than they save.
const (
	spinRounds = 16
	SpinPause  = 2
)

// Spins become shorter while the lock is held for long. Each failures spins in vain, in a row,
// halve the rounds of the next spins, down to one round. A spin that takes the lock restores
// spinRounds. Take 1,024 goroutines with 300 ns of work inside and 300 ns outside. If spins did not
// become shorter, an acquisition would take 1.5 times as long (two processors of an AMD EPYC).
const (
	failures  = 4
	maxFailed = 4 * failures
)

// Failures counts the spins for a lock that were in vain, in a row.
type Failures struct{ mark }

// Rounds returns how often the next spin looks at the lock. Between two looks it pauses for
// [SpinPause]. It is 0 if no holder can run while another goroutine spins.
func (f *Failures) Rounds() int {
	if !spins {
		return 0
	}
	return spinRounds >> (f.load() / failures)
}

// Succeeded follows a spin that took the lock.
func (f *Failures) Succeeded() {
	if f.load() != 0 {
		f.set(0)
	}
}

// Failed follows a spin in vain.
func (f *Failures) Failed() {
	if n := f.load(); n < maxFailed {
		f.set(n + 1)
	}
}

// spins says that a holder can run while another goroutine spins.
var spins = runtime.NumCPU() > 1

// Spin takes a lock that becomes free within a short spin (NonFair). It stops when the lock is
// reserved for the first waiter: the next holder often still needs a processor then, perhaps the
// spinner's own. Under FIFO a spin would be in vain for the same reason.
//
// Spin also stops when readers are in the table, or more than SpinReaders hold the lock, or two
// parties never waited for the lock at once. See worthSpinning.
func (s *Sync) Spin(p Party) bool {
	if sched.On && sched.Explored() {
		return false
	}
	word, failed := &s.Word, &s.queue.failed
	for k := failed.Rounds(); k > 0 && s.worthSpinning(word.Load()); k-- {
		pause.Pause(SpinPause)
		if w := word.Load(); free(w) && word.CompareAndSwap(w, w|p.value) {
			failed.Succeeded()
			if w != 0 {
				s.Barged()
			}
			return true
		}
	}
	failed.Failed()
	return false
}

// SpinReaders is how many readers may hold a lock for which a writer spins. A group of readers that
// were granted the lock is larger, and waits for processors.
const SpinReaders = 2

// worthSpinning reports whether a writer spins for the lock, whose word is w.
//
// A writer that queues behind a reader keeps all later readers out until the writer has had a
// processor. In a crowd the others park meanwhile, and a processor is idle. With 8 goroutines, 10 %
// writes, and 300 ns of work inside of the lock and 300 ns outside, an operation takes 0.7 times as
// long with this spin. Two goroutines with empty sections would take 1.3 times as long: without it,
// one of them has the lock for itself until the other is awake. So a writer spins behind readers
// only in a lock for which two parties have waited at once.
func (s *Sync) worthSpinning(w uint64) bool {
	if w&flagShared == 0 {
		return w&flagReserved == 0
	}
	return w&(flagReserved|flagVisible) == 0 && w < (SpinReaders+1)*oneHold && s.queue.marks.load()&crowded != 0
}

// awaitReaders spins while n, a writer, waits for readers that drain from the table. A short read
// is over before the writer could have parked and been woken.
func (n *node) awaitReaders() {
	if sched.On && sched.Explored() {
		return
	}
	for k := 0; k < readerRounds && spins && !n.shared; k++ {
		if w := n.s.Word.Load(); w&flagVisible == 0 || w>>flagBits == n.value>>flagBits {
			return
		}
		pause.Pause(SpinPause)
	}
}

// readerRounds is how often a writer looks whether the readers are gone, SpinPause pauses apart.
const readerRounds = 20
