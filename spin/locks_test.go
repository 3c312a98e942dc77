package spin_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/locktest"
)

// each runs f in a bubble, with a new lock of each of kinds. The lock must work at the end.
func each(t *testing.T, kinds []locktest.Kind, f func(t *testing.T, l locktest.Lock)) {
	for _, k := range kinds {
		t.Run(k.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := k.New()
				f(t, l)
				synctest.Wait()
				locktest.Works(t, l)
			})
		})
	}
}

// fifo returns the locks that admit in order of arrival.
func fifo() []locktest.Kind {
	return slices.DeleteFunc(locktest.Spin(), func(k locktest.Kind) bool { return !k.FIFO })
}

func TestAnotherGoroutineMayUnlock(t *testing.T) {
	each(t, locktest.Spin(), func(t *testing.T, l locktest.Lock) {
		locktest.Start(locktest.Locking(l), nil)
		require.True(t, l.IsLocked())
		l.Unlock()
		locktest.Start(locktest.Locking(l), nil)
		require.NoError(t, l.UnlockContext(context.Background()))
	})
}

func TestAnotherOwnerMayUnlock(t *testing.T) {
	each(t, locktest.Spin(), func(t *testing.T, l locktest.Lock) {
		require.NoError(t, l.LockContext(locks.WithOwner(t.Context(), locks.NewOwner())))
		require.NoError(t, l.UnlockContext(locks.WithOwner(t.Context(), locks.NewOwner())))
	})
}

