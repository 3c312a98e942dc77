package rwlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/locktest"
	"github.com/jucgo/locks/rwlock"
)

// The goroutines of one explicit owner share its holds.

func newOwner(t testing.TB) (locks.Owner, context.Context) {
	o := locks.NewOwner()
	return o, locks.WithOwner(t.Context(), o)
}

func TestAnOwnersHoldsAreReleasedByAnotherGoroutine(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		o, ctx := newOwner(t)
		elsewhere := func(f func(context.Context) error) {
			t.Helper()
			require.NoError(t, locktest.Start(func() (bool, error) { err := f(ctx); return err == nil, err }, nil).Err)
		}
		elsewhere(rw.RLockContext)
		elsewhere(rw.RLockContext)
		require.Equal(t, 2, rw.ReadLockCount())
		require.Equal(t, []locks.Owner{o}, rw.Readers())
		require.Zero(t, rw.ReadHoldCount(), "the goroutine has none")
		require.NoError(t, rw.RUnlockContext(ctx))
		elsewhere(rw.RUnlockContext)
		require.ErrorIs(t, rw.RUnlockContext(ctx), locks.ErrNotHeld)

		elsewhere(rw.LockContext)
		require.NoError(t, rw.LockContext(ctx), "re-enters")
		elsewhere(rw.RLockContext)
		require.Equal(t, o, rw.Owner())
		require.NoError(t, rw.UnlockContext(ctx))
		elsewhere(rw.DowngradeContext)
		require.False(t, rw.IsWriteLocked())
		require.Equal(t, 2, rw.ReadLockCount())
		elsewhere(rw.RUnlockContext)
		ok, err := rw.TryUpgradeContext(ctx)
		require.NoError(t, err)
		require.True(t, ok)
		elsewhere(rw.UnlockContext)
		require.ErrorIs(t, rw.UnlockContext(ctx), locks.ErrNotHeld)
	})
}

func TestOwnerIsNotTheGoroutineThatCarriesIt(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		_, ctx := newOwner(t)
		require.NoError(t, rw.LockContext(ctx))
		require.False(t, rw.TryLock())
		require.False(t, rw.TryRLock())
		locktest.PanicsWith(t, locks.ErrNotHeld, rw.Unlock)
		locktest.PanicsWith(t, locks.ErrNotHeld, rw.Downgrade)
		require.NoError(t, rw.DowngradeContext(ctx))
		require.True(t, rw.TryRLock())
		ok, err := rw.TryUpgradeContext(ctx)
		require.NoError(t, err)
		require.False(t, ok, "the goroutine reads as well")
		require.NoError(t, rw.RUnlockContext(ctx))
		require.True(t, rw.TryUpgrade())
		rw.Unlock()
	})
}

func TestAReadingOwnerMayNotWriteElsewhere(t *testing.T) {
	policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
		_, ctx := newOwner(t)
		require.NoError(t, rw.RLockContext(ctx))
		w := locktest.Start(func() (bool, error) { err := rw.LockContext(ctx); return err == nil, err }, nil)
		require.True(t, w.Back)
		require.ErrorIs(t, w.Err, locks.ErrUpgrade)
		require.NoError(t, rw.RUnlockContext(ctx))
	})
}

func TestWaitingWritersOfOneOwnerGetInTogether(t *testing.T) {
	for name, take := range map[string]func(rw *rwlock.RWMutex, ctx context.Context) error{
		"with a wait": (*rwlock.RWMutex).LockContext,
		"with a try": func(rw *rwlock.RWMutex, ctx context.Context) error {
			_, err := rw.TryLockContext(ctx)
			return err
		},
		"with an upgrade": func(rw *rwlock.RWMutex, ctx context.Context) error {
			if err := rw.RLockContext(ctx); err != nil {
				return err
			}
			_, err := rw.TryUpgradeContext(ctx)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
				_, ctx := newOwner(t)
				other := reads(rw)
				var in atomic.Int32
				for range 3 {
					locktest.Start(locking(rw.LockContext, ctx), func() { in.Add(1) })
				}
				require.Equal(t, 3, rw.QueueLength())
				if name != "with an upgrade" {
					other.end()
				}
				if name == "with an upgrade" {
					// Past its own waiters, by a read hold that barges.
					ok, err := rw.TryRLockContext(ctx)
					require.NoError(t, err)
					require.True(t, ok)
					other.end()
					ok, err = rw.TryUpgradeContext(ctx)
					require.NoError(t, err)
					require.True(t, ok)
				} else {
					require.NoError(t, take(rw, ctx))
				}
				synctest.Wait()
				require.EqualValues(t, 3, in.Load(), "all of the owner's are in, while it writes")
				require.Zero(t, rw.QueueLength())
				for range 4 {
					require.NoError(t, rw.UnlockContext(ctx))
				}
				require.ErrorIs(t, rw.UnlockContext(ctx), locks.ErrNotHeld)
			})
		})
	}
}

