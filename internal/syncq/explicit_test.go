package syncq

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWaitersOfOneExplicitOwnerGetTheLockTogether(t *testing.T) {
	for _, policy := range []Policy{NonFair, FIFO} {
		var s Sync
		ctx := t.Context()
		require.True(t, s.TryLock(Owned(1)))
		var waits []call
		for i, o := range []int64{-5, 2, -5, 3, -5} {
			waits = append(waits, run(func() bool { return s.LockOwned(ctx, Owned(o), policy) }))
			eventually(t, func() bool { return s.Len() == i+1 })
		}
		require.True(t, s.Leave(1, policy))
		for _, i := range []int{0, 2, 4} {
			require.True(t, waits[i].result(t))
		}
		require.EqualValues(t, -5, s.Owner())
		require.Equal(t, []int64{2, 3}, s.Waiters())
		for range 3 {
			require.EqualValues(t, -5, s.Owner())
			require.True(t, s.Leave(-5, policy))
		}
		require.False(t, s.Leave(-5, policy))
		require.True(t, waits[1].result(t))
		require.True(t, s.Leave(2, policy))
		require.True(t, waits[3].result(t))
		require.True(t, s.Leave(3, policy))
		require.NoError(t, s.Verify())
		require.Zero(t, s.Word.Load())
	}
}

func TestWaitersOfOneExplicitOwnerGetTheLockTogetherWithOneThatComesBackFromACondition(t *testing.T) {
	for _, policy := range []Policy{NonFair, FIFO} {
		var s Sync
		ctx := t.Context()
		c := NewCond(&s, policy)
		back := run(func() bool {
			if !s.LockOwned(ctx, Owned(-5), policy) {
				return false
			}
			s.Reenter(-5)
			return c.WaitContext(ctx, Owned(-5))
		})
		eventually(t, func() bool { return c.Len() == 1 })
		require.True(t, s.TryLock(Owned(1)))
		c.Signal()
		var waits []call
		for i, o := range []int64{2, -5, -5} {
			waits = append(waits, run(func() bool { return s.LockOwned(ctx, Owned(o), policy) }))
			eventually(t, func() bool { return s.Len() == i+2 })
		}
		require.True(t, s.Leave(1, policy))
		require.True(t, back.result(t))
		require.True(t, waits[1].result(t))
		require.True(t, waits[2].result(t))
		require.Equal(t, []int64{2}, s.Waiters())
		for range 4 { // two of the one that was back, one of each of the others
			require.EqualValues(t, -5, s.Owner())
			require.True(t, s.Leave(-5, policy))
		}
		require.False(t, s.Leave(-5, policy))
		require.True(t, waits[0].result(t))
		require.True(t, s.Leave(2, policy))
		require.NoError(t, s.Verify())
		require.Zero(t, s.Word.Load())
	}
}

func TestGoroutinesThatShareAnOwnerLoseNoHold(t *testing.T) {
	for _, policy := range []Policy{NonFair, FIFO} {
		var s Sync
		holders := [3]int{} // how many goroutines of each owner are inside; guarded by mu
		var mu sync.Mutex
		var wg sync.WaitGroup
		for g := range 9 {
			wg.Go(func() {
				o := -int64(g%3) - 1
				r := rand.New(rand.NewPCG(uint64(g), 3))
				for range 500 {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(r.IntN(100))*time.Microsecond)
					held, _ := s.Reenter(o)
					if !held {
						if r.IntN(3) == 0 {
							held = s.TryLockOwned(o)
						} else {
							held = s.LockOwned(ctx, Owned(o), policy)
						}
					}
					cancel()
					if !held {
						continue
					}
					inside := func(by int) {
						mu.Lock()
						holders[g%3] += by
						if holders[(g+1)%3]+holders[(g+2)%3] > 0 {
							t.Error("two owners are inside")
						}
						mu.Unlock()
					}
					inside(1)
					runtime.Gosched()
					inside(-1)
					if !s.Leave(o, policy) {
						t.Error("a hold was lost")
					}
				}
			})
		}
		wg.Wait()
		require.NoError(t, s.Verify())
		require.Zero(t, s.Word.Load())
		require.Zero(t, s.Holds)
	}
}

