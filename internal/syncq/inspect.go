package syncq

// Any goroutine may inspect a lock at any time. The answer may be out of date when it arrives.

// Len returns the number of parties that wait for the lock.
func (s *Sync) Len() int {
	s.guard.Lock()
	defer s.guard.Unlock()
	return int(s.queue.len)
}

// Waiters returns the parties that wait for the lock, longest wait first.
func (s *Sync) Waiters() []int64 { return s.queue.owners(&s.guard) }

// WaitersFor returns the parties that wait for a shared hold, or for an exclusive one, longest wait
// first.
func (s *Sync) WaitersFor(shared bool) (who []int64) {
	s.queue.each(&s.guard, func(n *node) {
		if n.shared == shared {
			who = append(who, n.who)
		}
	})
	return who
}

// Waits reports whether who waits for the lock.
func (s *Sync) Waits(who int64) (waits bool) {
	s.queue.each(&s.guard, func(n *node) { waits = waits || n.who == who })
	return waits
}

// EachReader calls visit for the goroutines that have shared holds, except for the exclusive
// holder: see [ReadWrite.WriterReads].
func (s *Sync) EachReader(visit func(o int64, holds int)) {
	if t := s.table.Load(); t != nil {
		t.each(visit)
	}
}
