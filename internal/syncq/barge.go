package syncq

// TryLock takes the lock exclusively if it is free. It barges.
func (s *Sync) TryLock(p Party) bool {
	for {
		// The try is over if the word is not free, or if the swap takes it.
		w := s.Word.Load()
		if !free(w) {
			return false
		}
		if s.Word.CompareAndSwap(w, w|p.value) {
			if w != 0 {
				s.Barged()
			}
			return true
		}
	}
}

// Barged follows each exclusive acquisition that overtakes an awake first waiter (NonFair).
//
// Two goroutines can pass the lock to each other without ever finding it held. The first waiter is
// awake then, but gets a processor only when Go ends a time slice, and all other waiters wait
// behind it. So each overtaking holder adds one to the queue's field barged, and at every 64th
// looks whether the first waiter is overdue. Only the holder changes barged. If another goroutine
// releases the lock, two holders may add to barged at once, and one of the two additions is lost.
//
//go:noinline // so that the fast paths around it stay short
func (s *Sync) Barged() {
	n := s.queue.barged.load() + 1
	s.queue.barged.set(n)
	if n%BargedRounds == 0 {
		s.reserveOverdue()
	}
}

// BargedRounds is how many acquisitions past an awake waiter come before a look at the clock, which
// takes as long as several acquisitions. So many acquisitions with short sections take some 20 µs.
const BargedRounds = 64

// Barges has the field barged and the mark crowded of a lock with a queue of its own.
type Barges struct{ n, crowd mark }

// Count counts another acquisition past an awake waiter, or another release, and reports true once
// in so many rounds, a power of two. Of two calls at once, one may not count.
func (b *Barges) Count(rounds uint8) bool {
	n := b.n.load() + 1
	b.n.set(n)
	return n&(rounds-1) == 0
}

// Crowd notes that more than two parties want the lock. The guard of the lock's queue is held.
func (b *Barges) Crowd() { b.crowd.set(1) }

// Crowded reports whether Crowd was called.
func (b *Barges) Crowded() bool { return b.crowd.load() != 0 }

// reserveOverdue reserves the lock, which is held, for the first waiter if that is awake and
// overdue. The next release then hands the lock over, even if the waiter still needs a processor.
// If the guard is in use, reserveOverdue does nothing. If the word becomes free meanwhile,
// reserveOverdue reserves nothing, because no word may be free and reserved: the waiter can take
// the free lock.
func (s *Sync) reserveOverdue() {
	if !s.guard.TryLock() {
		return
	}
	defer s.guard.Unlock()
	n := s.queue.head
	if n == nil || n.state != awake || n.reserved || !n.overdue() {
		return
	}
	for w := s.Word.Load(); !free(w); w = s.Word.Load() {
		n.reserved = true
		if s.Word.CompareAndSwap(w, w&^queueFlags|n.mirror()) {
			return
		}
		n.reserved = false
	}
}
