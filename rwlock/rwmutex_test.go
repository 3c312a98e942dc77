package rwlock_test

import (
	"context"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/internal/test/effort"
	"github.com/jucgo/locks/internal/test/locktest"
	"github.com/jucgo/locks/rwlock"
)

func lockingFor(f func(time.Duration) bool, d time.Duration) func() (bool, error) {
	return func() (bool, error) { return f(d), nil }
}

// Barging.

func TestTryRLockDuringReadsBargesPastAWriter(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		r := reads(rw)
		w := writes(rw)
		require.False(t, w.Back)
		require.False(t, rw.TryRLockFor(0), "the fair try does not")
		require.False(t, rw.TryRLockFor(time.Second), "nor does a timed one")
		require.True(t, rw.TryRLock())
		ok, err := rw.TryRLockContext(t.Context())
		require.NoError(t, err)
		require.True(t, ok, "once more")
		rw.RUnlock()
		rw.RUnlock()
		ok, err = rw.TryRLockContext(locks.WithOwner(t.Context(), locks.NewOwner()))
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, 2, rw.ReadLockCount())
		r.end()
		require.False(t, w.Back, "the one that barged reads")
		for _, o := range rw.Readers() {
			require.NoError(t, rw.RUnlockContext(locks.WithOwner(t.Context(), o)))
		}
		synctest.Wait()
		require.True(t, w.Back)
		require.False(t, rw.TryRLock(), "not past a writer")
		w.end()
	})
}

func TestTryLockBargesOnlyWhereLockIsFree(t *testing.T) {
	// Under NonFair a lock is free, with its first waiter on the way, for a moment after a
	// writer's release. Under FIFO it never is: it is the waiter's.
	for _, p := range []locks.Policy{locks.NonFair, locks.FIFO} {
		t.Run(p.String(), func(t *testing.T) {
			barged := 0
			for range 200 {
				synctest.Test(t, func(t *testing.T) {
					rw := rwlock.New(p)
					rw.Lock()
					w := writes(rw)
					rw.Unlock()
					if rw.TryLock() {
						if rw.HasQueued() {
							barged++
						}
						rw.Unlock()
					}
					synctest.Wait()
					require.True(t, w.Back)
					w.end()
					isFree(t, rw)
				})
			}
			require.Equal(t, p == locks.NonFair, barged > 0)
		})
	}
}

func TestTriesOfAHeldLockFailAtOnce(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		began := time.Now()
		r := reads(rw)
		for _, d := range []time.Duration{0, -1, math.MinInt64} {
			require.False(t, rw.TryLockFor(d))
			require.True(t, rw.TryRLockFor(d))
			rw.RUnlock()
		}
		require.False(t, rw.TryLock())
		r.end()
		w := writes(rw)
		for _, d := range []time.Duration{0, -1, math.MinInt64} {
			require.False(t, rw.TryLockFor(d))
			require.False(t, rw.TryRLockFor(d))
		}
		require.False(t, rw.TryLock())
		require.False(t, rw.TryRLock())
		w.end()
		require.Zero(t, time.Since(began))
	})
}

func TestTheGreatestDurationDoesNotExpire(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		rw.Lock()
		w := hold(lockingFor(rw.TryLockFor, math.MaxInt64), rw.Unlock)
		r := hold(lockingFor(rw.TryRLockFor, math.MaxInt64), rw.RUnlock)
		time.Sleep(1000 * time.Hour)
		require.Equal(t, []locks.Owner{w.ID, r.ID}, rw.Queued())
		rw.Unlock()
		synctest.Wait()
		require.True(t, w.OK)
		w.end()
		require.True(t, r.OK)
		r.end()
	})
}

func TestReadersAndWritersAreListedByThemselves(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		rw.Lock()
		a := hold(locktest.Calling(rw.RLock), rw.RUnlock)
		b := hold(locktest.Calling(rw.Lock), rw.Unlock)
		c := hold(locktest.Calling(rw.RLock), rw.RUnlock)
		require.Equal(t, []locks.Owner{a.ID, c.ID}, rw.QueuedReaders())
		require.Equal(t, []locks.Owner{b.ID}, rw.QueuedWriters())
		rw.Unlock()
		synctest.Wait()
		for _, w := range []holder{a, b, c} {
			w.end()
		}
	})
}

