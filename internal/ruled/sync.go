package ruled

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/pause"
	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/internal/syncq"
)

// Rules are the Rules of package synchronizer.
type Rules interface {
	Acquire(w, arg uint64) (next uint64, ok bool)
	Release(w, arg uint64) (next uint64, ok bool)
}

// Sync is the state of a synchronizer.Sync. The zero Sync has the word 0, and is FIFO. Its methods
// announce no operation to package sched: the exported methods of its users do.
type Sync[R Rules] struct {
	rules R
	word  atomic.Uint64

	// gate mirrors the queue for goroutines without the guard. It changes with the guard held.
	// These are all legal values, between two changes:
	//
	//	closed awake queued
	//	0      0     0      no waiters
	//	0      0     1      waiters, the first sleeps (NonFair)
	//	0      1     1      waiters, the first was woken to race for the word (NonFair)
	//	1      0     1      waiters, the word is kept for the first, which may be awake
	gate atomic.Uint32

	barges  bool                  // NonFair
	passed  syncq.Barges          // counts releases past an awake waiter
	failed  syncq.Failures        // of spins, in a row
	guard   sync.Mutex            // held while rules are called and nodes are moved, never while a goroutine waits
	queue   list                  // guarded
	refuses func(arg uint64) bool // guarded; if not nil, whether a wait for arg is refused
}

// The flags of a gate.
const (
	// queued mirrors "the queue is not empty". After each release, the releasing goroutine looks at
	// queued. Illegal to forget: set queued before the first waiter looks at the word for the last
	// time before it sleeps. Otherwise a release in between wakes no waiter.
	queued uint32 = 1 << iota

	// awake mirrors "the first waiter is awake, and the word is not kept for it" (NonFair): the
	// waiter will look at the word, so releases need not wake it. Illegal to forget: clear awake
	// before that waiter's last look.
	awake

	// closed keeps newcomers from the word. It is set while there are waiters under FIFO. Under
	// NonFair it is set while the first waiter has a reservation. Illegal to forget: clear closed
	// with the last waiter, or newcomers would queue up for nothing.
	closed
)

// Init sets the rules, the first word and the policy of a Sync that is not in use yet.
func (s *Sync[R]) Init(rules R, word uint64, barges bool) {
	s.rules, s.barges = rules, barges
	s.word.Store(word)
}

// TryAcquire acquires arg if gate is not closed and the rules allow it now.
func (s *Sync[R]) TryAcquire(arg uint64) bool {
	for s.gate.Load()&closed == 0 {
		w := s.word.Load()
		switch next, ok := s.acquire(w, arg); {
		case !ok:
			return false
		case next == w || s.word.CompareAndSwap(w, next):
			return true
		}
	}
	return false
}

// spin tries for a short while to acquire arg, until the word is kept for a waiter (NonFair).
func (s *Sync[R]) spin(arg uint64) bool {
	if sched.On && sched.Explored() {
		return false
	}
	for range s.failed.Rounds() {
		pause.Pause(syncq.SpinPause)
		if s.TryAcquire(arg) {
			s.failed.Succeeded()
			return true
		}
		if s.gate.Load()&closed != 0 {
			return false // which says nothing about how long a spin should be
		}
	}
	s.failed.Failed()
	return false
}

// Release releases arg. It reports false if the rules refuse.
func (s *Sync[R]) Release(arg uint64) bool {
	for {
		w := s.word.Load()
		switch next, ok := s.release(w, arg); {
		case !ok || next == w:
			return ok
		case s.word.CompareAndSwap(w, next):
			s.onChange()
			return true
		}
	}
}

// Word returns the word.
func (s *Sync[R]) Word() uint64 { return s.word.Load() }

// CompareAndSwap changes the word past the rules.
func (s *Sync[R]) CompareAndSwap(old, next uint64) bool {
	if !s.word.CompareAndSwap(old, next) {
		return false
	}
	s.onChange()
	return true
}

// Take is CompareAndSwap for an acquisition, which can help no waiter.
func (s *Sync[R]) Take(old, next uint64) bool { return s.word.CompareAndSwap(old, next) }