func TestConversionsOfASharedOwnerLoseNoHold(t *testing.T) {
	procs(t, func(t *testing.T) {
		raw(t, func(t *testing.T, rw *rwlock.RWMutex) {
			const parties = 4
			o, ctx := newOwner(t)
			var (
				inside, others atomic.Int32 // of the owner; of the others
				x              int
				stop           atomic.Bool
				wg, bg         sync.WaitGroup
			)
			// Another goroutine makes the owner wait, and revokes the bias.
			bg.Go(func() {
				for !stop.Load() {
					rw.Lock()
					others.Add(1)
					assert.Zero(t, inside.Load())
					x++
					others.Add(-1)
					rw.Unlock()
					runtime.Gosched()
				}
			})
			bg.Go(func() {
				for !stop.Load() {
					if rw.TryRLockFor(time.Millisecond) {
						assert.Zero(t, inside.Load(), "the owner writes while another one reads")
						_ = x
						runtime.Gosched()
						assert.Zero(t, inside.Load(), "the owner writes while another one reads")
						rw.RUnlock()
					}
				}
			})
			for p := range parties {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(uint64(p), 2))
					for range 600 {
						switch r.IntN(4) {
						case 0:
							err := rw.LockContext(ctx)
							if errors.Is(err, locks.ErrUpgrade) {
								continue
							}
							assert.NoError(t, err)
							inside.Add(1)
							assert.Zero(t, others.Load())
							inside.Add(-1)
							assert.NoError(t, rw.UnlockContext(ctx))
						case 1:
							assert.NoError(t, rw.RLockContext(ctx))
							assert.Zero(t, others.Load())
							ok, err := rw.TryUpgradeContext(ctx)
							assert.NoError(t, err)
							if !ok {
								assert.NoError(t, rw.RUnlockContext(ctx))
								continue
							}
							inside.Add(1)
							assert.Zero(t, others.Load())
							inside.Add(-1)
							assert.NoError(t, rw.DowngradeContext(ctx))
							assert.NoError(t, rw.RUnlockContext(ctx))
						case 2:
							ok, err := rw.TryLockContext(ctx)
							if !ok {
								assert.True(t, err == nil || errors.Is(err, locks.ErrUpgrade), err)
								continue
							}
							inside.Add(1)
							inside.Add(-1)
							assert.NoError(t, rw.DowngradeContext(ctx))
							assert.NoError(t, rw.RUnlockContext(ctx))
						default:
							short, cancel := context.WithTimeout(ctx, 50*time.Microsecond)
							if rw.RLockContext(short) == nil {
								assert.Zero(t, others.Load())
								runtime.Gosched()
								assert.Zero(t, others.Load())
								assert.NoError(t, rw.RUnlockContext(ctx))
							}
							cancel()
						}
					}
				})
			}
			within(t, &wg, rw)
			stop.Store(true)
			within(t, &bg, rw)
			require.ErrorIs(t, rw.RUnlockContext(ctx), locks.ErrNotHeld, o)
			require.ErrorIs(t, rw.UnlockContext(ctx), locks.ErrNotHeld, o)
			isFree(t, rw)
		})
	})
}

func TestTwoGoroutinesOfOwnerDowngradeOneHoldOnce(t *testing.T) {
	procs(t, func(t *testing.T) {
		raw(t, func(t *testing.T, rw *rwlock.RWMutex) {
			_, ctx := newOwner(t)
			for range 1000 {
				require.NoError(t, rw.LockContext(ctx))
				var done atomic.Int32
				var wg sync.WaitGroup
				for range 2 {
					wg.Go(func() {
						if err := rw.DowngradeContext(ctx); err == nil {
							done.Add(1)
						} else {
							assert.ErrorIs(t, err, locks.ErrNotHeld)
						}
					})
				}
				wg.Wait()
				require.EqualValues(t, 1, done.Load())
				require.Equal(t, 1, rw.ReadLockCount())
				require.NoError(t, rw.RUnlockContext(ctx))
			}
			isFree(t, rw)
		})
	})
}

func TestOwnersRacingReadAndWaitExcludeEachOther(t *testing.T) {
	procs(t, func(t *testing.T) {
		policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
			_, ctx := newOwner(t)
			c := rw.NewCond()
			for range 1000 {
				require.NoError(t, rw.LockContext(ctx))
				var wg sync.WaitGroup
				wg.Go(func() {
					short, cancel := context.WithTimeout(ctx, 20*time.Microsecond)
					defer cancel()
					_ = c.WaitContext(short)
				})
				wg.Go(func() {
					if ok, _ := rw.TryRLockContext(ctx); ok {
						assert.NoError(t, rw.RUnlockContext(ctx))
					}
				})
				within(t, &wg, rw)
				require.NoError(t, rw.UnlockContext(ctx))
				require.ErrorIs(t, rw.RUnlockContext(ctx), locks.ErrNotHeld)
				require.ErrorIs(t, rw.UnlockContext(ctx), locks.ErrNotHeld)
			}
			isFree(t, rw)
		})
	})
}

