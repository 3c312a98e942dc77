package idioms

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/semaphore"
	"github.com/jucgo/locks/synchronizer"
)

// Semaphore: class Pool { private final Semaphore available = new Semaphore(MAX_AVAILABLE, true); }
type Pool[T any] struct {
	available *semaphore.Weighted
	mu        sync.Mutex // synchronized
	items     []T
}

func NewPool[T any](items ...T) *Pool[T] {
	return &Pool[T]{available: semaphore.NewWeighted(int64(len(items))), items: items}
}

// getItem. The semaphore waits, not the mutex: so an item can be put back meanwhile.
func (p *Pool[T]) GetItem(ctx context.Context) (item T, err error) {
	if err := p.available.Acquire(ctx, 1); err != nil {
		return item, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	last := len(p.items) - 1
	item, p.items = p.items[last], p.items[:last]
	return item, nil
}

func (p *Pool[T]) PutItem(x T) {
	p.mu.Lock()
	p.items = append(p.items, x)
	p.mu.Unlock()
	p.available.Release(1)
}

func TestPoolLendsEachItemToOne(t *testing.T) {
	p := NewPool(new(atomic.Int64), new(atomic.Int64), new(atomic.Int64))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				item, err := p.GetItem(t.Context())
				if err != nil || item.Add(1) != 1 {
					t.Errorf("lent twice, or %v", err)
				}
				item.Add(-1)
				p.PutItem(item)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 3, p.available.Available())
}

// CountDownLatch
type latch struct{ *synchronizer.Sync[countDown] }

type countDown struct{}

func (countDown) Acquire(w, _ uint64) (uint64, bool) { return w, w == 0 }
func (countDown) Release(w, _ uint64) (uint64, bool) { return w - min(w, 1), true }

func newLatch(count uint64) latch { return latch{synchronizer.New(countDown{}, count, locks.FIFO)} }

// CountDownLatch: class Driver, with startSignal and doneSignal
func TestWorkersStartTogetherAndAreAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 5
		startSignal, doneSignal := newLatch(1), newLatch(n)
		var worked atomic.Int64
		for range n {
			go func() { // class Worker
				startSignal.Acquire(0)
				worked.Add(1)
				doneSignal.Release(0)
			}()
		}
		synctest.Wait()
		require.Zero(t, worked.Load())
		startSignal.Release(0)
		doneSignal.Acquire(0)
		require.EqualValues(t, n, worked.Load())
	})
}

// CountDownLatch: class Driver2, which divides a problem into parts
func TestPartsAreAwaitedByOneLatch(t *testing.T) {
	const n = 10
	doneSignal := newLatch(n)
	squares := make([]int, n)
	for i := range n {
		go func() { // class WorkerRunnable
			squares[i] = i * i
			doneSignal.Release(0)
		}()
	}
	doneSignal.Acquire(0)
	require.Equal(t, []int{0, 1, 4, 9, 16, 25, 36, 49, 64, 81}, squares)
}