// The other goroutine ends one of the two holds that the wait gave up, as it may from when the lock is the owner's again.
func TestAWaitTakesTheLockAgainWhichAnotherGoroutineOfTheOwnerGaveBackBeforeItsHoldsWereRestored(t *testing.T) {
	var s Sync
	ctx := t.Context()
	c := NewCond(&s, FIFO)
	back := run(func() bool {
		if !s.LockOwned(ctx, Owned(-5), FIFO) {
			return false
		}
		s.Reenter(-5)
		return c.WaitContext(ctx, Owned(-5))
	})
	eventually(t, func() bool { return c.Len() == 1 })
	require.True(t, s.TryLock(Owned(1)))
	require.True(t, c.Signal())
	s.guard.Lock()
	granted := s.release(FIFO, 0)
	s.guard.Unlock()
	require.EqualValues(t, -5, s.Owner(), "though its wait is not over")
	require.True(t, s.Leave(-5, FIFO))
	require.True(t, s.TryLock(Owned(2)))
	unpark(granted)

	eventually(t, func() bool { return s.Len() == 1 })
	require.True(t, s.HeldBy(2))
	require.True(t, s.Leave(2, FIFO))
	require.True(t, back.result(t))
	require.True(t, s.Leave(-5, FIFO), "the other hold")
	require.False(t, s.Leave(-5, FIFO))
	require.NoError(t, s.Verify())
	require.Zero(t, s.Word.Load())
	require.Zero(t, s.Holds)
}

// While one waits for a signal, the others' holds are given up with its own, and cannot be given back.
func TestGoroutinesThatShareAnOwnerLoseNoHoldToWaitsForASignal(t *testing.T) {
	for name, policy := range map[string]Policy{"NonFair": NonFair, "FIFO": FIFO, "early": FIFO} {
		t.Run(name, func(t *testing.T) {
			var (
				s           Sync
				ctx         = context.Background() // uncut, so that waiters may be woken early
				c           = NewCond(&s, policy)
				all, others sync.WaitGroup
				stop        atomic.Bool
			)
			take := func(o int64) {
				if held, _ := s.Reenter(o); !held {
					s.LockOwned(ctx, Owned(o), policy)
				}
			}
			leave := func(o int64) {
				for !s.Leave(o, policy) {
					runtime.Gosched()
				}
			}
			for i := range 6 {
				o := int64(-5 - i%2)
				all.Go(func() {
					for k := range 120 {
						take(o)
						if k%3 == 0 {
							take(o)
							c.WaitOwned(ctx, Owned(o)) // false if a wait of another has given up the holds meanwhile
							leave(o)
						}
						leave(o)
					}
				})
			}
			others.Go(func() {
				for i := 0; !stop.Load(); i++ {
					if name == "early" {
						s.WakeEarly(i%2 == 0)
					}
					take(-7)
					c.Broadcast()
					leave(-7)
				}
			})
			// One that took its first hold, and lost it to the wait of another, may wait itself after its second. Then the
			// first one is there when the other is back, and nobody to give it up. So somebody else of the owner waits now and then.
			for o := range int64(2) {
				others.Go(func() {
					for !stop.Load() {
						time.Sleep(time.Millisecond)
						take(-5 - o)
						now, cancel := context.WithTimeout(ctx, time.Millisecond)
						c.WaitOwned(now, Owned(-5-o))
						cancel()
						leave(-5 - o)
					}
				})
			}
			all.Wait()
			stop.Store(true)
			others.Wait()
			require.NoError(t, s.Verify())
			require.Zero(t, s.Word.Load())
			require.Zero(t, s.Holds)
		})
	}
}

// readersOf has goroutines of the owners wait to read s, which is held exclusively.
func readersOf(t *testing.T, s *Sync, policy Policy, owners ...int64) []call {
	t.Helper()
	var waits []call
	for i, o := range owners {
		waits = append(waits, run(func() bool { return s.Read(o, policy) }))
		eventually(t, func() bool { return s.Len() == i+1 })
	}
	return waits
}

// The lock has just been freed for the first in the queue, but another goroutine of its owner barges in. With the
// first one out of the queue, those behind it are let in as a group.
func TestAReaderWhoBargesInLetsInItsOwnersWaitersAndAllReadersBehindThem(t *testing.T) {
	for name, owners := range map[string][]int64{
		"others":              {-5, 2, 3},
		"its own":             {-5, -5, -5},
		"both":                {-5, 2, -5, 3, -5},
		"both, others last":   {-5, -5, 2, 3, 4},
		"others in the front": {2, -5, 3, -5},
	} {
		t.Run(name, func(t *testing.T) {
			var s Sync
			require.True(t, s.TryLock(Owned(1)))
			waits := readersOf(t, &s, NonFair, owners...)
			writer := run(func() bool { return s.Lock(Owned(9), NonFair) })
			eventually(t, func() bool { return s.Len() == len(owners)+1 })

			// What the release does, up to the wake-up.
			require.True(t, s.Word.CompareAndSwap(value(1)|queued, queued|woken))
			require.True(t, s.TryRead(-5, NonFair))
			s.guard.Lock()
			first := s.rouse()
			s.guard.Unlock()
			unpark(first)

			for i := range waits {
				require.True(t, waits[i].result(t))
			}
			require.Equal(t, 1, s.Len())
			require.Equal(t, len(owners)+1, s.ReadCount())
			for _, o := range append(owners, -5) {
				require.True(t, s.Unread(o, NonFair))
			}
			require.True(t, writer.result(t))
			require.True(t, s.Unlock(NonFair))
			require.NoError(t, s.Verify())
			require.Zero(t, s.Word.Load())
			require.Empty(t, s.table().counted)
		})
	}
}

