package syncq

import "fmt"

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
	var prev *node
	k := 0
	for n := s.queue.head; n != nil; prev, n = n, n.next {
		k++
		if n.in != &s.queue || n.prev != prev || n.state.Load() != asleep {
			return fmt.Errorf("node %d of the queue is not in order: %+v", k, n)
		}
	}
	if k != s.queue.len || prev != s.queue.tail {
		return fmt.Errorf("queue of %d has %d nodes", s.queue.len, k)
	}
	return nil
}
