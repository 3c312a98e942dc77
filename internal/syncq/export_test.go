package syncq

import (
	"fmt"
	"math"
)

// Verify returns what is wrong with s, which nobody is using at the moment: with
// everybody parked, its word must be a legal one and agree with its queue.
func (s *Sync) Verify() error {
	s.guard.Lock()
	defer s.guard.Unlock()
	w := s.Word.Load()
	switch {
	case (w&queued != 0) != (s.queue.len > 0):
		return fmt.Errorf("word %#x, but %d in the queue", w, s.queue.len)
	case free(w) && w != 0:
		return fmt.Errorf("word %#x: free, with flags, and nobody comes", w)
	case w&(woken|handoff) != 0 && w&queued == 0:
		return fmt.Errorf("word %#x speaks of a queue that is empty", w)
	}
	if err := s.verifyTable(w); err != nil {
		return err
	}
	var prev *node
	k := 0
	for n := s.queue.head; n != nil; prev, n = n, n.next {
		k++
		if n.in != &s.queue || s.queue.before(n) != prev || n.state.Load() != asleep {
			return fmt.Errorf("node %d of the queue is not in order: %+v", k, n)
		}
	}
	if k != s.queue.len || prev != s.queue.tail {
		return fmt.Errorf("queue of %d has %d nodes", s.queue.len, k)
	}
	return nil
}

func (s *Sync) verifyTable(w uint64) error {
	t := s.readers.Load()
	inTable := t != nil && !t.empty()
	switch {
	case w&biased != 0 && (w&visible == 0 || w&queued != 0):
		return fmt.Errorf("word %#x is biased, which it must not be", w)
	case w&visible != 0 && (w&shared == 0 || t == nil):
		return fmt.Errorf("word %#x has a hold of the table, but no table, or is not shared", w)
	case inTable && w&visible == 0:
		return fmt.Errorf("word %#x has no hold for those in the table", w)
	case w&(visible|biased) == visible && !inTable:
		return fmt.Errorf("word %#x has a hold for a table that is empty, and nobody comes", w)
	case s.covered.load() > 0 && s.Owner() == 0:
		return fmt.Errorf("word %#x: shared holds of an exclusive holder that there is not", w)
	}
	return nil
}

// exit is what a lock does to give back the slot of b.
func exit(s *Sync, b *Bucket, policy Policy) {
	if b.Exit(); !s.Biased() {
		s.Left(policy)
	}
}

// WakeEarly has the next waiter of s, a FIFO one, wake up early from now on, and spin for longer if long, whether that pays or not.
func (s *Sync) WakeEarly(long bool) {
	s.guard.Lock()
	defer s.guard.Unlock()
	s.pace = pace{ahead: true, phase: decided, since: now(), plain: math.MaxUint32}
	if long {
		s.pace.calm = calmFor
	}
}