// Re-entry.

func TestReadersReenterPastQueuedWriters(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		rw.RLock()
		w := writes(rw)
		require.False(t, w.Back)
		rw.RLock()
		require.True(t, rw.TryRLockFor(0))
		require.True(t, rw.TryRLockFor(time.Hour))
		require.NoError(t, rw.RLockContext(t.Context()))
		require.True(t, rw.TryRLock())
		require.Equal(t, 6, rw.ReadHoldCount())
		require.Equal(t, 6, rw.ReadLockCount())
		require.True(t, rw.IsReadHeld())
		rw.AssertReadHeld()
		for range 6 {
			require.False(t, w.Back)
			rw.RUnlock()
			synctest.Wait()
		}
		require.True(t, w.Back)
		w.end()
	})
}

func TestWritersReenterAndReadPastEverybody(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		rw.Lock()
		w, r := writes(rw), reads(rw)
		rw.Lock()
		require.True(t, rw.TryLock())
		require.True(t, rw.TryLockFor(0))
		require.NoError(t, rw.LockContext(t.Context()))
		rw.RLock()
		require.True(t, rw.TryRLock())
		require.True(t, rw.TryRLockFor(0))
		require.NoError(t, rw.RLockContext(t.Context()))
		require.Equal(t, 5, rw.WriteHoldCount())
		require.Equal(t, 4, rw.ReadHoldCount())
		require.Equal(t, 4, rw.ReadLockCount())
		require.Equal(t, []locks.Owner{locktest.Me()}, rw.Readers())
		for range 4 {
			rw.RUnlock()
		}
		locktest.PanicsWith(t, locks.ErrNotHeld, rw.RUnlock)
		for range 5 {
			require.False(t, w.Back)
			require.False(t, r.Back)
			rw.Unlock()
			synctest.Wait()
		}
		require.True(t, w.Back)
		w.end()
		require.True(t, r.Back)
		r.end()
	})
}

func TestTheReadCountIsOfAllOwners(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		twice := hold(func() (bool, error) {
			rw.RLock()
			rw.RLock()
			return true, nil
		}, func() {
			rw.RUnlock()
			rw.RUnlock()
		})
		require.Equal(t, 2, rw.ReadLockCount())
		require.Zero(t, rw.ReadHoldCount())
		rw.RLock()
		require.Equal(t, 3, rw.ReadLockCount())
		require.Equal(t, 1, rw.ReadHoldCount())
		require.ElementsMatch(t, []locks.Owner{twice.ID, locktest.Me()}, rw.Readers())
		twice.end()
		require.Equal(t, 1, rw.ReadLockCount())
		rw.RUnlock()
	})
}

// Ghosts.

func TestAWriterThatGaveUpKeepsNobodyOut(t *testing.T) {
	for name, wait := range map[string]func(rw *rwlock.RWMutex, ctx context.Context) func() (bool, error){
		"by time": func(rw *rwlock.RWMutex, _ context.Context) func() (bool, error) {
			return lockingFor(rw.TryLockFor, time.Minute)
		},
		"by context": func(rw *rwlock.RWMutex, ctx context.Context) func() (bool, error) {
			return locking(rw.LockContext, ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				r := reads(rw)
				w := locktest.Start(wait(rw, ctx), nil)
				behind := []holder{reads(rw), reads(rw)}
				last := writes(rw)
				require.Equal(t, 4, rw.QueueLength())
				require.Equal(t, 1, rw.ReadLockCount())
				time.Sleep(time.Minute)
				synctest.Wait()
				require.True(t, w.Back)
				require.False(t, w.OK)
				for _, b := range behind {
					require.True(t, b.Back, "those behind it are in, though the first reader still is")
				}
				require.Equal(t, []locks.Owner{last.ID}, rw.Queued())
				require.Equal(t, 3, rw.ReadLockCount())
				r.end()
				for _, b := range behind {
					require.False(t, last.Back)
					b.end()
				}
				require.True(t, last.Back)
				last.end()
			})
		})
	}
}

