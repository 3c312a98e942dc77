package syncq

import (
	"sync"
	"sync/atomic"
)

// Sync is the synchronizer of one lock: its state and its queue. The zero Sync is free. It must
// not be copied.
//
// Its methods trust their callers: only a holder releases. A lock passes the same policy in every
// call: while others wait, each call that needs the policy checks that.
type Sync struct {
	// Word is the state. Locks touch it in their fast paths only, by compare-and-swap between a
	// free word and the holder's, with the same flags. It is exported because those fast paths must
	// be inlined.
	Word atomic.Uint64

	// Holds counts the re-entries of the goroutine that holds the lock exclusively, beyond its
	// first hold. Only that goroutine may touch it. A condition wait saves and restores it.
	Holds int32

	// covered counts the shared holds of the goroutine that holds the lock exclusively. See
	// table.go.
	covered count

	guard sync.Mutex // held for a bounded number of instructions
	queue list       // guarded
	table atomic.Pointer[readTable]

	// Above is for one layer above the engine, package shares: its first value stays.
	Above atomic.Pointer[any]
}

// Policy is the order in which a Sync admits.
type Policy bool

const (
	// NonFair gives a free lock to the first that asks, past the waiters.
	NonFair Policy = false
	// FIFO makes the longest waiter the holder when the lock is released.
	FIFO Policy = true
)

// New returns a Sync that remembers policy for its lock: see [Sync.Policy].
func New(policy Policy) Sync { return Sync{queue: list{policy: policy}} }

// twoPolicies reports a lock that changes its policy while others wait. A waiter of it could sleep
// for ever.
const twoPolicies = "syncq: two policies for one queue"

// Policy returns the policy that New was given. A lock that New has not made knows it by itself.
func (s *Sync) Policy() Policy { return s.queue.policy }

// Party is the one that acquires: its value in the state word, and the identity that inspection
// shows.
type Party struct {
	value uint64
	who   int64
	kind  *Kind
}

// Owned returns the party of a lock that knows its owner, which must not be 0 and must fit, with
// its sign, in 58 bits.
func Owned(owner int64) Party { return Party{value: Value(owner), who: owner} }

// Taken is the word of a lock without owners while it is held exclusively and nobody waits.
const Taken = oneHold

// Anonymous returns the party of a lock without owners. who is for inspection only; 0 stands for
// the calling goroutine.
func Anonymous(who int64) Party { return Party{value: Taken, who: who} }

// Of says of which kind p's lock is.
func (p Party) Of(k *Kind) Party {
	p.kind = k
	return p
}

// advance changes the word by step, and does everything that follows from the change: it is the
// only place where waiters are admitted or woken. The guard is held. It returns the nodes to
// unpark, a group of them once the guard is free, and false, with nothing done, if step refused the
// word.
//
// It is called after, or with, every change that may concern a waiter. Such a change is the end of
// a hold, a downgrade, a node that becomes the first of the queue, or a reader that leaves the
// table. A node that joins behind others, or leaves from there, changes nothing: the word mirrors
// the first, and the waiters behind it do not overtake it.
// On return these hold, and go on to hold until the guard is taken again, but for the word of a
// release under way:
//
//	Q  flagQueued is set if and only if the queue is not empty, and flagBiased only if it is empty.
//	F  FIFO: if the queue is not empty, the lock is held.
//	N  NonFair: if the queue is not empty, the lock is held, or flagWoken is set.
//	W  If flagWoken is set, the first waiter is awake, or a release that has set it on a word that
//	   it freed is about to call advance.
//	S  If the first waiter is shared, the lock is held exclusively.
//	O  NonFair: if readers hold the lock, and the first waiter is exclusive and sleeps, the lock is
//	   reserved for that waiter.
//	T  If flagVisible is set and flagBiased is not, the table has readers that are not counted, or
//	   the last of them has still to look (ReadersLeft).
//
// No wake-up is lost. Take a waiter that sleeps in the queue. By F and N the lock is held, or the
// first waiter is awake, or a release is about to call advance. If the lock is held, Q has its
// release come here, under FIFO and with flagReserved to admit the first waiter, else to wake it.
// An awake waiter calls compete. It wins, and the lock is held; or it finds the word held, and
// sleeps again with flagWoken cleared in one step with that finding; or it leaves, and cancel calls
// advance. Parties that take and free the lock while flagWoken is set tell nobody, readers included
// (TryUnlockShared). If the table holds the lock, T has its last reader come here.
//
// The commonest case comes first, which makes a hand-off a tenth cheaper: the last hold ends, and
// the first waiter gets the lock exclusively.
func (s *Sync) advance(policy Policy, step func(uint64) (uint64, bool)) (wake *node, ok bool) {
	w, n := s.Word.Load(), s.queue.head
	if n != nil && policy != s.queue.policy {
		panic(twoPolicies)
	}
	if n == nil || n.shared || policy == NonFair && !n.reserved {
		return s.advanceAny(policy, step)
	}
	if base, ok := step(w); !ok || base&^queueFlags != 0 {
		return s.advanceAny(policy, step)
	}
	to := n.value
	if next := n.next; next != nil {
		if policy == NonFair {
			next.reserved = next.overdue()
		}
		to |= next.mirror()
	}
	if to != w && !s.Word.CompareAndSwap(w, to) {
		return s.advanceAny(policy, step)
	}
	s.queue.shift(n)
	if n.state == waiting {
		wake = n
	}
	n.state = granted
	return wake, true
}

// advanceAny is advance in all cases.
func (s *Sync) advanceAny(policy Policy, step func(uint64) (uint64, bool)) (wake *node, ok bool) {
	last := &wake
	add := func(n *node) { *last, last = n, &n.wake }
	for {
		w := s.Word.Load()
		base, ok := step(w)
		if !ok {
			return wake, false
		}
		k, to := s.admit(base&^queueFlags, policy)
		if to != w && !s.Word.CompareAndSwap(w, to) {
			continue
		}
		for range k {
			n := s.queue.head
			s.queue.shift(n)
			if n.state == waiting {
				add(n)
			}
			n.state = granted
		}
		if n := s.queue.head; n != nil && free(to) && n.state == waiting {
			n.state = awake
			add(n)
		}
		if to&(flagVisible|flagBiased) != flagVisible || !s.table.Load().empty() {
			return wake, true
		}
		step = dropTable
	}
}

// admit returns how many waiters at the head of the queue get the lock if its word becomes w. It
// also returns the word with them as holders. w has no flags about the queue. The guard is held.
func (s *Sync) admit(w uint64, policy Policy) (k int, to uint64) {
	n := s.queue.head
	switch {
	case n == nil:
		return 0, w
	case n.shared && (free(w) || w&flagShared != 0):
		for ; n != nil && n.shared; n = n.next {
			k++
		}
		w = (w | flagShared) + uint64(k)*oneHold
	case free(w) && (policy == FIFO || n.reserved):
		k, w = 1, n.value
		n = n.next
	case free(w):
		return 0, Awake
	}
	if n != nil {
		n.reserved = n.reserved || policy == NonFair && (w&flagShared != 0 || k > 0 && n.overdue())
		w = w&^flagBiased | n.mirror()
	}
	return k, w
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
