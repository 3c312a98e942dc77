package syncq

import (
	"context"
	"time"

	"github.com/jucgo/locks/internal/park"
)

// TryLockShared takes a shared hold unless the lock is held exclusively. It barges, past exclusive
// waiters too.
func (s *Sync) TryLockShared() bool {
	for {
		w := s.Word.Load()
		if exclusive(w) {
			return false
		}
		if s.Word.CompareAndSwap(w, (w|shared)+one) {
			return true
		}
	}
}

// TryLockSharedInTurn takes a shared hold unless the lock is held exclusively or others wait.
func (s *Sync) TryLockSharedInTurn() bool {
	for {
		w := s.Word.Load()
		if exclusive(w) || w&queued != 0 {
			return false
		}
		if s.Word.CompareAndSwap(w, (w|shared)+one) {
			return true
		}
	}
}

// LockShared takes a shared hold, and waits for it if need be. It does not overtake an
// exclusive waiter at the head of the queue under either policy, and no waiter at all under
// FIFO. Like Lock it reports false only if the wait was refused.
func (s *Sync) LockShared(p Party, policy Policy) bool {
	return s.TryLockSharedInTurn() || s.wait(newNode(p, true), policy, nil) == Acquired
}

// LockSharedFor is LockShared for at most d, and reports whether the hold was taken.
func (s *Sync) LockSharedFor(p Party, policy Policy, d time.Duration) bool {
	switch {
	case s.TryLockSharedInTurn():
		return true
	case d <= 0:
		return s.admitShared(policy)
	}
	return s.wait(newNode(p, true), policy, park.After(d)) == Acquired
}

// LockSharedContext is LockShared until ctx ends. The caller has looked at ctx first. The
// outcome is Acquired, Ended or Refused.
func (s *Sync) LockSharedContext(ctx context.Context, p Party, policy Policy) Outcome {
	if s.TryLockSharedInTurn() {
		return Acquired
	}
	return s.wait(newNode(p, true), policy, park.Until(ctx))
}

// admitShared takes a shared hold if a newcomer may have it now.
func (s *Sync) admitShared(policy Policy) bool {
	n := node{shared: true}
	s.guard.Lock()
	defer s.guard.Unlock()
	for {
		w := s.Word.Load()
		to, ok := s.admissible(&n, w, policy)
		if !ok {
			return false
		}
		if s.Word.CompareAndSwap(w, to) {
			return true
		}
	}
}

// LeaveShared gives one shared hold back if no waiter has to be told, and reports whether it did.
func (s *Sync) LeaveShared() bool {
	for {
		w := s.Word.Load()
		if w&shared == 0 || w < 2*one && w&(queued|visible) != 0 {
			return false
		}
		to, _ := drop(w)
		if s.Word.CompareAndSwap(w, to) {
			return true
		}
	}
}

// UnlockShared gives one shared hold back. It reports false, and does nothing, if there is none.
func (s *Sync) UnlockShared(policy Policy) bool {
	return s.LeaveShared() || s.guarded(policy, func(w uint64) (uint64, bool) {
		if w&shared == 0 {
			return w, false
		}
		return drop(w)
	})
}

// UnlockExclusive gives the exclusive hold back. It reports false, and does nothing, if there is
// none.
func (s *Sync) UnlockExclusive(policy Policy) bool {
	return s.guarded(policy, func(w uint64) (uint64, bool) {
		if !exclusive(w) {
			return w, false
		}
		return drop(w)
	})
}