func TestAnOwnersRacingUnlockAndWaitReleaseOnce(t *testing.T) {
	procs(t, func(t *testing.T) {
		policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
			_, ctx := newOwner(t)
			c := rw.NewCond()
			for range 1000 {
				require.NoError(t, rw.LockContext(ctx))
				var wg sync.WaitGroup
				var left atomic.Int32
				unlock := func() {
					if rw.UnlockContext(ctx) == nil {
						left.Add(1)
					}
				}
				wg.Go(func() {
					short, cancel := context.WithTimeout(ctx, 20*time.Microsecond)
					defer cancel()
					if err := c.WaitContext(short); !errors.Is(err, locks.ErrNotHeld) {
						unlock()
					}
				})
				wg.Go(unlock)
				wg.Go(func() {
					rw.Lock()
					runtime.Gosched()
					assert.True(t, rw.IsWriteHeld())
					rw.Unlock()
				})
				within(t, &wg, rw)
				require.EqualValues(t, 1, left.Load(), "one hold, one release")
				require.ErrorIs(t, rw.UnlockContext(ctx), locks.ErrNotHeld)
			}
			isFree(t, rw)
		})
	})
}

func TestWaitingReadersOfOneOwnerGetInTogether(t *testing.T) {
	for name, c := range map[string]struct {
		first func(*rwlock.RWMutex, context.Context) error // of the owner's goroutines, which waits
		then  func(*rwlock.RWMutex, context.Context) error // what else the owner does
		leave func(*rwlock.RWMutex, context.Context) error // with the hold of that
	}{
		"to write": {first: (*rwlock.RWMutex).LockContext, leave: (*rwlock.RWMutex).UnlockContext},
		"to read":  {first: (*rwlock.RWMutex).RLockContext, leave: (*rwlock.RWMutex).RUnlockContext},
		"with a try": {
			then: func(rw *rwlock.RWMutex, ctx context.Context) error {
				ok, err := rw.TryRLockContext(ctx)
				if err == nil && !ok {
					err = errors.New("not taken")
				}
				return err
			},
			leave: (*rwlock.RWMutex).RUnlockContext,
		},
	} {
		t.Run(name, func(t *testing.T) {
			policies(t, func(t *testing.T, rw *rwlock.RWMutex) {
				_, ctx := newOwner(t)
				var first *locktest.Waiter
				var other holder
				if c.then == nil {
					other = writes(rw)
					first = locktest.Start(func() (bool, error) {
						err := c.first(rw, ctx)
						return err == nil, err
					}, nil)
				} else {
					other = reads(rw)
				}
				writer := writes(rw)
				var readers []*locktest.Waiter
				for range 3 {
					readers = append(readers, locktest.Start(locking(rw.RLockContext, ctx), nil))
				}
				for _, r := range readers {
					require.False(t, r.Back, "behind the writer")
				}
				if c.then == nil {
					other.end()
					synctest.Wait()
					require.True(t, first.OK)
				} else {
					require.NoError(t, c.then(rw, ctx))
					other.end()
					synctest.Wait()
				}
				for _, r := range readers {
					require.True(t, r.OK, "their owner has the lock")
				}
				require.False(t, writer.Back)
				require.Equal(t, 1, rw.QueueLength())

				require.NoError(t, c.leave(rw, ctx))
				require.Equal(t, 3, rw.ReadLockCount())
				for range 3 {
					require.False(t, writer.Back)
					require.NoError(t, rw.RUnlockContext(ctx))
					synctest.Wait()
				}
				require.True(t, writer.OK)
				writer.end()
				require.ErrorIs(t, rw.RUnlockContext(ctx), locks.ErrNotHeld)
				require.ErrorIs(t, rw.UnlockContext(ctx), locks.ErrNotHeld)
			})
		})
	}
}

func TestAHelperAsksForEachSideOfAnExplicitOwner(t *testing.T) {
	var rw rwlock.RWMutex
	mine := locks.WithOwner(context.Background(), locks.NewOwner())
	require.Zero(t, rw.ReadHoldCountContext(mine))
	require.NoError(t, rw.RLockContext(mine))
	require.Equal(t, 1, rw.ReadHoldCountContext(mine))
	require.Zero(t, rw.WriteHoldCountContext(mine))
	require.Zero(t, rw.ReadHoldCountContext(context.Background()), "the goroutine has no hold of its own")
	require.NoError(t, rw.RUnlockContext(mine))

	require.NoError(t, rw.LockContext(mine))
	require.NoError(t, rw.RLockContext(mine))
	require.Equal(t, 1, rw.WriteHoldCountContext(mine))
	require.Equal(t, 1, rw.ReadHoldCountContext(mine))
	require.Zero(t, rw.WriteHoldCountContext(context.Background()))
	require.NoError(t, rw.RUnlockContext(mine))
	require.NoError(t, rw.UnlockContext(mine))

	rw.Lock()
	require.Equal(t, 1, rw.WriteHoldCountContext(nil), "of the goroutine")
	rw.Unlock()
}
