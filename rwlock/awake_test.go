package rwlock

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/syncq"
)

// An awake waiter without a processor relies on the flags of the word.
func TestNewcomerKeepsTheFlagsOfAnAwakeWaiter(t *testing.T) {
	for name, hold := range map[string]struct {
		lock   func(rw *RWMutex) bool
		unlock func(rw *RWMutex)
		reads  bool
	}{
		"Lock":     {func(rw *RWMutex) bool { rw.Lock(); return true }, (*RWMutex).Unlock, false},
		"TryLock":  {(*RWMutex).TryLock, (*RWMutex).Unlock, false},
		"RLock":    {func(rw *RWMutex) bool { rw.RLock(); return true }, (*RWMutex).RUnlock, true},
		"TryRLock": {(*RWMutex).TryRLock, (*RWMutex).RUnlock, true},
	} {
		t.Run(name, func(t *testing.T) {
			value := syncq.Value(goid.Get())
			if hold.reads {
				value = syncq.OneShared
			}
			for _, table := range []bool{false, true} {
				var rw RWMutex
				if table {
					rw.RLock()
					rw.RUnlock()
				}
				rw.s.Word.Store(syncq.Awake)
				require.True(t, hold.lock(&rw))
				require.Equal(t, syncq.Awake|value, rw.s.Word.Load())
				hold.unlock(&rw)
				require.Equal(t, syncq.Awake, rw.s.Word.Load())
			}
		})
	}
}

// The writer ends the bias between a reader's entry into its slot and the reader's second look.
func TestReaderThatLosesBiasHasNoHoldLeft(t *testing.T) {
	for name, lock := range map[string]func(rw *RWMutex) bool{
		"RLock":    func(rw *RWMutex) bool { rw.RLock(); return true },
		"TryRLock": (*RWMutex).TryRLock,
	} {
		t.Run(name, func(t *testing.T) {
			var rw RWMutex
			rw.RLock()
			biased := biasedWord(t, &rw)
			rw.RUnlock()
			if !rw.TryLock() {
				t.Fatal("nobody reads")
			}
			var written, seen int // guarded by rw
			var stop atomic.Bool
			var reads atomic.Int32
			var reading sync.WaitGroup
			reading.Go(func() {
				for !stop.Load() {
					if !lock(&rw) {
						continue
					}
					seen = written
					reads.Add(1)
					rw.RUnlock()
					for rw.s.ReadHolds(goid.Get()) > 0 {
						t.Error("the reader has a hold more than it took")
						stop.Store(true)
						rw.RUnlock()
					}
				}
			})
			value := syncq.Value(goid.Get())
			for k := 0; (k < 100_000 || reads.Load() < 20_000) && !stop.Load(); k++ {
				written++
				if !rw.s.Word.CompareAndSwap(value, biased) { // as if many had read since the unlock
					rw.Unlock() // a reader waits
				}
				rw.Lock()
			}
			rw.Unlock()
			stop.Store(true)
			reading.Wait()
			require.LessOrEqual(t, seen, written)
			require.True(t, rw.TryLock())
			rw.Unlock()
		})
	}
}

// biasedWord has rw, which the caller reads, biased to readers, and returns the word that it has
// when nobody reads.
func biasedWord(t *testing.T, rw *RWMutex) (w uint64) {
	t.Helper()
	for range 1000 {
		done := make(chan uint64)
		go func() {
			rw.RLock()
			rw.RUnlock()
			done <- rw.s.Word.Load()
		}()
		<-done
	}
	require.True(t, rw.s.Biased())
	return rw.s.Word.Load() - syncq.Value(1) // without the hold of the caller
}
