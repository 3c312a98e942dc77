package syncq

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/internal/goid"
)

// Sync is the synchronizer of one lock: its state and its queue. The zero
// Sync is free. It must not be copied.
//
// Its methods trust their callers: only a holder releases. A lock passes the same
// policy in every call.
type Sync struct {
	// Word is the state. Locks touch it only to take or free the lock in their fast paths,
	// by compare-and-swap between 0 and the holder's word without flags, and leave everything
	// else to the methods. It is exported because those fast paths must be inlined.
	Word atomic.Uint64

	// Holds is for the exclusive holder to count re-entries in, beyond the first
	// hold. Nobody else may touch it. A condition wait saves and restores it. It has room for more than MaxHolds, since several
	// waits of one explicit owner may each bring theirs back.
	Holds int64

	// covered counts the shared holds of the exclusive holder. See readers.go.
	covered count

	listed bool   // in the registry; guarded
	early  uint16 // how many were roused early, modulo breathe; guarded

	guard   guard
	queue   list                    // guarded
	pace    pace                    // guarded
	readers atomic.Pointer[readers] // nil until somebody reads through it
	kind    atomic.Pointer[Kind]    // set once
}

// Policy is the order in which a Sync admits.
type Policy bool

const (
	// NonFair lets whoever comes first have a free lock, bargers included.
	NonFair Policy = false
	// FIFO makes the longest waiter the holder when the lock is released.
	FIFO Policy = true
)

// Party is who acquires: its value in the state word, and the identity that
// inspection shows.
type Party struct {
	value uint64
	who   int64
	kind  *Kind
}

// Owned returns the party of a lock that knows its owner, which must not be 0 and
// must fit, with its sign, in 58 bits.
func Owned(owner int64) Party { return Party{value: value(owner), who: owner} }

// Taken is the word of a lock that belongs to no one while it is held exclusively and
// nobody waits.
const Taken = one

// Anonymous returns the party of a lock that belongs to no one. Who waits is for
// inspection only.
func Anonymous(who int64) Party { return Party{value: Taken, who: who} }

// A first waiter of a NonFair lock that loses the race to bargers after it waited for
// maxBarging, or maxLost times, is handed the lock by the next release: the bound on barging.
const (
	maxBarging = time.Millisecond
	maxLost    = 16
)

// TryLock takes the lock exclusively if it is free. It barges.
func (s *Sync) TryLock(p Party) bool {
	for {
		w := s.Word.Load()
		if !free(w) {
			return false
		}
		if s.Word.CompareAndSwap(w, w|p.value) {
			return true
		}
	}
}

// Lock takes the lock exclusively, and waits for it if need be. A party without an identity
// gets the goroutine's if it has to wait. It reports false only if the wait was refused, which
// the lock's [Kind] must allow.
//
// It does what wait does, but in one frame: a goroutine that comes back from a
// switch pays some 5 ns for each frame it returns through, since the processor
// has predicted the returns of another. That was a quarter of a hand-over.
func (s *Sync) Lock(p Party, policy Policy) bool {
	if s.TryLock(p) || s.spin(p, policy) {
		return true
	}
	if p.who == 0 {
		p.who = goid.Get()
	}
	n := newNode(p, false)
	n.patient = true
	if s.enqueue(n, policy) {
		n.place.Wait()
		for !s.mine(n, policy) {
			n.place.Wait()
		}
	}
	ok := !n.refused
	n.recycle()
	return ok
}

// LockFor is Lock for at most d, and reports whether the lock was taken; it was not if the
// wait was refused. With
// nothing to wait, d <= 0, it still takes a lock that is free and, under FIFO,
// for which nobody waits.
func (s *Sync) LockFor(p Party, policy Policy, d time.Duration) bool {
	if s.TryLock(p) {
		return true
	}
	if d <= 0 {
		return false
	}
	if s.spin(p, policy) {
		return true
	}
	return s.waitLimited(newNode(p, false), policy, after(d))
}

// LockContext is Lock until ctx ends, and reports whether the lock was taken. The
// caller has looked at ctx first. If it was not taken and ctx has not ended, the wait was refused.
func (s *Sync) LockContext(ctx context.Context, p Party, policy Policy) bool {
	if ctx.Done() == nil {
		return s.Lock(p, policy)
	}
	if s.TryLock(p) || s.spin(p, policy) {
		return true
	}
	return s.waitLimited(newNode(p, false), policy, until(ctx))
}

