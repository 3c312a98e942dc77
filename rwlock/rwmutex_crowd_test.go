package rwlock_test

import (
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/locktest"
	"github.com/jucgo/locks/rwlock"
)

// More readers than the table has buckets share them: one has the slot, the others have collided.

// A crowd of this size collides in every table, which has 64 buckets at most.
const crowd = 300

func TestCollidedReadersReenterAndLeaveInAnyOrder(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		steps := make([]chan func(), crowd)
		count := make([]int, crowd)
		for i := range steps {
			steps[i] = make(chan func())
			go func() {
				for f := range steps[i] {
					f()
					count[i] = rw.ReadHoldCount()
				}
			}()
		}
		total := 0
		each := func(which func(i int) bool, change int, f func()) {
			t.Helper()
			for i := range steps {
				if !which(i) {
					continue
				}
				before := count[i]
				steps[i] <- f
				synctest.Wait()
				require.Equal(t, before+change, count[i])
				total += change
			}
			require.Equal(t, total, rw.ReadLockCount())
			require.Equal(t, total == 0, !rw.IsReadLocked())
		}
		all := func(int) bool { return true }
		odd := func(i int) bool { return i%2 == 1 }
		even := func(i int) bool { return i%2 == 0 }
		each(all, 1, rw.RLock)
		require.Len(t, rw.Readers(), crowd)
		each(odd, 1, rw.RLock)
		each(even, -1, rw.RUnlock) // frees slots of buckets whose collided stay
		w := writes(rw)
		each(odd, 1, rw.RLock)
		each(odd, -1, func() {
			rw.RUnlock()
			rw.RLock()
			rw.RUnlock()
		})
		require.False(t, w.Back)
		each(odd, 0, func() {
			locktest.PanicsWith(t, locks.ErrUpgrade, rw.Lock)
			assert.False(t, rw.TryUpgrade())
		})
		each(odd, -1, rw.RUnlock)
		each(odd, -1, rw.RUnlock)
		require.True(t, w.Back)
		w.end()
		each(all, 1, rw.RLock)
		each(even, -1, rw.RUnlock)
		each(even, 1, rw.RLock)
		each(all, -1, rw.RUnlock)
		each(all, 0, func() { locktest.PanicsWith(t, locks.ErrNotHeld, rw.RUnlock) })
		for _, s := range steps {
			close(s)
		}
	})
}

func TestTheLastCollidedReaderUpgradesWithoutASlot(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		var slots []holder
		for range crowd {
			slots = append(slots, reads(rw))
		}
		rw.RLock()
		rw.RLock()
		require.False(t, rw.TryUpgrade())
		for _, r := range slots {
			r.end()
		}
		rw.RLock() // with its slot free
		require.Equal(t, 3, rw.ReadHoldCount())
		require.True(t, rw.TryUpgrade())
		require.Equal(t, 2, rw.ReadHoldCount())
		rw.Unlock()
		require.Equal(t, 2, rw.ReadHoldCount())
		rw.RUnlock()
		rw.RUnlock()
	})
}

func TestCollidedReadersAndWritersExcludeEachOther(t *testing.T) {
	procs(t, func(t *testing.T) {
		raw(t, func(t *testing.T, rw *rwlock.RWMutex) {
			x, y := 0, 0
			var wg sync.WaitGroup
			for i := range crowd {
				wg.Go(func() {
					for range 20 {
						if i%50 == 0 {
							rw.Lock()
							x++
							y++
							rw.Unlock()
							continue
						}
						rw.RLock()
						rw.RLock()
						rw.RUnlock()
						assert.Equal(t, x, y)
						rw.RUnlock()
					}
				})
			}
			within(t, &wg, rw)
			require.Equal(t, crowd/50*20, x)
			isFree(t, rw)
		})
	})
}
