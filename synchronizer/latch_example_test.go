package synchronizer_test

import (
	"fmt"

	"github.com/jucgo/locks/synchronizer"
)

// latchRules: the word is 1 once the signal has come. To await it changes nothing, so one signal
// admits every waiter.
type latchRules struct{}

func (latchRules) Acquire(w, _ uint64) (uint64, bool) { return w, w == 1 }
func (latchRules) Release(_, _ uint64) (uint64, bool) { return 1, true }

// BooleanLatch is like a CountDownLatch that one signal opens: the class BooleanLatch in the
// documentation of Java's AbstractQueuedSynchronizer.
type BooleanLatch struct {
	s synchronizer.Sync[latchRules]
}

func (l *BooleanLatch) Await()           { l.s.Acquire(0) }
func (l *BooleanLatch) Signal()          { l.s.Release(0) }
func (l *BooleanLatch) IsSignaled() bool { return l.s.Word() == 1 }

func ExampleSync_booleanLatch() {
	var ready BooleanLatch
	result := 0
	go func() {
		result = 42
		ready.Signal()
	}()
	ready.Await()
	fmt.Println(ready.IsSignaled(), result)
	// Output: true 42
}
