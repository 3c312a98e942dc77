package synchronizer_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/synchronizer"
)

// permitRules: the word is the number of free permits. The field never changes.
type permitRules struct{ size uint64 }

func (permitRules) Acquire(free, n uint64) (uint64, bool)   { return free - n, free >= n }
func (r permitRules) Release(free, n uint64) (uint64, bool) { return free + n, r.size-free >= n }

// Semaphore has permits, of which an acquisition takes several at once. Package semaphore has one
// that can do more.
type Semaphore struct {
	s *synchronizer.Sync[permitRules]
}

func NewSemaphore(size uint64, p locks.Policy) Semaphore {
	return Semaphore{synchronizer.New(permitRules{size}, size, p)}
}

func (s Semaphore) Acquire(ctx context.Context, n uint64) error { return s.s.AcquireContext(ctx, n) }
func (s Semaphore) Release(n uint64) bool                       { return s.s.Release(n) }

func ExampleSync_semaphore() {
	s := NewSemaphore(3, locks.FIFO)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	fmt.Println(s.Acquire(ctx, 2), s.Acquire(ctx, 2) != nil)
	fmt.Println(s.Release(2), s.Release(2))
	// Output:
	// <nil> true
	// true false
}
