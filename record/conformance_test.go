package record_test

import (
	"testing"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/test/fakelock"
	"github.com/jucgo/locks/lockstest"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
)

// watched wraps l by a Recorder with everything switched on.
func watched(l locks.TryLocker) locks.TryLocker {
	return record.New(record.Options{Events: 16, Hook: func(record.Event) {}}).Wrap("lock", l)
}

// queue returns how many goroutines wait for the lock of type L inside a wrapper.
func queue[L interface{ QueueLength() int }](l locks.TryLocker) int {
	in, _ := record.Inner[L](l)
	return in.QueueLength()
}

func TestWatchedLocksConform(t *testing.T) {
	t.Run("fair.Mutex", func(t *testing.T) {
		lockstest.TestTryLocker(t, lockstest.Config{
			New:     func(testing.TB) locks.TryLocker { return watched(new(fair.Mutex)) },
			FIFO:    true,
			Waiting: queue[*fair.Mutex],
		})
	})
	t.Run("reentrant.Mutex", func(t *testing.T) {
		lockstest.TestTryLocker(t, lockstest.Config{
			New:       func(testing.TB) locks.TryLocker { return watched(reentrant.New(locks.FIFO)) },
			Reentrant: true,
			FIFO:      true,
			Waiting:   queue[*reentrant.Mutex],
		})
	})
	t.Run("rwlock.RWMutex.R", func(t *testing.T) {
		of := map[locks.TryLocker]locks.ReadWriteLocker{}
		in := map[locks.TryLocker]*rwlock.RWMutex{}
		lockstest.TestTryLocker(t, lockstest.Config{
			New: func(testing.TB) locks.TryLocker {
				inside := rwlock.New(locks.FIFO)
				rw := record.New(record.Options{}).WrapReadWrite("rw", inside)
				of[rw.ReadLocker()] = rw
				in[rw.ReadLocker()], in[rw.WriteLocker()] = inside, inside
				return rw.ReadLocker()
			},
			Reentrant: true,
			FIFO:      true,
			Exclusive: func(view locks.TryLocker) locks.TryLocker { return of[view].WriteLocker() },
			Waiting:   func(view locks.TryLocker) int { return in[view].QueueLength() },
		})
	})
	t.Run("leased", func(t *testing.T) {
		lockstest.TestTryLocker(t, lockstest.Config{
			New:       func(testing.TB) locks.TryLocker { return watched(fakelock.NewLeased("")) },
			Reentrant: true,
			Leased:    true,
		})
	})
}
