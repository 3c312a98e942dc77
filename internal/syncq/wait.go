package syncq

import (
	"runtime"
	"sync"

	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/pause"
)

// wait takes the lock for n unless the limit ends first, or the wait is refused. The caller
// recycles n. A wait goes like this:
//
//  1. The waiter takes the guard and calls tryEnqueue. If the lock can be had, the waiter has it.
//  2. Else the node is at the end of the queue, flagQueued is set, and the waiter parks. If it can,
//     it gives the guard back when it parks, and not before: see enqueue.
//  3. Under FIFO a release makes the first waiter the holder, takes its node out of the queue, and
//     unparks it. The waiter returns.
//  4. Under NonFair a release frees the lock, and wakes the first waiter, which races
//     (compete). If it loses it parks again, still first. After too many losses, or one to
//     readers, the lock is handed to it as in 3.
//  5. If the limit ends first, the waiter takes the guard (leave). A node that is still in the
//     queue leaves it (cancel), and the wait has failed. A node that is not was granted the lock
//     before: the wait has succeeded, and the unpark that comes with a grant is awaited.
//
// The loop is also written out in Acquire, AcquireShared and Cond.Wait, because a goroutine that
// wakes pays for each frame that it returns through.
func (n *node) wait(l *park.Limit) Outcome {
	n.limited = l.Open(&n.place)
	for queued, guard := n.enqueue(); queued; guard = nil {
		if !l.Park(&n.place, guard) {
			return n.leave()
		}
		queued = n.policy == NonFair && !n.compete()
	}
	return Acquired
}

// enqueue lets n have the lock at once or refuses it, or puts it in the queue. If it returns the
// guard, that is held, for n's first park to give back: nothing can end the wait before that. It
// returns no guard in four cases:
//
//   - The watcher has to look at the queue first.
//   - n was granted the lock or woken while it joined. A permit is on its way.
//   - n's place is open. Its park gives no mutex back.
//   - n spins for readers of the table first.
func (n *node) enqueue() (queued bool, guard *sync.Mutex) {
	s := n.s
	if n.who == 0 {
		n.who = goid.Get()
	}
	if w := watcher.Load(); w != nil && n.kind != nil {
		queued = (*w).Begin(Entry{n})
	} else {
		s.guard.Lock()
		var wake *node
		wake, queued = n.tryEnqueue()
		if n.state == waiting && !n.place.IsOpen() && s.Word.Load()&flagVisible == 0 {
			return true, &s.guard
		}
		s.guard.Unlock()
		unpark(wake)
	}
	if queued {
		n.awaitReaders()
	}
	return queued, nil
}

// tryEnqueue takes the lock for n if n may have it now, and reports false, or else puts n in the
// queue. The guard is held.
func (n *node) tryEnqueue() (wake *node, queued bool) {
	s := n.s
	for n.state == waiting {
		w := s.Word.Load()
		to, ok := n.admissible(w)
		switch {
		case !ok:
			if n.policy == NonFair && n.since == 0 && !n.shared && (s.queue.head != nil || w&flagShared == 0) {
				n.since = clock() // the first behind readers has the lock reserved at once
			}
			return n.push(), true
		case s.Word.CompareAndSwap(w, to):
			n.state = granted
		}
	}
	return wake, false
}

// push puts n at the end of the lock's queue, and sees to what follows. The guard is held. It
// returns n if n is to be unparked.
func (n *node) push() (wake *node) {
	s := n.s
	n.reserved = n.reserved || n.policy == NonFair && (n.shared || n.since == due)
	s.admitBy(n.policy)
	s.queue.push(n)
	s.report(n)
	if s.queue.head != n {
		return nil
	}
	// The word has to mirror n. That is all of it if the lock is held exclusively.
	if w := s.Word.Load(); exclusive(w) && s.Word.CompareAndSwap(w, w&^queueFlags|n.mirror()) {
		return nil
	}
	wake, _ = s.advance(keep)
	return wake
}

// admissible returns the word with n, which is not in the queue, as a holder, and whether n may
// have the lock, whose word is w. The guard is held. A reader overtakes a first waiter that is
// awake, for the reason of admitsReader. It overtakes none with a reservation, awake or not: after
// a reader overtook an awake writer, the next call of advance reserves the lock for that.
func (n *node) admissible(w uint64) (uint64, bool) {
	if !n.shared {
		return w | n.value, free(w)
	}
	head := n.s.queue.head
	may := head == nil || n.policy == NonFair && head.state == awake && !head.reserved
	return (w | flagShared) + oneHold, !exclusive(w) && may
}