// HasQueued reports whether a goroutine waits.
func (s *Sync[R]) HasQueued() bool { return s.gate.Load() != 0 }

// QueueLength returns the number of goroutines that wait.
func (s *Sync[R]) QueueLength() int {
	s.guard.Lock()
	defer s.guard.Unlock()
	return s.queue.len
}

// Waiters returns the owners of the waiters, in order.
func (s *Sync[R]) Waiters() (who []int64) {
	s.guard.Lock()
	defer s.guard.Unlock()
	for n := s.queue.head; n != nil; n = n.next {
		who = append(who, n.who)
	}
	return who
}

// onChange must follow each change of the word, made without the guard, that may help a waiter.
func (s *Sync[R]) onChange() {
	if gate := s.gate.Load(); gate&awake != 0 {
		s.pass()
	} else if gate&queued != 0 {
		s.admit()
	}
}

// admit looks at the word for the first waiter, which sleeps.
//
// If admit admits a waiter that sleeps and for which the word is kept, it yields its processor
// (NonFair). Otherwise the caller would go on until it wants the word again, and park. The admitted
// waiter's processor would meanwhile wake another processor for nothing.
func (s *Sync[R]) admit() {
	s.guard.Lock()
	wake := s.advance()
	yields := s.barges && wake != nil && wake.state == granted
	s.guard.Unlock()
	unpark(wake)
	if yields {
		runtime.Gosched()
	}
}

// pass follows a release that leaves the word to a first waiter that is awake (NonFair). Goroutines
// can pass the word to each other without ever queueing. The first waiter loses no race meanwhile,
// because it gets a processor only when Go ends a time slice, and all other waiters wait behind it.
// So one in so many such releases looks whether the first waiter is overdue, and keeps the word for
// it. If the guard is in use, none looks.
func (s *Sync[R]) pass() {
	if !s.passed.Count(syncq.BargedRounds) || !s.guard.TryLock() {
		return
	}
	var wake *Node
	yields := false
	if n := s.queue.head; n != nil && n.state == racing && !n.reserved && s.overdue(n) {
		n.reserved = true
		wake = s.advance()
		yields = n.state == granted
	}
	s.guard.Unlock()
	unpark(wake)
	if yields {
		runtime.Gosched()
	}
}

// Wait waits in the queue until the rules admit arg, or l ends, or the wait is refused. who is
// the owner that inspection shows, or 0 for the calling goroutine. The outcome is Acquired, Ended
// or Refused. The package comment has the steps of a wait.
func (s *Sync[R]) Wait(arg uint64, who int64, l *park.Limit) syncq.Outcome {
	if s.barges && s.spin(arg) {
		return syncq.Acquired
	}
	if who == 0 {
		who = goid.Get()
	}
	if l == nil {
		n := newNode(arg, who)
		for guard := s.enqueue(n); ; guard = nil {
			n.place.ParkAndUnlock(guard)
			if !s.barges || s.compete(n) {
				return n.recycle()
			}
		}
	}
	n := &Node{arg: arg, who: who}
	l.Open(&n.place)
	s.enqueue(n)
	for {
		if !l.Park(&n.place, nil) {
			return s.Leave(n)
		}
		if !s.barges || s.compete(n) {
			return n.Outcome()
		}
	}
}

// Begin is the first half of a limited Wait under FIFO, for a caller that selects by itself. After
// a permit from the node's Permits, Outcome says how the wait ended. If the limit comes first, the
// caller calls Leave.
func (s *Sync[R]) Begin(arg uint64, who int64) *Node {
	n := &Node{arg: arg, who: who}
	n.place.Open()
	s.enqueue(n)
	return n
}

// enqueue appends n, which then parks. If n waits without a limit, enqueue may return the guard,
// locked: n gives it back when it parks.
func (s *Sync[R]) enqueue(n *Node) (guard *sync.Mutex) {
	s.guard.Lock()
	var wake *Node
	if s.refuses != nil && s.refuses(n.arg) {
		n.state, wake = refused, n
	} else {
		if s.barges {
			n.since = time.Since(start)
		}
		if s.queue.push(n); s.queue.head == n {
			wake = s.advance()
		}
	}
	if n.state == waiting && !n.place.IsOpen() {
		return &s.guard
	}
	s.guard.Unlock()
	unpark(wake)
	return nil
}

