package syncq

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/sched"
)

// Sync is the synchronizer of one lock: its state word, its queue, and the hand-off between its
// holders. The zero Sync is free. It must not be copied.
//
// Its methods trust their callers: only a holder releases. A Sync has one exclusive holder at a
// time, or several shared holders. A Sync does not support re-entry: see [Reentrant] and
// [ReadWrite].
type Sync struct {
	Word

	guard sync.Mutex                // held for a bounded number of instructions
	queue list                      // guarded
	table atomic.Pointer[readTable] // who reads, in a ReadWrite; the table has a hold of its own

	// Shares is for one layer above the engine, package shares. The first value set never changes.
	Shares atomic.Pointer[any]
}

// Policy is the order in which a Sync admits.
type Policy bool

const (
	// NonFair gives a free lock to the first party that asks, ahead of the waiters.
	NonFair Policy = false
	// FIFO makes the longest waiter the holder when the lock is released.
	FIFO Policy = true
)

// New returns a Sync that admits by policy. A lock whose zero value must be FIFO says so by its
// parties instead: see [Party.FIFO].
func New(policy Policy) Sync {
	if policy == FIFO {
		return Sync{queue: list{marks: newMark(inOrder)}}
	}
	return Sync{}
}

// Policy returns the policy of the lock. A zero Sync takes the policy of its first waiter or
// condition.
func (s *Sync) Policy() Policy { return s.queue.policy() }

// Acquire takes the lock exclusively, and waits for it until l ends. If l leaves no time to wait,
// Acquire still takes a lock that is free and, under FIFO, has an empty queue. The outcome is
// Acquired, Ended or, if the lock's [Kind] allows a refusal, Refused. If l is a context, the caller
// has checked first that the context has not ended.
func (s *Sync) Acquire(p Party, l *park.Limit) Outcome {
	switch {
	case s.TryLock(p) || s.TryLockUnread(p):
		return Acquired
	case l.None():
		return Ended
	case p.policy == NonFair && s.queue.policy() == NonFair && s.Spin(p):
		return Acquired
	}
	n := s.newNode(p, false)
	out := Acquired
	if l != nil {
		out = n.wait(l)
	} else {
		// This is wait without a limit, in the frame of the caller.
		for queued, guard := n.enqueue(); queued; guard = nil {
			n.place.ParkAndUnlock(guard)
			queued = n.policy == NonFair && !n.compete()
		}
	}
	return n.end(out)
}

// Unlock releases one hold, exclusive or shared. It reports false, and does nothing, if the lock is
// free. Unlock may read the policy without the guard: it has seen flagQueued, which is set after
// the policy.
func (s *Sync) Unlock() bool {
	for {
		w := s.Word.Load()
		switch {
		case free(w):
			return false
		case w&flagQueued == 0 || w&flagShared != 0 && w >= 2*oneHold:
			if to, _ := drop(w); s.Word.CompareAndSwap(w, to) {
				return true
			}
		case s.queue.policy() == FIFO:
			return s.guarded(drop)
		case w&flagReserved != 0:
			return s.handOver()
		case s.Word.CompareAndSwap(w, Awake):
			// The lock is free before a waiter is awake: a goroutine that runs may have it.
			if w&flagWoken == 0 {
				s.guarded(keep)
			}
			return true
		}
	}
}

// handOver is guarded(drop) of a lock that is reserved (NonFair). If it hands the lock to a writer
// that sleeps, it yields its processor. Otherwise the releasing goroutine would go on until it
// wants the lock again, and park. The processor of the new holder would meanwhile wake another
// processor for nothing.
//
// handOver does not yield to a waiter of a broadcast or behind readers, since such hand-overs
// follow each other. Nor does it yield to a writer in a lock that goroutines have read.
//
// Nor does it yield to readers that it sends. Readers that go on for a whole time slice would keep a
// writer that writes in a loop from its processor: a write took 100 ms.
func (s *Sync) handOver() bool {
	s.guard.Lock()
	n := s.queue.head
	yields := n != nil && !n.shared && n.since != due && n.state == waiting &&
		s.Word.Load()&flagShared == 0 && s.table.Load() == nil
	wake, ok := s.advance(drop)
	s.guard.Unlock()
	unpark(wake)
	if yields {
		runtime.Gosched()
	}
	return ok
}

// guarded is advance with the guard taken and the nodes unparked.
func (s *Sync) guarded(next step) bool {
	s.guard.Lock()
	wake, ok := s.advance(next)
	s.guard.Unlock()
	unpark(wake)
	return ok
}

// AcquireShared takes a shared hold, and waits for it until l ends. Under FIFO it overtakes no
// waiter. Under NonFair it overtakes an exclusive waiter at the head of the queue only while that
// waiter is awake without a reservation. If a release sends the caller, the caller asks again. If l
// leaves no time to wait, AcquireShared takes the hold if a newcomer may have the hold now. The
// outcome is as for Acquire.
func (s *Sync) AcquireShared(p Party, l *park.Limit) Outcome {
	switch {
	case s.TryLockSharedInTurn():
		return Acquired
	case l.None():
		return Ended
	}
	n := s.newNode(p, true)
	n.sendable = n.policy == NonFair
	out := Acquired
	if l != nil {
		out = n.wait(l)
	} else {
		// This is wait without a limit, in the frame of the caller.
		for queued, guard := n.enqueue(); queued; {
			if n.place.ParkAndUnlock(guard); !n.sendable {
				break // it was granted the lock
			}
			queued, guard = n.askAgain()
		}
	}
	return n.end(out)
}

// TryLockUnread takes a lock exclusively that the read table holds, but that nobody reads. It
// barges.
func (s *Sync) TryLockUnread(p Party) bool {
	if s.Word.Load()&flagVisible == 0 || !s.table.Load().empty() {
		return false
	}
	s.guarded(revoke)
	return s.TryLock(p)
}

