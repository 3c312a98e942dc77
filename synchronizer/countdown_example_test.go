package synchronizer_test

import (
	"fmt"
	"sync/atomic"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/synchronizer"
)

// countDownRules: the word is the count. A count of 0 stays 0.
type countDownRules struct{}

func (countDownRules) Acquire(w, _ uint64) (uint64, bool) { return w, w == 0 }
func (countDownRules) Release(w, n uint64) (uint64, bool) { return w - min(w, n), true }

// CountDownLatch lets goroutines wait until others have counted down to 0. Java's CountDownLatch.
type CountDownLatch struct {
	s *synchronizer.Sync[countDownRules]
}

func NewCountDownLatch(count uint64) CountDownLatch {
	return CountDownLatch{synchronizer.New(countDownRules{}, count, locks.FIFO)}
}

func (l CountDownLatch) CountDown()    { l.s.Release(1) }
func (l CountDownLatch) Await()        { l.s.Acquire(0) }
func (l CountDownLatch) Count() uint64 { return l.s.Word() }

func ExampleSync_countDownLatch() {
	const workers = 3
	done := NewCountDownLatch(workers)
	var sum atomic.Int64
	for i := range int64(workers) {
		go func() {
			sum.Add(i)
			done.CountDown()
		}()
	}
	done.Await()
	fmt.Println(done.Count(), sum.Load())
	// Output: 0 3
}
