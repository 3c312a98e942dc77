package synchronizer_test

import (
	"fmt"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/synchronizer"
)

// boundedRules: the word is a count from 0 to most. The field never changes.
type boundedRules struct{ most uint64 }

func (r boundedRules) Acquire(w, n uint64) (uint64, bool) { return w + n, r.most-w >= n }
func (boundedRules) Release(w, n uint64) (uint64, bool)   { return w - n, w >= n }

// Counter counts what is under way, such as the bytes that were sent without an answer. Up waits
// while there would be too many.
type Counter struct {
	s *synchronizer.Sync[boundedRules]
}

func NewCounter(most uint64) Counter {
	return Counter{synchronizer.New(boundedRules{most}, 0, locks.FIFO)}
}

func (c Counter) Up(n uint64)        { c.s.Acquire(n) }
func (c Counter) Down(n uint64) bool { return c.s.Release(n) }
func (c Counter) Count() uint64      { return c.s.Word() }

func ExampleSync_boundedCounter() {
	c := NewCounter(1000)
	for range 5 {
		c.Up(400) // waits for an answer from the third one on
		go c.Down(400)
	}
	c.Up(1000) // waits for all answers
	fmt.Println(c.Count(), c.Down(2000))
	// Output: 1000 false
}