func TestTheHolderDoesNotGetInAgain(t *testing.T) {
	each(t, locktest.Spin(), func(t *testing.T, l locktest.Lock) {
		l.Lock()
		require.False(t, l.TryLock())
		require.False(t, l.TryLockFor(time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
		l.Unlock()
	})
}

func TestASecondLockWaitsForAnUnlock(t *testing.T) {
	each(t, locktest.Spin(), func(t *testing.T, l locktest.Lock) {
		l.Lock()
		time.AfterFunc(time.Hour, l.Unlock)
		began := time.Now()
		l.Lock()
		require.Equal(t, time.Hour, time.Since(began))
		l.Unlock()
	})
}

func TestAFIFOReleaseMakesTheFirstWaiterTheHolder(t *testing.T) {
	each(t, fifo(), func(t *testing.T, l locktest.Lock) {
		l.Lock()
		a := locktest.Start(locktest.Locking(l), nil)
		b := locktest.Start(locktest.Locking(l), nil)
		l.Unlock()
		require.True(t, l.IsLocked(), "handed over, never free")
		require.Equal(t, []locks.Owner{b.ID}, l.Queued())
		require.False(t, l.TryLock())
		l.Unlock() // for a
		require.Empty(t, l.Queued())
		l.Unlock() // for b
		require.False(t, l.IsLocked())
		synctest.Wait()
		require.True(t, a.OK && b.OK)
	})
}

func TestAHoldMayEndBeforeItsWaiterNotices(t *testing.T) {
	for _, k := range locktest.Spin() {
		t.Run(k.Name, func(t *testing.T) {
			// Meanwhile other goroutines use the same pool of nodes: a node that is recycled too
			// early shows up in two queues.
			l, other := k.New(), k.New()
			var stop atomic.Bool
			var noise, wg sync.WaitGroup
			count := 0
			for range 2 {
				noise.Go(func() {
					for !stop.Load() {
						other.Lock()
						count++
						runtime.Gosched()
						count--
						if count != 0 {
							assert.Zero(t, count)
							stop.Store(true)
						}
						other.Unlock()
					}
				})
			}
			for i := range 300 {
				l.Lock()
				wg.Go(func() {
					if i%2 == 0 {
						l.Lock()
					} else {
						assert.True(t, l.TryLockFor(time.Hour))
					}
				})
				locktest.Await(t, l.HasQueued, "the waiter")
				l.Unlock()
				for l.UnlockContext(t.Context()) != nil { // for the waiter
					runtime.Gosched() // a lock that is not FIFO is free until the waiter comes
				}
				wg.Wait()
			}
			stop.Store(true)
			noise.Wait()
			locktest.Works(t, l)
			locktest.Works(t, other)
		})
	}
}

func TestACancellationDuringAReleaseKeepsTheOrder(t *testing.T) {
	for _, k := range fifo() {
		t.Run(k.Name, func(t *testing.T) {
			l := k.New()
			lost := 0
			for round := range 400 {
				var got []int
				var wg sync.WaitGroup
				l.Lock()
				ctx, cancel := context.WithCancel(context.Background())
				for i := range 4 {
					wg.Go(func() {
						// 0 and 2 may give up, the others wait.
						ok := true
						if i%2 == 0 {
							ok = l.LockContext(ctx) == nil
						} else {
							l.Lock()
						}
						if ok {
							got = append(got, i)
							l.Unlock()
						}
					})
					locktest.Await(t, func() bool { return l.QueueLength() == i+1 }, "the next in line")
				}
				if round%2 == 0 {
					wg.Go(cancel)
					l.Unlock()
				} else {
					wg.Go(l.Unlock)
					cancel()
				}
				wg.Wait()
				require.IsIncreasing(t, got)
				require.Contains(t, got, 1)
				require.Contains(t, got, 3)
				lost += 4 - len(got)
				require.False(t, l.IsLocked())
				require.False(t, l.HasQueued())
			}
			require.Positive(t, lost, "nobody ever gave up")
			locktest.Works(t, l)
		})
	}
}

func TestAHundredGoroutinesPerCoreGetOn(t *testing.T) {
	rounds := 100
	if locktest.Race || testing.Short() {
		rounds = 20
	}
	for _, procs := range []int{1, 2, 8} {
		for _, k := range locktest.Spin() {
			t.Run(k.Name, func(t *testing.T) {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				l := k.New()
				count, want := 0, atomic.Int64{}
				var wg sync.WaitGroup
				for i := range 100 * procs {
					wg.Go(func() {
						for j := range rounds {
							switch (i + j) % 8 {
							case 0: // most of these give up
								if !l.TryLockFor(50 * time.Microsecond) {
									continue
								}
							case 1:
								if !l.TryLock() {
									continue
								}
							default:
								l.Lock()
							}
							count++
							want.Add(1)
							if j%4 == 0 {
								runtime.Gosched() // so that the holder has no processor
							}
							l.Unlock()
						}
					})
				}
				wg.Wait()
				require.EqualValues(t, want.Load(), count)
				locktest.Works(t, l)
			})
		}
	}
}

func TestManyWaitersSleepInABubble(t *testing.T) {
	each(t, locktest.Spin(), func(t *testing.T, l locktest.Lock) {
		const n = 200
		l.Lock()
		in := 0
		for range n {
			go func() { l.Lock(); in++; l.Unlock() }()
		}
		began := time.Now()
		time.Sleep(time.Hour) // would never end if a waiter spun or yielded
		require.Equal(t, time.Hour, time.Since(began))
		require.Equal(t, n, l.QueueLength())
		require.Len(t, l.Queued(), n)
		l.Unlock()
		synctest.Wait()
		require.Equal(t, n, in)
	})
}

func TestConditionsWorkOverEveryLock(t *testing.T) {
	each(t, locktest.Spin(), func(t *testing.T, l locktest.Lock) {
		c := l.NewCond()
		ready := false
		for range 3 {
			locktest.Start(locktest.Locking(l), func() {
				defer l.Unlock()
				assert.NoError(t, c.WaitWhile(t.Context(), func() bool { return !ready }))
			})
		}
		locktest.PanicsWith(t, locks.ErrNotHeld, c.Signal)
		locktest.PanicsWith(t, locks.ErrNotHeld, c.Wait)
		l.Lock()
		require.Equal(t, 3, c.WaitQueueLength(), "one without the lock leaves nothing behind")
		ready = true
		c.Broadcast()
		l.Unlock()
		synctest.Wait()
		l.Lock()
		require.False(t, c.HasWaiters())
		l.Unlock()
	})
}
