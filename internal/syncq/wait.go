package syncq

import (
	"math"
	"sync"
	"time"

	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/park"
)

// state is how far the wait of a node is. It is guarded by the lock's guard; the waiter may read it
// after an unpark that nothing can follow.
//
//	from     to         function, and effect
//	waiting  awake      advance (NonFair): the first waiter shall race for the lock; one unpark
//	waiting  granted    advance: the waiter holds the lock; one unpark
//	waiting  sent       advance (NonFair): the waiter, a reader, shall ask again; one unpark
//	waiting  dismissed  dismiss: the waiter's owner holds the lock; one unpark
//	awake    waiting    compete: the waiter lost the race, and parks again
//	awake    granted    compete: it won; or advance, without an unpark: it will see that
//	awake    dismissed  dismiss, without an unpark
//	sent     granted    askAgain: the reader acquired the lock, as a newcomer may
//	sent     waiting    askAgain: a newcomer may not, and the reader joins the queue again
//
// Each step out of waiting comes with exactly one unpark, and each park ends with exactly one
// unpark. So a node's place is empty when its waiter is done with it.
type state uint8

const (
	waiting   state = iota // parked, or about to park
	awake                  // told to race for the lock
	granted                // holds the lock, and is in no queue
	dismissed              // its owner holds the lock, and it is in no queue
	sent                   // told to ask again: it has no hold, and is in no queue
)

// node is one wait of one party: in the lock's queue, in a condition's, or in none.
type node struct {
	place park.Place
	oneWait

	// Guarded by the lock's guard.
	in     *list // the list that has the node
	next   *node
	visit  *walk  // the inspection that goes on here
	number uint64 // the number of this wait among the waits of the node

	// Set by the waiter before it joins.
	shared bool
	value  uint64 // the word of this party as the exclusive holder
	who    int64  // the owner that inspection shows

	wake *node // the next node to unpark; for the goroutine that unparks
}

// oneWait is the part of a node that is zero before each wait.
type oneWait struct {
	// Guarded by the lock's guard.
	state    state
	reserved bool          // the next release hands the lock to this waiter (NonFair)
	reported bool          // the watcher wants to know when the wait is over
	lost     int32         // races lost, or how often the reader was sent in vain (NonFair)
	began    time.Duration // when the node joined the lock's queue, if waits are timed
	prev     *node         // only valid if the node is not the first

	// Set by the waiter before it joins.
	s         *Sync
	limited   bool // a context or a time limit can end the wait for the lock
	sendable  bool // a release may send this reader (NonFair); push may change it
	refused   bool // by the watcher
	policy    Policy
	goroutine int64 // that waits, if who is an explicit owner
	kind      *Kind

	since time.Duration // when the node joined the lock's queue, see overdue (NonFair)
}

// Nodes are used again: a contended acquisition allocates nothing in the steady state.
var nodes = sync.Pool{New: park.Maker(func(n *node) *park.Place { return &n.place })}

// newNode returns a wait of p. A lock that was not made by New may be FIFO already: then p says so
// too.
func (s *Sync) newNode(p Party, shared bool) *node {
	n := nodes.Get().(*node)
	n.s, n.value, n.who, n.shared, n.kind = s, p.value, p.who, shared, p.kind
	n.policy = p.policy || s.queue.policy()
	if explicit(n.who) {
		n.goroutine = goid.Get()
	}
	return n
}

// end recycles n, whose wait has ended with out unless it was refused, and returns the outcome. If
// the limit ended the wait, n is garbage like its channel. A cancellation may end many waits at
// once, and the pool would grow for their nodes.
func (n *node) end(out Outcome) Outcome {
	switch {
	case n.refused:
		out = Refused
	case out == Ended:
		n.over()
		return out
	}
	n.recycle()
	return out
}

// over tells the watcher, if it wants to know, that n's wait is over.
func (n *node) over() {
	if n.reported {
		(*watcher.Load()).Ended(n.who)
	}
}

func (n *node) recycle() {
	n.place.Reset()
	n.over()
	n.oneWait = oneWait{}
	nodes.Put(n)
}

// mirror returns the flags about a queue whose first waiter is n. The guard is held.
func (n *node) mirror() uint64 {
	switch {
	case n.reserved:
		return flagQueued | flagReserved
	case n.state == awake:
		return flagQueued | flagWoken
	}
	return flagQueued
}

// These bound barging. The lock is reserved for a first waiter that loses the race to bargers
// MaxLost times, or has waited for MaxBarging (see overdue, LongQueue). The next release then hands
// the lock to that waiter. For a waiter behind readers the lock is reserved at once. The queues of
// rwlock.StampedLock and of package ruled have the same bounds.
const (
	MaxBarging = time.Millisecond
	MaxLost    = 16
)

// LongQueue is how many waiters make MaxBarging longer by its length. In a long queue each waiter
// is overdue when it becomes the first, and the lock would be handed off from then on.
const LongQueue = 128

// due is the since of a waiter that a broadcast moved here with others. The lock is reserved for
// each of these waiters. They have waited, and handing the lock from one to the next is the
// shortest way through them.
const due = time.Duration(math.MinInt64 / 2)

// overdue reports whether the lock is to be reserved for n by now.
//
// The clock is read when a waiter joins, becomes the first, or loses a race, and at each 64th
// acquisition past an awake waiter. A reading takes as long as several atomic writes. For the first
// waiter behind readers the lock is reserved without a look at the clock. A signalled waiter that
// joins as the first usually wins its first race. So Signal reads no clock for this waiter, and its
// wait counts from the first lost race.
func (n *node) overdue() bool {
	if n.reserved {
		return true
	}
	t := clock()
	if n.since == 0 {
		n.since = t
	}
	return t-n.since >= MaxBarging*time.Duration(1+n.s.queue.len/LongQueue)
}

