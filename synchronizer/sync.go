package synchronizer

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/info"
	"github.com/jucgo/locks/internal/outcome"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/internal/syncq"
)

// Rules say when a [Sync] can be acquired and released. Both methods are functions of their
// arguments and of fields of the Rules that never change. They look at nothing else, change
// nothing, do not block, and do not panic. A Sync may call them at any time, in any goroutine, as
// often as it likes, also for a waiter that does not run. Its guard may be held then. Tests with
// the race detector call them twice and compare: see the package comment.
//
// No acquisition helps a waiter: what the rules refuse at a word, they refuse at the word after
// any acquisition too. Waiters end their waits by releases. Let what one goroutine waits for be
// the Release of another one, or use two Syncs.
type Rules interface {
	// Acquire returns the word after arg was acquired at the word w, and whether it can be. It is
	// the tryAcquire or tryAcquireShared of a Java AbstractQueuedSynchronizer.
	Acquire(w, arg uint64) (next uint64, ok bool)

	// Release returns the word after arg was released at the word w, and whether it can be. False
	// means misuse: the caller does not hold what it releases. It is Java's tryRelease or
	// tryReleaseShared.
	Release(w, arg uint64) (next uint64, ok bool)
}

// Sync is a synchronizer: a word that rules change, and a queue of the goroutines that wait until
// the rules let them in. Java's AbstractQueuedSynchronizer.
//
// The zero Sync has the word 0, the zero R, and the policy fair.FIFO. [New] makes another one. A
// Sync must not be copied after first use. It belongs to no goroutine: one may acquire and
// another release.
//
// In the terms of the Go memory model, each change of the word synchronizes before each
// acquisition that comes after it in the order of the changes. Without waiters an acquisition and
// a release cost a compare-and-swap and a call of the rules each, and allocate nothing. Only
// waits with a context or a time limit allocate.
type Sync[R Rules] struct {
	rules R
	word  atomic.Uint64

	// gate mirrors the queue for those that have no guard. It changes with the guard held. These
	// are all legal values, between two changes:
	//
	//	closed awake queued
	//	0      0     0      no waiters
	//	0      0     1      waiters, the first sleeps (NonFair)
	//	0      1     1      waiters, the first was woken to race for the word (NonFair)
	//	1      0     1      waiters, the word is kept for the first
	gate atomic.Uint32

	barges  bool                  // the policy is fair.NonFair
	guard   sync.Mutex            // held while rules are called and nodes are moved, never while a goroutine waits
	queue   list                  // guarded
	refuses func(arg uint64) bool // guarded; if not nil, whether a wait for arg is refused
}

// The flags of a gate.
const (
	// queued mirrors "the queue is not empty". Each release is followed by a look at it. Illegal
	// to forget: set it before the first waiter looks at the word for the last time before it
	// sleeps. Otherwise a release in between wakes nobody.
	queued uint32 = 1 << iota

	// awake mirrors "the first waiter is awake" (NonFair): it will look at the word, so releases
	// need not wake it. Illegal to forget: clear it before that waiter's last look.
	awake

	// closed keeps newcomers from the word. It is set while there are waiters under FIFO. Under
	// NonFair it is set while the first waiter has a reservation. Illegal to forget: clear it
	// with the last waiter, or newcomers would queue up for nothing.
	closed
)

// New returns a Sync with these rules, with a first word, and with a policy.
//
// Under fair.FIFO, waiters are admitted in the order of their arrival, and nobody overtakes a
// waiter. Under fair.NonFair, a goroutine that the rules admit overtakes the waiters. A release
// wakes the first waiter, which races for the word. A first waiter that has lost 16 races, or has
// waited for a millisecond when the word changes, has the word kept for it: nobody overtakes it
// from then on.
func New[R Rules](rules R, word uint64, policy fair.Policy) *Sync[R] {
	s := &Sync[R]{rules: rules, barges: policy != fair.FIFO}
	s.word.Store(word)
	return s
}

