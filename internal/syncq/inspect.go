package syncq

// Inspection is for anybody, at any time; the answer may be out of date when it arrives.

// Held reports whether anybody holds the lock, exclusively or shared.
func (s *Sync) Held() bool { return !free(s.Word.Load()) }

// HeldBy reports whether owner holds the lock exclusively. To owner itself the answer is exact.
func (s *Sync) HeldBy(owner int64) bool { return Names(s.Word.Load(), owner) }

// Owner returns the exclusive holder, or 0.
func (s *Sync) Owner() int64 {
	w := s.Word.Load()
	if w&flagShared != 0 {
		return 0
	}
	return int64(w) >> flagBits
}

// Shared returns the number of shared holds.
func (s *Sync) Shared() int {
	w := s.Word.Load()
	if w&flagShared == 0 {
		return 0
	}
	return int(w >> flagBits)
}

// HasQueued reports whether anybody waits for the lock.
func (s *Sync) HasQueued() bool { return s.Word.Load()&flagQueued != 0 }

// Len returns the number of parties that wait for the lock.
func (s *Sync) Len() int {
	s.guard.Lock()
	defer s.guard.Unlock()
	return int(s.queue.len)
}

// Waiters returns the parties that wait for the lock, longest wait first.
func (s *Sync) Waiters() []int64 { return s.owners(&s.queue) }

// Waits reports whether who waits for the lock.
func (s *Sync) Waits(who int64) (waits bool) {
	s.each(&s.queue, func(n *node) { waits = waits || n.who == who })
	return waits
}
