package syncq

import (
	"context"
	"math"
)

// MaxHolds is how many holds an exclusive holder may have at a time.
const MaxHolds = math.MaxInt32

// An explicit owner, a negative one, may act in several goroutines at once. They share its holds:
// while it holds the lock, each of them may enter again, and it is free after
// as many releases, whoever makes them. So whatever looks at such an owner's holds and then
// changes them, or the word, does so with the guard held; a goroutine that owns for itself needs no
// guard for that.
//
// Several goroutines of one owner may also wait at the same time. They are apart in the queue,
// but when one of them gets the lock all have it: it lets the others in (siblings), and
// one that comes to the queue after that finds its owner to be the holder (enqueueGuarded). With a shared hold
// of their owner those get in that wait for another one; an exclusive one would be an upgrade.

func explicit(owner int64) bool { return owner < 0 }

// Reenter counts one more hold of owner if it holds the lock exclusively. It reports whether it
// does, and whether the hold could be counted.
func (s *Sync) Reenter(owner int64) (held, counted bool) {
	if explicit(owner) {
		s.guard.Lock()
		defer s.guard.Unlock()
	}
	if !s.HeldBy(owner) {
		return false, false
	}
	if s.Holds >= MaxHolds-1 {
		return true, false
	}
	s.Holds++
	return true, true
}

// Leave gives one exclusive hold of owner back, and the lock with the last one. It reports
// false, and does nothing, if owner has none.
func (s *Sync) Leave(owner int64, policy Policy) bool {
	if !explicit(owner) {
		switch {
		case !s.HeldBy(owner):
			return false
		case s.Holds > 0:
			s.Holds--
		default:
			s.Unlock(policy)
		}
		return true
	}
	s.guard.Lock()
	held := s.HeldBy(owner)
	var next *node
	switch {
	case !held:
	case s.Holds > 0:
		s.Holds--
	default:
		next = s.release(policy, 0)
	}
	s.guard.Unlock()
	unpark(next)
	return held
}

// LockOwned is LockContext for an owner which did not hold the lock when it was last looked at.
func (s *Sync) LockOwned(ctx context.Context, p Party, policy Policy) bool {
	if !s.LockContext(ctx, p, policy) {
		return false
	}
	if explicit(p.who) {
		s.siblings(p.who)
	}
	return true
}

// TryLockOwned is TryLock for owner, which did not hold the lock when it was last looked at.
func (s *Sync) TryLockOwned(owner int64) bool {
	if !s.TryLock(Owned(owner)) {
		return false
	}
	if explicit(owner) {
		s.siblings(owner)
	}
	return true
}

// siblings lets the waiters of the explicit owner in, which has got the lock.
//
// With the first in the queue gone, what it was in the way of happens to those behind it: shared waiters of others, or of
// the owner, may be let in as a group, if a shared hold was taken while the first was on its way to a free lock. Then it goes on
// with whoever is first now.
func (s *Sync) siblings(owner int64) {
	if s.Word.Load()&queued == 0 {
		return
	}
	s.guard.Lock()
	var wake, next *node
	for n := s.queue.head; n != nil; n = next {
		next = n.next
		if n.who != owner || !s.admitSibling(n) {
			continue // or it is no longer the owner's: another goroutine may have released it already
		}
		first := s.queue.head == n
		others := s.cancel(n)
		if first {
			next = s.queue.head
		}
		if n.state.Swap(granted) == asleep {
			n.wake, wake = wake, n
		}
		for others != nil {
			n, others = others, others.wake
			n.wake, wake = wake, n
		}
	}
	s.guard.Unlock()
	unpark(wake)
}

// admitSibling counts one more hold, of the kind that n wants, of n's owner, which is explicit, and reports whether it could: if it has
// a hold that allows for it. The guard is held.
func (s *Sync) admitSibling(n *node) bool {
	switch held := s.HeldBy(n.who); {
	case n.shared:
		return s.share(n.who)
	case held && s.Holds < MaxHolds-1:
		s.Holds++
		return true
	}
	return false
}