// advance admits or wakes the first waiters, as far as the word allows. The guard is held. It
// returns the nodes that the caller unparks when it has released the guard. A call follows each
// change that may concern the first waiter: the word has changed, or another waiter has become the
// first.
//
// On return these hold, and go on to hold until the guard is taken again:
//
//	Q  queued is set if and only if the queue is not empty.
//	A  awake is set if and only if the first waiter is in the state racing, and not reserved.
//	C  closed is set if and only if the first waiter is reserved. Under FIFO each first waiter is.
//	L  If the first waiter sleeps or is reserved, then the rules have refused it after gate had its
//	   present value. Each later release finds queued without awake, and calls advance.
func (s *Sync[R]) advance() (wake *Node) {
	last := &wake
	for n := s.queue.head; n != nil && (n.state != racing || n.reserved); n = s.queue.head {
		n.reserved = n.reserved || !s.barges || s.overdue(n)
		if n.reserved {
			s.setGate(queued | closed)
		} else {
			s.setGate(queued)
		}
		w := s.word.Load()
		next, ok := s.acquire(w, n.arg)
		switch {
		case !ok:
			return wake
		case !n.reserved:
			n.state = racing
			s.setGate(queued | awake)
			*last, last = n, &n.wake
		case next != w && !s.word.CompareAndSwap(w, next):
			// The word has changed, so the rules have to look again.
		default:
			s.queue.remove(n)
			if n.state == waiting { // a racing one has its unpark
				*last, last = n, &n.wake
			}
			n.state = granted
		}
	}
	if s.queue.head == nil {
		s.setGate(0)
	}
	return wake
}

// setGate sets gate, and saves the atomic write if gate has that value already. The guard is held.
func (s *Sync[R]) setGate(gate uint32) {
	if s.gate.Load() != gate {
		s.gate.Store(gate)
	}
}

// compete lets the waiter n, which was unparked, race for the word if its state is racing
// (NonFair). compete reports whether the wait is over. If not, n parks again, still first. If the
// word changes during the race, n has lost too. advance may then admit n itself. n gets no unpark,
// because its goroutine is awake: it is the caller.
func (s *Sync[R]) compete(n *Node) (over bool) {
	s.guard.Lock()
	var wake *Node
	if n.state == racing {
		n.state = waiting
		w := s.word.Load()
		if next, ok := s.acquire(w, n.arg); ok && (next == w || s.word.CompareAndSwap(w, next)) {
			s.queue.remove(n)
			n.state = granted
		} else {
			n.lost++
		}
		wake = s.advance()
	}
	if over = n.state >= granted; over && wake == n {
		wake, n.wake = n.wake, nil
	}
	s.guard.Unlock()
	unpark(wake)
	return over
}

// Leave takes n, whose limit has ended, out of the queue, unless the wait of n is over already. It
// returns how the wait ended.
func (s *Sync[R]) Leave(n *Node) syncq.Outcome {
	s.guard.Lock()
	var wake *Node
	unparked := n.state != waiting
	if n.state < granted {
		n.state = waiting
		first := s.queue.head == n
		if s.queue.remove(n); first {
			wake = s.advance()
		}
	}
	s.guard.Unlock()
	unpark(wake)
	if unparked {
		n.place.Park() // takes the permit, which is there or about to be
	}
	return n.Outcome()
}

// Refuse ends the waits for the arguments that match names, and from now on refuses new waits for
// such arguments.
func (s *Sync[R]) Refuse(match func(arg uint64) bool) {
	s.guard.Lock()
	s.refuses = match
	var wake *Node
	last := &wake
	first := s.queue.head
	for n := first; n != nil; {
		next := n.next
		if match(n.arg) {
			s.queue.remove(n)
			if n.state == waiting {
				*last, last = n, &n.wake
			}
			n.state = refused
		}
		n = next
	}
	if s.queue.head != first {
		*last = s.advance()
	}
	s.guard.Unlock()
	unpark(wake)
}
