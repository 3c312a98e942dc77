package semaphore

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/test/testbed"
)

// stop has the queue of s, in which a goroutine waits, stand still until goOn is called.
func stop(s *Weighted) (goOn func()) {
	stopped, free, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	stops := sync.OnceFunc(func() { close(stopped) })
	go func() {
		defer close(done)
		s.sync.Refuse(func(uint64) bool { // which is called with the guard held
			stops()
			<-free
			return false
		})
	}()
	<-stopped
	return func() {
		close(free)
		<-done
	}
}

// A caller that has seen the new size must not get more permits, nor be refused so many.
func TestTheSizeIsTheLargerOneDuringAResize(t *testing.T) {
	for _, size := range []int64{2, 8} {
		s := NewWeighted(5)
		require.True(t, s.TryAcquire(3))
		waiter := make(chan error, 1)
		go func() { waiter <- s.Acquire(t.Context(), 3) }()
		testbed.Await(t, s.HasQueued)
		goOn := stop(s)
		resized := make(chan struct{})
		go func() {
			defer close(resized)
			s.Resize(size)
		}()
		testbed.Await(t, func() bool { return testbed.WaitsForMutex("onChange") })
		require.EqualValues(t, size-3, s.Available())
		require.EqualValues(t, max(size, 5), s.Size())
		held := make(chan int64, 1)
		go func() { held <- s.heldPermits() }()
		testbed.Await(t, func() bool { return len(held) == 1 || testbed.WaitsForMutex("heldPermits") })
		goOn()
		<-resized
		require.EqualValues(t, size, s.Size())
		if err := <-waiter; size < 3 {
			require.ErrorIs(t, err, ErrTooLarge)
			require.EqualValues(t, 3, <-held, "the permits of one moment")
			require.EqualValues(t, -1, s.Available())
		} else {
			require.NoError(t, err)
			require.EqualValues(t, 2, s.Available())
		}
	}
}

// The release has read the word before a Resize, and the size after the Resize.
func TestAReleaseOfAHolderAwaitsTheResize(t *testing.T) {
	s := NewWeighted(5)
	require.True(t, s.TryAcquire(1))
	s.resizing.Lock()
	s.size.Store(2)
	released := make(chan any, 1)
	go func() {
		defer func() { released <- recover() }()
		s.Release(1)
	}()
	testbed.Await(t, func() bool { return len(released) == 1 || testbed.WaitsForMutex("releaseSlowly") })
	require.True(t, s.sync.CompareAndSwap(4, 1))
	s.resizing.Unlock()
	require.Nil(t, <-released, "the caller holds a permit")
	require.EqualValues(t, 2, s.Available())
}