// TryLockShared takes a shared hold unless the lock is held exclusively. It
// barges, past writers too.
func (s *Sync) TryLockShared() bool {
	for {
		w := s.Word.Load()
		if !free(w) && w&shared == 0 {
			return false
		}
		if s.Word.CompareAndSwap(w, (w|shared)+one) {
			return true
		}
	}
}

// enterShared takes a shared hold if nobody waits.
func (s *Sync) enterShared() bool {
	for {
		w := s.Word.Load()
		if w != 0 && w&(shared|queued) != shared {
			return false
		}
		if s.Word.CompareAndSwap(w, (w|shared)+one) {
			return true
		}
	}
}

// LockShared takes a shared hold, and waits for it if need be. It does not overtake an
// exclusive waiter at the head of the queue under either policy, and nobody
// at all under FIFO. Like Lock it reports false only if the wait was refused.
func (s *Sync) LockShared(who int64, policy Policy) bool {
	return s.enterShared() || s.wait(newNode(Party{who: who}, true), policy)
}

// LockSharedFor is LockShared for at most d, and reports whether the hold was taken.
func (s *Sync) LockSharedFor(who int64, policy Policy, d time.Duration) bool {
	if s.enterShared() {
		return true
	}
	if d <= 0 {
		return s.admitShared(policy)
	}
	return s.waitLimited(newNode(Party{who: who}, true), policy, after(d))
}

// LockSharedContext is LockShared until ctx ends, and reports whether the hold was
// taken. The caller has looked at ctx first.
func (s *Sync) LockSharedContext(ctx context.Context, who int64, policy Policy) bool {
	if ctx.Done() == nil {
		return s.LockShared(who, policy)
	}
	return s.enterShared() || s.waitLimited(newNode(Party{who: who}, true), policy, until(ctx))
}

// Unlock releases one hold, exclusive or shared. It reports false, and does nothing, if
// the lock is free.
func (s *Sync) Unlock(policy Policy) bool {
	for {
		w := s.Word.Load()
		var to uint64
		switch {
		case free(w):
			return false
		case w&shared != 0 && w >= 2*one:
			to = w - one
		case w&queued == 0:
			to = 0
		case policy == FIFO || w&handoff != 0 || s.readers.Load() != nil: // release decides
			s.guard.Lock()
			if free(s.Word.Load()) { // an unlock too many of two found the other's hold, which is over
				s.guard.Unlock()
				return false
			}
			n := s.release(policy, 0)
			yield := policy == NonFair && n != nil && (w&handoff != 0 && n.since != due || n.shared)
			next := s.ahead(policy)
			s.guard.Unlock()
			if next != nil {
				// First, because who is readied last runs as soon as this goroutine sleeps, and
				// other processors hardly get it before.
				next.place.Unpark()
			}
			unpark(n)
			if yield {
				// Whoever is handed the lock gets the processor with it. Else this goroutine would
				// run on, and soon wait for those who have the lock but do not run: the starved,
				// or a group of readers.
				runtime.Gosched()
			}
			return true
		default:
			// Frees the lock before it wakes anybody, so that whoever runs already
			// may have it meanwhile.
			to = queued | woken
		}
		if s.Word.CompareAndSwap(w, to) {
			if to == queued|woken && w&woken == 0 {
				s.guard.Lock()
				n := s.rouse()
				s.guard.Unlock()
				unpark(n)
			}
			return true
		}
	}
}

// Downgrade turns an exclusive hold into a shared one. No exclusive waiter comes in
// between; the shared ones at the head of the queue are let in.
func (s *Sync) Downgrade() {
	s.guard.Lock()
	defer s.guard.Unlock()
	for {
		w := s.Word.Load()
		if s.Word.CompareAndSwap(w, w&(flags&^handoff)|shared|one) {
			break
		}
	}
	unpark(s.extend())
}

// LockOrReenter takes a lock that is free and for which nobody waits, or counts one more
// hold if owner has it already. It may fail in other cases.
func (s *Sync) LockOrReenter(owner int64) bool {
	w := s.Word.Load()
	if w == 0 {
		return s.Word.CompareAndSwap(0, value(owner))
	}
	if w>>shift == value(owner)>>shift && w&shared == 0 && s.Holds < MaxHolds-1 {
		s.Holds++
		return true
	}
	return false
}

// LeaveOrUnlock gives one hold of owner back, if it has the lock and, with the last
// hold, nobody waits. Else it does nothing.
func (s *Sync) LeaveOrUnlock(owner int64) bool {
	w := s.Word.Load()
	if w&^(flags&^shared) != value(owner) {
		return false
	}
	if s.Holds > 0 {
		s.Holds--
		return true
	}
	return s.Word.CompareAndSwap(value(owner), 0)
}