func TestALoneCancelledWriterAdmitsNewReaders(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		r := reads(rw)
		require.False(t, rw.TryLockFor(time.Second))
		require.False(t, rw.HasQueued())
		rw.RLock()
		other := reads(rw)
		require.True(t, other.Back)
		require.Equal(t, 3, rw.ReadLockCount())
		rw.RUnlock()
		r.end()
		other.end()
	})
}

func TestAReaderThatGivesUpLeavesNoGhost(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		w := writes(rw)
		ctx, cancel := context.WithCancelCause(t.Context())
		a := locktest.Start(locking(rw.RLockContext, ctx), nil)
		b := locktest.Start(lockingFor(rw.TryRLockFor, time.Hour), nil)
		r := reads(rw)
		require.Equal(t, []locks.Owner{a.ID, b.ID, r.ID}, rw.Queued())
		cancel(assert.AnError)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.ErrorIs(t, a.Err, context.Canceled)
		require.ErrorIs(t, a.Err, assert.AnError)
		require.True(t, b.Back)
		require.False(t, b.OK)
		require.Equal(t, []locks.Owner{r.ID}, rw.Queued())
		w.end()
		require.True(t, r.Back)
		require.Equal(t, 1, rw.ReadLockCount())
		r.end()
	})
}

func TestTinyTimeLimitsLeaveAWorkingLock(t *testing.T) {
	procs(t, func(t *testing.T) {
		raw(t, func(t *testing.T, rw *rwlock.RWMutex) {
			var wg sync.WaitGroup
			x := 0
			for i := range 16 {
				wg.Go(func() {
					for j := range 150 {
						d := time.Duration(j%20) * time.Microsecond
						ctx, cancel := context.WithTimeout(t.Context(), d)
						switch i % 4 {
						case 0:
							if rw.TryLockFor(d) {
								x++
								rw.Unlock()
							}
						case 1:
							if rw.LockContext(ctx) == nil {
								x++
								runtime.Gosched()
								rw.Unlock()
							}
						case 2:
							if rw.TryRLockFor(d) {
								_ = x
								rw.RUnlock()
							}
						default:
							if rw.RLockContext(ctx) == nil {
								_ = x
								runtime.Gosched()
								rw.RUnlock()
							}
						}
						cancel()
						assert.False(t, rw.IsQueued(locktest.Me()))
					}
				})
			}
			within(t, &wg, rw)
			isFree(t, rw)
		})
	})
}

// Downgrade and upgrade.

func TestDowngradeLetsReadersInAndKeepsWritersOut(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		rw.Lock()
		rw.Lock()
		r1, r2 := reads(rw), reads(rw)
		w := writes(rw)
		r3 := reads(rw)
		rw.Downgrade()
		require.True(t, rw.IsWriteHeld(), "one write hold is left")
		require.Equal(t, 1, rw.ReadHoldCount())
		require.Equal(t, 4, rw.QueueLength())
		rw.Downgrade()
		require.Equal(t, 2, rw.ReadHoldCount())
		synctest.Wait()
		require.False(t, rw.IsWriteLocked())
		require.True(t, r1.Back && r2.Back)
		require.False(t, w.Back)
		require.False(t, r3.Back, "it waits behind a writer")
		require.Equal(t, 4, rw.ReadLockCount())
		locktest.PanicsWith(t, locks.ErrNotHeld, rw.Downgrade)
		locktest.PanicsWith(t, locks.ErrNotHeld, rw.Unlock)
		rw.RUnlock()
		r1.end()
		r2.end()
		require.False(t, w.Back)
		rw.RUnlock()
		synctest.Wait()
		require.True(t, w.Back)
		w.end()
		require.True(t, r3.Back)
		r3.end()
	})
}