// UnlockShared gives one shared hold back. If the lock is not shared, UnlockShared does nothing,
// and reports false.
func (s *Sync) UnlockShared() bool {
	return s.TryUnlockShared() || s.guarded(dropShared)
}

// ShareExclusive makes the exclusive hold a shared hold in the word, in one step: another party
// cannot hold the lock in between.
func (s *Sync) ShareExclusive() {
	s.guarded(func(uint64) (uint64, bool) { return oneHold | flagShared, true })
}

// advance changes the word by next, and does everything that follows from the change: it is the
// only place where waiters are admitted or woken. The guard is held. It returns the nodes to
// unpark, a group of them once the guard is free, and false, with nothing done, if next refused the
// word.
//
// It is called after, or with, every change that may concern a waiter. Such a change is the end of
// a hold, a downgrade, a new first node of the queue, or a reader that leaves the table. A node
// that joins behind others, or leaves from there, changes nothing. The word mirrors the first
// waiter, and the waiters behind do not overtake the first. On return these hold, and go on to hold
// until the guard is taken again, but for the word of a release under way:
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
//	   the last of these readers is about to call ReadersLeft.
//
// No wake-up is lost. Take a waiter that sleeps in the queue. By F and N the lock is held, or the
// first waiter is awake, or a release is about to call advance. If the lock is held, by Q its
// release calls advance: under FIFO and with flagReserved to admit the first waiter, else to wake
// it. An awake waiter calls compete. If the waiter wins, the lock is held. If the waiter finds the
// word held, it clears flagWoken by a swap of that word, and sleeps again. If the waiter leaves,
// cancel calls advance. If reserveOverdue has replaced flagWoken by flagReserved on a held word,
// the release of the word calls advance, which admits the waiter, asleep or awake. A reader that is
// sent leaves the queue with all other waiters, while the word is free and without flags. The
// unpark of the reader follows, and the reader asks again: no other waiter depends on this reader.
// Parties that take and free the lock while flagWoken is set tell nobody, readers included
// (TryUnlockShared). If the table holds the lock, by T its last reader calls advance.
//
// The commonest case comes first, which makes a hand-off a tenth cheaper: the last hold ends, and
// the first waiter gets the lock exclusively.
func (s *Sync) advance(next step) (wake *node, ok bool) {
	w, n := s.Word.Load(), s.queue.head
	if n == nil || n.shared || s.queue.policy() == NonFair && !n.reserved {
		return s.advanceAny(next)
	}
	if base, ok := next(w); !ok || base&^queueFlags != 0 {
		return s.advanceAny(next)
	}
	to := n.value
	if second := n.next; second != nil {
		if s.queue.policy() == NonFair {
			second.reserved = second.overdue()
		}
		to |= second.mirror()
	}
	if to != w && !s.Word.CompareAndSwap(w, to) {
		return s.advanceAny(next)
	}
	s.queue.shift(n)
	if n.state == waiting {
		wake = n
	}
	n.state = granted
	return wake, true
}

// advanceAny is advance in all cases.
func (s *Sync) advanceAny(next step) (wake *node, ok bool) {
	last := &wake
	add := func(n *node) { *last, last = n, &n.wake }
	for {
		w := s.Word.Load()
		base, ok := next(w)
		if !ok {
			return wake, false
		}
		k, becomes, to := s.admit(base &^ queueFlags)
		if to != w && !s.Word.CompareAndSwap(w, to) {
			continue
		}
		for range k {
			n := s.queue.head
			s.queue.shift(n)
			if n.state == waiting {
				add(n)
			}
			n.state = becomes
		}
		if n := s.queue.head; n != nil && free(to) && n.state == waiting {
			n.state = awake
			add(n)
		}
		if to&(flagVisible|flagBiased) != flagVisible || !s.table.Load().empty() {
			return wake, true
		}
		next = dropTable
	}
}

// admit returns how many waiters leave the head of the queue if the word becomes w, and their new
// state, granted or sent. It also returns the word, with the granted waiters as holders. The caller
// has cleared the flags about the queue in w. The guard is held.
func (s *Sync) admit(w uint64) (k int, becomes state, to uint64) {
	n := s.queue.head
	switch {
	case n == nil:
		return 0, granted, w
	case free(w) && s.sends():
		return int(s.queue.len), sent, w
	case n.shared && (free(w) || w&flagShared != 0):
		for ; n != nil && n.shared; n = n.next {
			k++
		}
		w = (w | flagShared) + uint64(k)*oneHold
	case free(w) && (s.queue.policy() == FIFO || n.reserved):
		k, w = 1, n.value
		n = n.next
	case free(w):
		return 0, granted, Awake
	}
	if n != nil {
		n.reserved = n.reserved || s.queue.policy() == NonFair && (w&flagShared != 0 || k > 0 && n.overdue())
		w = w&^flagBiased | n.mirror()
	}
	return k, granted, w
}

// sends reports whether a release that frees the lock sends all waiters (NonFair). A release sends
// readers only, and none that was sent in vain too often. See the page of the package for why no
// reader is sent while a writer waits. The guard is held.
//
// A lone processor gains nothing. The releasing goroutine goes on, and a writer that locks again
// soon would have the lock until the end of its time slice. Under exploration no reader is sent,
// because the schedules in which the reader comes later show the same.
func (s *Sync) sends() bool {
	if t := s.table.Load(); t == nil || t.alone || sched.On && sched.Explored() {
		return false
	}
	for n := s.queue.head; n != nil; n = n.next {
		if !n.sendable {
			return false
		}
	}
	return true
}
