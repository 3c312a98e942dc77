package syncq

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// unlocker is a goroutine that unlocks a lock without owners as soon as a waiter has it. Here it
// does so while the next waiter moves to the lock's queue.
type unlocker struct{}

func (unlocker) Begin(e Entry) bool           { return e.Enqueue() }
func (unlocker) Watch(*Sync, *Kind)           {}
func (unlocker) Ended(int64)                  {}
func (unlocker) Acquired(*Sync, *Kind, int64) {}
func (unlocker) Queued(s *Sync, _ int64) bool {
	s.Word.CompareAndSwap(Taken, 0) // the fast path
	return false
}

func TestBroadcastWakesWaiterWhoseHoldEndsAtOnce(t *testing.T) {
	for _, policy := range []Policy{NonFair, FIFO} {
		s := NewReadWrite(policy)
		c := NewCond(&s.Sync, policy)
		var waiters [3]Waiter
		for i := range waiters {
			waiters[i] = c.NewWaiter(Anonymous(int64(i+1)).Of(&Kind{}), nil)
			waiters[i].Enqueue(false)
		}
		old := watcher.Load()
		SetWatcher(unlocker{})
		moved := c.Broadcast()
		watcher.Store(old)
		require.Equal(t, len(waiters), moved)
		for s.Unlock() {
		}
		for i, w := range waiters {
			back := run(w.Await)
			require.True(t, back.result(t), "waiter %d of %d", i+1, len(waiters))
		}
		idle(t, &s)
	}
}