func TestADowngradeInTwoStepsIsTheSame(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		rw.Lock()
		w := writes(rw)
		rw.RLock()
		rw.Unlock()
		require.Equal(t, 1, rw.ReadHoldCount())
		require.False(t, rw.IsWriteLocked())
		synctest.Wait()
		require.False(t, w.Back)
		rw.RUnlock()
		synctest.Wait()
		require.True(t, w.Back)
		w.end()
	})
}

func TestARefusedUpgradeKeepsTheReadHold(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		for _, others := range []bool{false, true} {
			var r holder
			if others {
				r = reads(rw)
			}
			began := time.Now()
			rw.RLock()
			rw.RLock()
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			for range 3 {
				locktest.PanicsWith(t, locks.ErrUpgrade, rw.Lock)
				require.False(t, rw.TryLock())
				require.False(t, rw.TryLockFor(0))
				require.False(t, rw.TryLockFor(time.Hour))
				require.ErrorIs(t, rw.LockContext(ctx), locks.ErrUpgrade)
				ok, err := rw.TryLockContext(ctx)
				require.False(t, ok)
				require.ErrorIs(t, err, locks.ErrUpgrade)
				require.Equal(t, 2, rw.ReadHoldCount())
				require.False(t, rw.HasQueued())
			}
			cancel()
			require.ErrorIs(t, rw.LockContext(ctx), context.Canceled, "which comes first")
			require.Zero(t, time.Since(began))
			rw.RUnlock()
			rw.RUnlock()
			if others {
				r.end()
			}
		}
	})
}

func TestTheSoleReaderUpgrades(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		rw.RLock()
		require.True(t, rw.TryUpgrade())
		require.True(t, rw.IsWriteHeld())
		require.Zero(t, rw.ReadHoldCount())
		r := reads(rw)
		require.False(t, r.Back)
		rw.Unlock()
		synctest.Wait()
		require.True(t, r.Back)
		r.end()
	})
}

func TestUpgradeOfANestedReadKeepsOtherReads(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		for range 3 {
			rw.RLock()
		}
		require.True(t, rw.TryUpgrade())
		require.Equal(t, 1, rw.WriteHoldCount())
		require.Equal(t, 2, rw.ReadHoldCount())
		require.True(t, rw.TryUpgrade(), "a writer turns a read hold of its own into a write hold")
		require.Equal(t, 2, rw.WriteHoldCount())
		require.Equal(t, 1, rw.ReadHoldCount())
		rw.Unlock()
		rw.Unlock()
		require.False(t, rw.IsWriteLocked())
		require.Equal(t, 1, rw.ReadHoldCount())
		r := reads(rw)
		require.True(t, r.Back)
		require.False(t, rw.TryUpgrade())
		require.Equal(t, 1, rw.ReadHoldCount())
		rw.RUnlock()
		r.end()
	})
}

func TestAnUpgradeDuringReadsKeepsTheReadHold(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		r := reads(rw)
		rw.RLock()
		for range 3 {
			require.False(t, rw.TryUpgrade())
			require.Equal(t, 1, rw.ReadHoldCount())
		}
		other := reads(rw)
		require.True(t, other.Back, "the attempt keeps nobody out")
		other.end()
		r.end()
		require.True(t, rw.TryUpgrade())
		rw.Unlock()
	})
}

func TestAnUpgradePassesAWaitingWriter(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		rw.RLock()
		rw.RLock()
		w, r := writes(rw), reads(rw)
		require.True(t, rw.TryUpgrade())
		require.Equal(t, []locks.Owner{w.ID, r.ID}, rw.Queued())
		rw.Unlock()
		synctest.Wait()
		require.False(t, w.Back, "a read hold is left")
		rw.RUnlock()
		synctest.Wait()
		require.True(t, w.Back)
		w.end()
		require.True(t, r.Back)
		r.end()
	})
}

func TestAnUpgradeWithoutAReadHoldIsMisuse(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		try := func() { rw.TryUpgrade() }
		locktest.PanicsWith(t, locks.ErrNotHeld, try)
		ok, err := rw.TryUpgradeContext(t.Context())
		require.False(t, ok)
		require.ErrorIs(t, err, locks.ErrNotHeld)
		r := reads(rw)
		locktest.PanicsWith(t, locks.ErrNotHeld, try)
		r.end()
		rw.Lock()
		locktest.PanicsWith(t, locks.ErrNotHeld, try)
		rw.Unlock()
	})
}

