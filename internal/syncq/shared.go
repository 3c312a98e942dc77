package syncq

import "github.com/jucgo/locks/internal/park"

// change changes the word by step. It reports false, with nothing done, if step refused the word.
func (s *Sync) change(step func(uint64) (uint64, bool)) bool {
	for {
		w := s.Word.Load()
		to, ok := step(w)
		if !ok || s.Word.CompareAndSwap(w, to) {
			return ok
		}
	}
}

// TryLockShared takes a shared hold unless the lock is held exclusively. It barges, past exclusive
// waiters too.
func (s *Sync) TryLockShared() bool {
	return s.change(func(w uint64) (uint64, bool) { return (w | flagShared) + oneHold, !exclusive(w) })
}

// TryLockSharedInTurn takes a shared hold unless the lock is held exclusively, or others wait that
// a newcomer must not overtake.
func (s *Sync) TryLockSharedInTurn() bool {
	return s.change(func(w uint64) (uint64, bool) { return (w | flagShared) + oneHold, admitsReader(w) })
}

// AcquireShared takes a shared hold, and waits for it until l ends. Under FIFO it overtakes no
// waiter. Under NonFair it overtakes an exclusive waiter at the head of the queue only while that
// one is awake and has no reservation. If l leaves no time to wait, it takes the hold if a newcomer
// may have it now. The outcome is that of Acquire.
func (s *Sync) AcquireShared(p Party, policy Policy, l *park.Limit) Outcome {
	switch {
	case s.TryLockSharedInTurn():
		return Acquired
	case l.None():
		return Ended
	}
	n := newNode(p, true)
	out := Acquired
	if l != nil {
		out = s.wait(n, policy, l)
	} else if queued, guard := s.enqueue(n, policy); queued {
		// This is wait without a limit, in the frame of the caller. A shared waiter does not race.
		n.place.ParkAndUnlock(guard)
	}
	return n.end(out)
}

// TryUnlockShared gives one shared hold back if no waiter has to be told, and reports whether
// it did.
func (s *Sync) TryUnlockShared() bool {
	return s.change(func(w uint64) (uint64, bool) {
		switch {
		case w&flagShared == 0:
			return w, false
		case w >= 2*oneHold:
			return w - oneHold, true
		case w&(queueFlags|flagVisible) == Awake:
			return Awake, true
		}
		return 0, w&(flagQueued|flagVisible) == 0
	})
}

// UnlockShared gives one shared hold back. It reports false, and does nothing, if there is none.
func (s *Sync) UnlockShared(policy Policy) bool {
	return s.TryUnlockShared() || s.guarded(policy, func(w uint64) (uint64, bool) {
		to, ok := drop(w)
		return to, ok && w&flagShared != 0
	})
}

// UnlockExclusive gives the exclusive hold back. It reports false, and does nothing, if there is
// none.
func (s *Sync) UnlockExclusive(policy Policy) bool {
	return s.guarded(policy, func(w uint64) (uint64, bool) { return 0, exclusive(w) })
}

// ShareExclusive makes the exclusive hold a shared one in the word. There is no other holder in
// between.
func (s *Sync) ShareExclusive(policy Policy) {
	s.guarded(policy, func(uint64) (uint64, bool) { return oneHold | flagShared, true })
}