func TestAGoroutineOfAnOwnerWithAsManyHoldsAsCanBeCountedWaits(t *testing.T) {
	write := func(s *Sync, policy Policy) bool { return s.LockOwned(context.Background(), Owned(-5), policy) }
	read := func(s *Sync, policy Policy) bool { return s.Read(-5, policy) }
	others := func(s *Sync) map[int64]int { return s.Bucket(-5).others }
	for name, c := range map[string]struct {
		has   func(s *Sync, policy Policy) bool
		most  func(s *Sync) // so many holds
		wants func(s *Sync, policy Policy) bool
		one   func(s *Sync) // hold that can be given back
		leave func(s *Sync, o int64, policy Policy) bool
		after func(s *Sync, o int64, policy Policy) bool
	}{
		"to write": {
			write, func(s *Sync) { s.Holds = MaxHolds - 1 }, write, func(s *Sync) { s.Holds = 0 }, (*Sync).LeaveWrite, (*Sync).LeaveWrite,
		},
		"to read, as it writes": {
			write, func(s *Sync) { s.covered.set(MaxHolds) }, read, func(s *Sync) { s.covered.set(0) }, (*Sync).LeaveWrite, (*Sync).Unread,
		},
		"to read": {
			read, func(s *Sync) { others(s)[-5] = MaxHolds }, read, func(s *Sync) { others(s)[-5] = 1 }, (*Sync).Unread, (*Sync).Unread,
		},
	} {
		for _, policy := range []Policy{NonFair, FIFO} {
			t.Run(name, func(t *testing.T) {
				var s Sync
				require.True(t, c.has(&s, policy))
				writer := run(func() bool { return s.Lock(Owned(9), policy) })
				eventually(t, func() bool { return s.Len() == 1 })
				c.most(&s)
				waiter := run(func() bool { return c.wants(&s, policy) })
				eventually(t, func() bool { return s.Len() == 2 })
				s.siblings(-5)
				require.Equal(t, []int64{9, -5}, s.Waiters())
				c.one(&s)

				require.True(t, c.leave(&s, -5, policy))
				require.True(t, writer.result(t))
				require.True(t, s.Unlock(policy))
				require.True(t, waiter.result(t))
				require.True(t, c.after(&s, -5, policy))
				s.Revoke(policy)
				require.NoError(t, s.Verify())
				require.Zero(t, s.Word.Load())
			})
		}
	}
}

// It looked for a hold of its owner before there was one, and comes to the queue after that.
func TestAGoroutineWhoseOwnerCameInMeanwhileReadsWithoutAWait(t *testing.T) {
	for name, c := range map[string]struct {
		take, leave func(s *Sync, policy Policy) bool
	}{
		"to read": {
			func(s *Sync, policy Policy) bool { return s.Read(-5, policy) },
			func(s *Sync, policy Policy) bool { return s.Unread(-5, policy) },
		},
		"to write": {
			func(s *Sync, policy Policy) bool { return s.LockOwned(context.Background(), Owned(-5), policy) },
			func(s *Sync, policy Policy) bool { return s.LeaveWrite(-5, policy) },
		},
	} {
		for _, policy := range []Policy{NonFair, FIFO} {
			t.Run(name, func(t *testing.T) {
				var s Sync
				require.True(t, c.take(&s, policy))
				writer := run(func() bool { return s.Lock(Owned(9), policy) })
				eventually(t, func() bool { return s.Len() == 1 })
				for range 2 {
					require.True(t, run(func() bool { return s.Read(-5, policy) }).result(t))
				}
				require.Equal(t, []int64{9}, s.Waiters())
				require.Empty(t, s.table().counted)

				require.True(t, c.leave(&s, policy))
				for range 2 {
					require.False(t, s.HeldBy(9))
					require.True(t, s.Unread(-5, policy))
				}
				require.False(t, s.Unread(-5, policy))
				require.True(t, writer.result(t))
				require.True(t, s.Unlock(policy))
				require.NoError(t, s.Verify())
				require.Zero(t, s.Word.Load())
			})
		}
	}
}