func TestOneOfTwoUpgradingReadersMustGiveWay(t *testing.T) {
	procs(t, func(t *testing.T) {
		raw(t, func(t *testing.T, rw *rwlock.RWMutex) {
			x := 0
			upgrades := 0
			var wg sync.WaitGroup
			for range 4 {
				wg.Go(func() {
					for range 500 {
						rw.RLock()
						before := x
						if rw.TryUpgrade() {
							assert.Equal(t, before, x, "nobody wrote between the read and the upgrade")
							x++
							upgrades++
							rw.Unlock()
						} else {
							rw.RUnlock()
							runtime.Gosched()
						}
					}
				})
			}
			within(t, &wg, rw)
			require.Equal(t, upgrades, x)
			isFree(t, rw)
		})
	})
}

// Groups and starvation.

func TestReadersQueuedBehindAWriterAreInsideTogether(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		const n = 200 // more than the table has buckets
		rw.Lock()
		first := writes(rw)
		var group []holder
		for range n {
			group = append(group, reads(rw))
		}
		last := writes(rw)
		late := reads(rw)
		require.Equal(t, n+3, rw.QueueLength())
		rw.Unlock()
		synctest.Wait()
		require.True(t, first.Back)
		first.end()
		for _, r := range group {
			require.True(t, r.Back)
		}
		require.Equal(t, n, rw.ReadLockCount(), "all at the same time")
		require.Equal(t, []locks.Owner{last.ID, late.ID}, rw.Queued())
		for _, r := range group {
			r.end()
		}
		require.True(t, last.Back)
		last.end()
		require.True(t, late.Back)
		late.end()
	})
}

func TestNewReaderWaitsBehindWriterUnderBothPolicies(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		r := reads(rw)
		w := writes(rw)
		late := reads(rw)
		require.False(t, late.Back)
		r.end()
		require.True(t, w.Back)
		require.False(t, late.Back)
		w.end()
		require.True(t, late.Back)
		late.end()
	})
}

func TestNeitherSideStarvesTheOther(t *testing.T) {
	procs(t, func(t *testing.T) {
		raw(t, func(t *testing.T, rw *rwlock.RWMutex) {
			var stop atomic.Bool
			var wg, bg sync.WaitGroup
			for i := range 4 {
				bg.Go(func() {
					for !stop.Load() {
						if i%2 == 0 {
							rw.RLock()
							runtime.Gosched()
							rw.RUnlock()
						} else {
							rw.Lock()
							runtime.Gosched()
							rw.Unlock()
						}
					}
				})
			}
			wg.Go(func() {
				for range 50 {
					rw.Lock()
					rw.Unlock()
				}
			})
			wg.Go(func() {
				for range 50 {
					rw.RLock()
					rw.RUnlock()
				}
			})
			within(t, &wg, rw)
			stop.Store(true)
			within(t, &bg, rw)
			isFree(t, rw)
		})
	})
}

// A writer that locks again right after each unlock overtakes a waiter a bounded number of times.
func TestBusyWriterOvertakesWaitersBoundedNumberOfTimes(t *testing.T) {
	const most = 16 // after so many lost races the lock is handed off
	for name, waits := range map[string]func(*rwlock.RWMutex) holder{"reader": reads, "writer": writes} {
		t.Run(name, func(t *testing.T) {
			policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
				fresh := new(rwlock.RWMutex)
				if rw.IsFair() {
					fresh = rwlock.New(locks.FIFO)
				}
				rw.RLock() // makes the table
				rw.RUnlock()
				for _, l := range []*rwlock.RWMutex{rw, fresh} {
					l.Lock()
					w := waits(l)
					overtaken := 0
					for l.Unlock(); l.TryLock(); l.Unlock() {
						overtaken++
						synctest.Wait() // the waiter has seen that it lost
						require.LessOrEqual(t, overtaken, most)
					}
					if l.IsFair() {
						require.Zero(t, overtaken)
					}
					synctest.Wait()
					w.end()
					isFree(t, l)
				}
			})
		})
	}
}