// TryAcquire acquires arg if the rules allow it now, and reports whether it did. Under fair.FIFO,
// and while the word is kept for the first waiter, it reports false if a goroutine waits.
func (s *Sync[R]) TryAcquire(arg uint64) (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryAcquire", s)(&ok)
	}
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

// Acquire acquires arg, and waits until the rules allow it.
func (s *Sync[R]) Acquire(arg uint64) {
	if sched.On {
		defer sched.Enter("Acquire", s)()
	}
	if !s.TryAcquire(arg) {
		s.wait(arg, 0, nil)
	}
}

// AcquireContext is Acquire until ctx ends. A ctx that has ended already is an error even if the
// rules allow the acquisition. If ctx ends, the waiter is out of the queue when the call returns.
// A waiter that was admitted when it sees the end of ctx has acquired, and gets nil.
func (s *Sync[R]) AcquireContext(ctx context.Context, arg uint64) (err error) {
	if sched.On {
		defer sched.Asked("AcquireContext", s)(&err)
	}
	const op = "synchronizer: AcquireContext"
	if err := ctxerr.Check(op, ctx); err != nil {
		return err
	}
	if s.TryAcquire(arg) {
		return nil
	}
	return outcome.Error(op, ctx, s.wait(arg, int64(locks.CurrentOwner(ctx)), park.Until(ctx)))
}

// AcquireFor is Acquire for at most d, and reports whether it acquired. With d <= 0 it is
// TryAcquire.
func (s *Sync[R]) AcquireFor(arg uint64, d time.Duration) (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("AcquireFor", s)(&ok)
	}
	return s.TryAcquire(arg) || d > 0 && s.wait(arg, 0, park.After(d)) == syncq.Acquired
}

// Release releases arg, and admits the waiters that the rules let in then. It reports false, with
// nothing changed, if the rules refuse.
func (s *Sync[R]) Release(arg uint64) (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("Release", s)(&ok)
	}
	for {
		w := s.word.Load()
		switch next, ok := s.release(w, arg); {
		case !ok || next == w:
			return ok
		case s.word.CompareAndSwap(w, next):
			s.changed()
			return true
		}
	}
}

// Word returns the word. When the caller reads it, it may be another one. Java's getState().
func (s *Sync[R]) Word() uint64 {
	if sched.On {
		sched.Begin("Word", s)
	}
	return s.word.Load()
}

// CompareAndSwap changes the word from old to next, past the rules and the waiters, and admits
// the waiters that the rules let in then. It reports whether the word was old. It is for changes
// that are neither an acquisition nor a release. Java's compareAndSetState(expect, update).
func (s *Sync[R]) CompareAndSwap(old, next uint64) bool {
	if sched.On {
		sched.Begin("CompareAndSwap", s)
	}
	if !s.word.CompareAndSwap(old, next) {
		return false
	}
	s.changed()
	return true
}

// HasQueued reports whether a goroutine waits. Java's hasQueuedThreads().
func (s *Sync[R]) HasQueued() bool {
	if sched.On {
		sched.Begin("HasQueued", s)
	}
	return s.gate.Load() != 0
}

// QueueLength returns the number of goroutines that wait. Java's getQueueLength().
func (s *Sync[R]) QueueLength() int {
	if sched.On {
		sched.Begin("QueueLength", s)
	}
	s.guard.Lock()
	defer s.guard.Unlock()
	return s.queue.len
}

// Queued returns the owners that wait, longest wait first. It takes a time in proportion to their
// number, during which no waiter is admitted. Java's getQueuedThreads().
func (s *Sync[R]) Queued() []locks.Owner {
	if sched.On {
		sched.Begin("Queued", s)
	}
	s.guard.Lock()
	var who []int64
	for n := s.queue.head; n != nil; n = n.next {
		who = append(who, n.who)
	}
	s.guard.Unlock()
	return outcome.Owners(who)
}

// Inspect returns the waiters. Held is true if the word is not 0. The holders are not known.
// See [locks.Inspector].
func (s *Sync[R]) Inspect(ctx context.Context) (locks.Info, error) {
	if sched.On {
		defer sched.Enter("Inspect", s)()
	}
	return info.State{Held: s.Word() != 0, Waiters: s.Queued()}.Answer("synchronizer: Inspect", ctx)
}