var start = time.Now()

// clock returns the monotonic time. Inside a testing/synctest bubble it stands still while a
// goroutine runs, which is why lost races are counted as well.
func clock() time.Duration { return time.Since(start) }

// wait takes the lock for n unless the limit ends first, or the wait is refused. The caller
// recycles n. A wait goes like this:
//
//  1. The waiter takes the guard and calls tryEnqueue. If the lock can be had, the waiter has it.
//  2. Else the node is at the end of the queue, flagQueued is set, and the waiter parks. If
//     possible, the waiter gives the guard back when it parks, and not before: see enqueue.
//  3. Under FIFO a release makes the first waiter the holder, takes its node out of the queue, and
//     unparks it. The waiter returns.
//  4. Under NonFair a release frees the lock, and wakes the first waiter, which races (compete). If
//     the waiter loses, it parks again, still first. After too many losses, or one loss to readers,
//     the lock is handed to the waiter as in 3. If only readers wait, the release may free the
//     lock, and send all readers. Each reader leaves the queue, is unparked, and asks for the lock
//     as a newcomer does (askAgain). If the reader asks in vain, it joins the queue again, at the
//     end.
//  5. If the limit ends first, the waiter takes the guard (leave). A node that is still in the
//     queue leaves it (cancel), and the wait has failed. A node that is not in the queue was
//     granted the lock before. The wait has succeeded, and the waiter awaits the unpark that comes
//     with the grant.
//
// A goroutine that wakes pays for each frame that it returns through. So the loop is also written
// out in Acquire, AcquireShared and Cond.Wait, and after [Begin] in packages fair and reentrant.
// Without these copies a contended Lock takes 0 to 6 % longer, and a contended LockContext 2 to 9 %
// (Go 1.26.8 and 1.27.0, FIFO, one processor). A copy of [park.Limit.Park] here saved nothing.
func (n *node) wait(l *park.Limit) Outcome {
	n.limited = l.Open(&n.place)
	for queued, guard := n.enqueue(); queued; {
		switch {
		case !l.Park(&n.place, guard):
			out := n.leave()
			if n.isSent() && !n.s.TryLockSharedInTurn() {
				out = Ended
			}
			return out
		case n.sendable:
			queued, guard = n.askAgain()
		default:
			queued, guard = n.policy == NonFair && !n.compete(), nil
		}
	}
	return Acquired
}

// isSent reports whether n, which is in no queue, was sent. It is for the waiter, after the unpark.
func (n *node) isSent() bool { return n.sendable && n.state == sent }

// askAgain is for a sendable waiter that was unparked. A waiter that was sent acquires the lock as
// a newcomer does, or joins the queue again. Any other waiter holds the lock. The results are those
// of enqueue.
func (n *node) askAgain() (queued bool, guard *sync.Mutex) {
	switch {
	case !n.isSent():
		return false, nil
	case n.s.TryLockSharedInTurn():
		n.state = granted
		return false, nil
	}
	n.state, n.reserved = waiting, false
	n.lost++
	return n.enqueue()
}

// enqueue lets n have the lock at once, refuses the wait, or puts n in the queue. If enqueue
// returns the guard, the guard is held, and n's first park gives it back: nothing can end the wait
// before that park. It returns nil in four cases:
//
//   - The watcher must look at the queue first.
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
		if !queued && n.isSent() {
			return n.askAgain() // a release came before the watcher could refuse the wait
		}
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
			// The first writer behind readers has the lock reserved at once.
			timed := !n.shared && (s.queue.head != nil || w&flagShared == 0)
			if n.policy == NonFair && n.since == 0 && timed {
				n.since = clock()
			}
			return n.push(), true
		case s.Word.CompareAndSwap(w, to):
			n.state = granted
		}
	}
	return wake, false
}

// push puts n at the end of the lock's queue, and updates the word. The guard is held. push returns
// n if n is to be unparked.
func (n *node) push() (wake *node) {
	s := n.s
	if n.lost > 0 { // a reader that was sent in vain
		n.sendable = n.sendable && n.lost < MaxLost
	}
	n.reserved = n.reserved || n.policy == NonFair && (n.shared || n.since == due)
	s.queue.admitBy(n.policy)
	s.queue.push(n)
	s.report(n)
	if s.queue.head != n {
		return nil
	}
	// The word must mirror n. If the lock is held exclusively, nothing else has to change.
	if w := s.Word.Load(); exclusive(w) && s.Word.CompareAndSwap(w, w&^queueFlags|n.mirror()) {
		return nil
	}
	wake, _ = s.advance(keep)
	return wake
}

// admissible is for a node n that is not in the queue. It returns the word w with n as a holder,
// and whether n may have the lock. The guard is held. A reader overtakes a first waiter that is
// awake, for the reason of admitsReader. A reader does not overtake a waiter with a reservation,
// awake or not. After a reader overtook an awake writer, the next call of advance reserves the lock
// for the writer.
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

// compete races for the lock on behalf of n, which is first in a NonFair queue and was woken. It
// reports whether n has the lock. If not, n sleeps on a held word, whose release admits or wakes n.
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
		n.reserved = w&flagShared != 0 || n.lost >= MaxLost || n.overdue()
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

// cancel takes n out of the queue without the lock. The guard is held. If n was first, cancel calls
// advance. A wake-up of n goes to the next waiter. Shared waiters behind an exclusive n join the
// shared holders.
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

// dismiss takes n, whose owner holds the lock, out of the lock's queue, and wakes its waiter. If n
// has not joined the queue yet, dismiss keeps it from joining. It reports false if n waits for a
// signal, or has the lock.
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