// Counted, not timed: each reader that overlaps with others, so that the lock is never free of
// readers, may enter once at most while a writer waits.
func TestQueuedWriterIsOvertakenByNoNewReader(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		inside := []holder{reads(rw)}
		w := writes(rw)
		for range 20 {
			inside = append(inside, reads(rw))
		}
		require.Equal(t, 1, rw.ReadLockCount())
		inside[0].end()
		require.True(t, w.Back)
		w.end()
		for _, r := range inside[1:] {
			require.True(t, r.Back)
			r.end()
		}
	})
}

// Counters.

func TestSixtyFiveThousandReadHoldsCountExactly(t *testing.T) {
	raw(t, func(t *testing.T, rw *rwlock.RWMutex) {
		const n = 65_536
		ctx := make([]context.Context, n)
		for i := range ctx {
			ctx[i] = locks.WithOwner(t.Context(), locks.NewOwner())
			require.NoError(t, rw.RLockContext(ctx[i]))
		}
		require.Equal(t, n, rw.ReadLockCount())
		require.Len(t, rw.Readers(), n)
		require.False(t, rw.TryLock())
		for _, c := range ctx[1:] {
			require.NoError(t, rw.RUnlockContext(c))
		}
		require.False(t, rw.TryLock())
		require.NoError(t, rw.RUnlockContext(ctx[0]))

		for range n {
			rw.RLock()
		}
		require.Equal(t, n, rw.ReadHoldCount())
		for range n {
			rw.RUnlock()
		}
		isFree(t, rw)
	})
}

func TestThousandsOfReadersGetInTogether(t *testing.T) {
	n := effort.Part(65_536)
	if locktest.Race {
		n = 6000 // it knows no more than 8128 goroutines
	}
	raw(t, func(t *testing.T, rw *rwlock.RWMutex) {
		rw.Lock()
		var in atomic.Int64
		release := make(chan struct{})
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() {
				rw.RLock()
				in.Add(1)
				<-release
				rw.RUnlock()
			})
		}
		locktest.Await(t, func() bool { return rw.QueueLength() == n }, "all to queue")
		rw.Unlock()
		locktest.Await(t, func() bool { return in.Load() == int64(n) }, "all to be inside")
		require.Equal(t, n, rw.ReadLockCount())
		close(release)
		wg.Wait()
		isFree(t, rw)
	})
}

func TestTooManyHoldsAreRefusedAndCountedStill(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		ctx := t.Context()
		tooManyReads := func() {
			t.Helper()
			locktest.PanicsWith(t, locks.ErrTooManyHolds, rw.RLock)
			locktest.PanicsWith(t, locks.ErrTooManyHolds, func() { rw.TryRLock() })
			locktest.PanicsWith(t, locks.ErrTooManyHolds, func() { rw.TryRLockFor(0) })
			require.ErrorIs(t, rw.RLockContext(ctx), locks.ErrTooManyHolds)
			_, err := rw.TryRLockContext(ctx)
			require.ErrorIs(t, err, locks.ErrTooManyHolds)
			require.Equal(t, rwlock.MaxHolds, rw.ReadHoldCount())
		}
		rw.RLock()
		rwlock.SetReadHolds(rw, rwlock.MaxHolds-1)
		rw.RLock()
		tooManyReads()
		rwlock.SetReadHolds(rw, 1)
		rw.RUnlock()

		rw.Lock()
		rw.RLock()
		rwlock.SetReadHolds(rw, rwlock.MaxHolds-1)
		rw.RLock()
		tooManyReads()
		locktest.PanicsWith(t, locks.ErrTooManyHolds, rw.Downgrade)
		require.ErrorIs(t, rw.DowngradeContext(ctx), locks.ErrTooManyHolds)
		require.Equal(t, 1, rw.WriteHoldCount())
		rw.Unlock()
		require.Equal(t, rwlock.MaxHolds, rw.ReadHoldCount(), "they move to the table")
		tooManyReads()
		rwlock.SetReadHolds(rw, 1)
		rw.RUnlock()

		rw.Lock()
		rwlock.SetWriteHolds(rw, rwlock.MaxHolds-1)
		rw.Lock()
		locktest.PanicsWith(t, locks.ErrTooManyHolds, rw.Lock)
		locktest.PanicsWith(t, locks.ErrTooManyHolds, func() { rw.TryLock() })
		locktest.PanicsWith(t, locks.ErrTooManyHolds, func() { rw.TryLockFor(0) })
		require.ErrorIs(t, rw.LockContext(ctx), locks.ErrTooManyHolds)
		_, err := rw.TryLockContext(ctx)
		require.ErrorIs(t, err, locks.ErrTooManyHolds)
		rw.RLock()
		require.False(t, rw.TryUpgrade(), "nor by an upgrade")
		rw.RUnlock()
		require.Equal(t, rwlock.MaxHolds, rw.WriteHoldCount())
		rwlock.SetWriteHolds(rw, 1)
		rw.Unlock()
	})
}