// leave takes n, whose limit has ended or which is refused, out of the queue. The outcome is Ended,
// or Acquired if n got the lock before.
func (n *node) leave() Outcome {
	s := n.s
	var wake *node
	out := Acquired
	s.guard.Lock()
	if n.state < granted {
		out = Ended
		wake = n.cancel()
	}
	unparked := n.state != waiting
	s.guard.Unlock()
	unpark(wake)
	if unparked {
		n.place.Park()
	}
	return out
}

// awaitLock waits, without a limit, until n, which is in the queue, holds the lock or is dismissed.
func (n *node) awaitLock() {
	for {
		if n.place.Park(); n.policy == FIFO || n.compete() {
			return
		}
	}
}

// compete has n, which is first in a NonFair queue and was woken, race for the lock, and reports
// whether it has it. If not, n sleeps on a word that is held, and whose release will see to it.
func (n *node) compete() bool {
	s := n.s
	s.guard.Lock()
	for n.state == awake {
		w := s.Word.Load()
		if free(w) {
			to := n.value
			if next := n.next; next != nil {
				next.reserved = next.overdue()
				to |= next.mirror()
			}
			if s.Word.CompareAndSwap(w, to) {
				s.queue.shift(n)
				n.state = granted
			}
			continue
		}
		n.lost++
		n.reserved = w&flagShared != 0 || n.lost >= maxLost || n.overdue()
		n.state = waiting
		if s.Word.CompareAndSwap(w, w&^queueFlags|n.mirror()) {
			s.guard.Unlock()
			return false
		}
		n.state = awake // the word has changed, so n looks again; else it would return without the lock
	}
	s.guard.Unlock()
	return true
}

// cancel takes n out of the queue without the lock. The guard is held. If n was first, a
// wake-up that it had goes to the next waiter, and shared waiters behind an exclusive one join
// the shared holders: advance sees to both.
func (n *node) cancel() (wake *node) {
	s := n.s
	first := s.queue.head == n
	s.queue.remove(n)
	if first {
		if next := s.queue.head; next != nil && n.policy == NonFair {
			next.reserved = next.overdue()
		}
		wake, _ = s.advance(keep)
	}
	return wake
}

// dismiss takes n, whose owner holds the lock, out of the lock's queue, and wakes its waiter,
// or has it not join the queue. It reports false if n waits for a signal, or has the lock.
func (n *node) dismiss() bool {
	s := n.s
	s.guard.Lock()
	var wake *node
	ok := n.state <= awake && (n.in == nil || n.in == &s.queue)
	if ok {
		if n.in != nil {
			wake = n.cancel()
			if n.state == waiting {
				n.wake, wake = wake, n
			}
		}
		n.state = dismissed
	}
	s.guard.Unlock()
	unpark(wake)
	return ok
}

// Before a goroutine joins a NonFair queue for an exclusive hold, it looks at the lock spinRounds
// times, spinPause pauses apart. That takes some 800 ns, and a goroutine that is woken takes some
// 10 µs to run on another processor. Take 64 goroutines with 300 ns of work inside of the lock and
// 300 ns outside. With 16 rounds two of them go on in turns, while the others sleep, and an
// acquisition takes 0.8 times what it takes with 4. More rounds cost two goroutines without work
// more than they save.
const (
	spinRounds = 16
	spinPause  = 2
)

// spins says that a holder can run while another goroutine spins.
var spins = runtime.NumCPU() > 1

// spin takes a lock that becomes free within a short spin (NonFair). It stops when the lock is
// reserved for the first waiter, or shared: readers often have still to run, on the spinner's own
// processor. Under FIFO it would be in vain for the same reason.
func (s *Sync) spin(p Party) bool {
	for k := 0; k < spinRounds && spins && s.Word.Load()&(flagReserved|flagShared) == 0; k++ {
		pause.Pause(spinPause)
		if w := s.Word.Load(); free(w) && s.Word.CompareAndSwap(w, w|p.value) {
			return true
		}
	}
	return false
}

// awaitReaders spins while n, a writer, waits for readers that drain from the table: a read that is
// short is over before the writer could have parked and been woken.
func (n *node) awaitReaders() {
	for k := 0; k < readerRounds && spins && !n.shared; k++ {
		if w := n.s.Word.Load(); w&flagVisible == 0 || w>>flagBits == n.value>>flagBits {
			return
		}
		pause.Pause(spinPause)
	}
}

// readerRounds is how often a writer looks whether the readers are gone, spinPause pauses apart.
const readerRounds = 20