// changed has to follow each change of the word, made without the guard, that may help a waiter.
func (s *Sync[R]) changed() {
	if s.gate.Load()&(queued|awake) == queued {
		s.guard.Lock()
		wake := s.advance()
		s.guard.Unlock()
		unpark(wake)
	}
}

// wait waits in the queue until the rules admit arg, or l ends, or the wait is refused. who is
// the owner that inspection shows, or 0 for the calling goroutine. The outcome is Acquired, Ended
// or Refused. The package comment has the steps of a wait.
func (s *Sync[R]) wait(arg uint64, who int64, l *park.Limit) syncq.Outcome {
	if who == 0 {
		who = goid.Get()
	}
	n := newNode(arg, who)
	l.Open(&n.place)
	guard := &s.guard
	guard.Lock()
	if s.refuses != nil && s.refuses(arg) {
		guard.Unlock()
		n.state = refused
		return n.end()
	}
	var wake *node
	if s.queue.push(n); s.queue.head == n {
		wake = s.advance()
	}
	if n.state != waiting || n.place.IsOpen() {
		guard.Unlock()
		guard = nil // n's park gives nothing back
		unpark(wake)
	}
	for ; ; guard = nil {
		if !l.Park(&n.place, guard) {
			s.leave(n)
			return n.end()
		}
		if !s.barges || s.compete(n) {
			return n.end()
		}
	}
}

// advance admits or wakes the first waiters, as far as the word allows. The guard is held. It
// returns the nodes to unpark when the guard is free. It is called after each change that may
// concern the first waiter: a change of the word, or another waiter that is the first.
//
// On return these hold, and go on to hold until the guard is taken again:
//
//	Q  queued is set if and only if the queue is not empty.
//	A  awake is set if and only if the first waiter is in the state awake.
//	C  closed is set if and only if the first waiter is reserved. Under FIFO each first one is.
//	L  If the first waiter sleeps, then the rules have refused it after gate had its present value.
//	   Each later release finds queued without awake, and comes here.
func (s *Sync[R]) advance() (wake *node) {
	last := &wake
	for n := s.queue.head; n != nil && n.state != racing; n = s.queue.head {
		n.reserved = n.reserved || !s.barges || n.overdue()
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
		case next != w && !s.word.CompareAndSwap(w, next):
			continue // the word has changed, so the rules have to look again
		default:
			s.queue.remove(n)
			n.state = granted
		}
		*last, last = n, &n.wake
	}
	if s.queue.head == nil {
		s.setGate(0)
	}
	return wake
}

// setGate saves the atomic write if it changes nothing. The guard is held.
func (s *Sync[R]) setGate(gate uint32) {
	if s.gate.Load() != gate {
		s.gate.Store(gate)
	}
}

// compete has n, which was unparked, race for the word if it was woken for that (NonFair). It
// reports whether the wait is over. If not, n goes on to sleep, still first.
func (s *Sync[R]) compete(n *node) (over bool) {
	s.guard.Lock()
	var wake *node
	if n.state == racing {
		n.state = waiting
		if !s.take(n) {
			n.lost++
		}
		wake = s.advance()
	}
	over = n.state >= granted
	s.guard.Unlock()
	unpark(wake)
	return over
}

// take admits n, which is first, if the rules do. The guard is held.
func (s *Sync[R]) take(n *node) bool {
	for {
		w := s.word.Load()
		next, ok := s.acquire(w, n.arg)
		if !ok {
			return false
		}
		if next == w || s.word.CompareAndSwap(w, next) {
			s.queue.remove(n)
			n.state = granted
			return true
		}
	}
}

// leave takes n, whose limit has ended, out of the queue, unless its wait is over already.
func (s *Sync[R]) leave(n *node) {
	s.guard.Lock()
	var wake *node
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
}

// refuse ends the waits for the arguments that match names, and from now on refuses new ones.
func (s *Sync[R]) refuse(match func(arg uint64) bool) {
	s.guard.Lock()
	s.refuses = match
	var wake *node
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