// Misuse.

func TestUnlocksByOthersAreRefusedAndChangeNothing(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		ctx := t.Context()
		refused := func() {
			t.Helper()
			for range 2 {
				locktest.PanicsWith(t, locks.ErrNotHeld, rw.Unlock)
				locktest.PanicsWith(t, locks.ErrNotHeld, rw.RUnlock)
				locktest.PanicsWith(t, locks.ErrNotHeld, rw.Downgrade)
				locktest.PanicsWith(t, locks.ErrNotHeld, rw.AssertReadHeld)
				locktest.PanicsWith(t, locks.ErrNotHeld, rw.AssertWriteHeld)
				require.ErrorIs(t, rw.UnlockContext(ctx), locks.ErrNotHeld)
				require.ErrorIs(t, rw.RUnlockContext(ctx), locks.ErrNotHeld)
				require.ErrorIs(t, rw.DowngradeContext(ctx), locks.ErrNotHeld)
			}
		}
		refused() // free
		w := writes(rw)
		refused()
		require.Equal(t, w.ID, rw.Owner())
		w.end()
		r := reads(rw)
		refused()
		require.Equal(t, 1, rw.ReadLockCount())
		queued := writes(rw)
		refused()
		r.end()
		require.True(t, queued.Back)
		queued.end()

		rw.RLock()
		locktest.PanicsWith(t, locks.ErrNotHeld, rw.Unlock)
		rw.RUnlock()
		rw.Lock()
		locktest.PanicsWith(t, locks.ErrNotHeld, rw.RUnlock)
		require.True(t, rw.IsWriteHeld())
		rw.Unlock()
	})
}

func TestOnlyAcquisitionsRefuseNilAndEndedContexts(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		ended, cancel := context.WithCancelCause(t.Context())
		cancel(assert.AnError)
		for want, ctx := range map[error]context.Context{locks.ErrNilContext: nil, assert.AnError: ended} {
			acquire := func() {
				t.Helper()
				for _, f := range []func(context.Context) error{
					rw.LockContext, rw.RLockContext, rw.ReadLocker().LockContext, rw.WriteLocker().LockContext,
				} {
					require.ErrorIs(t, f(ctx), want)
				}
				for _, f := range []func(context.Context) (bool, error){
					rw.TryLockContext, rw.TryRLockContext, rw.TryUpgradeContext,
				} {
					ok, err := f(ctx)
					require.False(t, ok)
					require.ErrorIs(t, err, want)
				}
			}
			acquire()
			rw.RLock()
			acquire() // also for a re-entry
			require.NoError(t, rw.RUnlockContext(ctx))
			rw.Lock()
			acquire()
			require.NoError(t, rw.DowngradeContext(ctx))
			rw.RUnlock()
			rw.Lock()
			require.NoError(t, rw.UnlockContext(ctx))
		}
	})
}

func TestDeferredUnlockFreesTheLockAfterAPanic(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		require.PanicsWithValue(t, "section", func() {
			rw.Lock()
			defer rw.Unlock()
			rw.RLock()
			defer rw.RUnlock()
			panic("section")
		})
		rw.RLock()
		w := writes(rw)
		require.PanicsWithValue(t, "section", func() {
			defer rw.RUnlock()
			panic("section")
		})
		synctest.Wait()
		require.True(t, w.Back)
		w.end()
	})
}

func TestTheViewsAreTheLock(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		require.True(t, rw.ReadLocker() == rw.ReadLocker())
		require.True(t, rw.WriteLocker() == rw.WriteLocker())
		l := rw.RLocker()
		l.Lock()
		require.Equal(t, 1, rw.ReadHoldCount())
		l.Unlock()
		w := rw.WriteLocker().(locktest.Tryer)
		require.True(t, w.TryLock())
		require.True(t, w.TryLockFor(0))
		require.Equal(t, 2, rw.WriteHoldCount())
		w.Unlock()
		w.Unlock()
		r := rw.ReadLocker().(locktest.Tryer)
		require.True(t, r.TryLock())
		require.True(t, r.TryLockFor(0))
		require.Equal(t, 2, rw.ReadHoldCount())
		r.Unlock()
		r.Unlock()
		_, conditions := rw.ReadLocker().(interface{ NewCond() *condition.Cond })
		require.False(t, conditions, "the read side has none")
	})
}

func TestStringTellsTheState(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		require.Contains(t, rw.String(), "[unlocked, 0 queued]")
		rw.Lock()
		require.Contains(t, rw.String(), "[write-locked by "+locktest.Me().String()+", 0 queued]")
		rw.Downgrade()
		w := writes(rw)
		require.Contains(t, rw.String(), "[1 read holds, 1 queued]")
		rw.RUnlock()
		synctest.Wait()
		w.end()
	})
}

func TestMoreReadHoldsThanFitAreGreatestInt(t *testing.T) {
	var rw rwlock.RWMutex
	read := func(report chan<- bool, end <-chan struct{}) {
		rw.RLock()
		defer rw.RUnlock()
		alone := rwlock.HasPlace(&rw) // or its holds are elsewhere
		if alone {
			rwlock.SetReadHolds(&rw, rwlock.MaxHolds)
			defer rwlock.SetReadHolds(&rw, 1)
		}
		report <- alone
		<-end
	}
	end, report := make(chan struct{}), make(chan bool)
	var readers sync.WaitGroup
	for n := 0; n < 2; {
		readers.Go(func() { read(report, end) })
		if <-report {
			n++
		}
	}
	n := rw.ReadLockCount()
	close(end)
	readers.Wait()
	require.GreaterOrEqual(t, int64(n), min(2*int64(rwlock.MaxHolds), math.MaxInt))
	require.Zero(t, rw.ReadLockCount())
}

func TestWriteOfEachFormPutsTheBiasOff(t *testing.T) {
	for name, lock := range map[string]func(*rwlock.RWMutex) bool{
		"Lock":        func(rw *rwlock.RWMutex) bool { rw.Lock(); return true },
		"TryLock":     (*rwlock.RWMutex).TryLock,
		"TryLockFor":  func(rw *rwlock.RWMutex) bool { return rw.TryLockFor(0) },
		"LockContext": func(rw *rwlock.RWMutex) bool { return rw.LockContext(t.Context()) == nil },
		"TryLockContext": func(rw *rwlock.RWMutex) bool {
			ok, err := rw.TryLockContext(t.Context())
			return ok && err == nil
		},
		"TryUpgrade": func(rw *rwlock.RWMutex) bool { rw.RLock(); return rw.TryUpgrade() },
	} {
		t.Run(name, func(t *testing.T) {
			rw := rwlock.New(locks.NonFair)
			n := readsUntilTheBias(t, rw)
			rw.Lock()
			rw.Unlock()
			end := readMeanwhile(t, rw)
			for range n - 1 {
				rw.RLock()
				rw.RUnlock()
			}
			end()
			require.True(t, lock(rw))
			rw.Unlock()
			require.Equal(t, n, readsUntilTheBias(t, rw))
		})
	}
}
