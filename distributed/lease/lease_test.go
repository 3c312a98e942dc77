package lease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

const term = 30 * time.Second // the lease of the tests

// bubble runs f with virtual time and a server.
func bubble(t *testing.T, f func(t *testing.T, s *server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newServer()) })
}

// open returns a client of c that is closed with the test.
func open(t *testing.T, c driver.Store, opts ...lease.Option) *lease.Client {
	t.Helper()
	lc, err := lease.New(c, append([]lease.Option{lease.WithTTL(term)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { lc.Close(context.Background()) })
	return lc
}

func as(o locks.Owner) context.Context { return locks.WithOwner(context.Background(), o) }

func hold(t *testing.T, l *lease.Mutex, ctx context.Context) locks.Hold {
	t.Helper()
	require.NoError(t, l.LockContext(ctx))
	h, err := l.Hold(ctx)
	require.NoError(t, err)
	return h
}

// overlap makes a holder lose its connection by cut after phase. It returns by how much later the
// holder was told of the loss than a rival got the lock. More than zero is an overlap.
func overlap(t *testing.T, s *server, phase time.Duration, cut func(c *client)) time.Duration {
	conn := s.connect()
	l := open(t, conn).Mutex("it")
	rival := open(t, s.connect()).Mutex("it")
	h := hold(t, l, as(locks.NewOwner()))
	time.Sleep(phase)
	conn.set(cut)
	granted := make(chan time.Time, 1)
	o := as(locks.NewOwner())
	go func() {
		if rival.LockContext(o) == nil {
			granted <- time.Now()
		}
	}()
	<-h.Lost()
	told := time.Now()
	require.ErrorIs(t, h.Err(), locks.ErrLost)
	at := <-granted
	require.NoError(t, rival.UnlockContext(o))
	return told.Sub(at)
}

func TestAPartitionedHolderLearnsOfItsLossFirst(t *testing.T) {
	cuts := map[string]func(c *client){
		"both directions": func(c *client) { c.down = true },
		"replies only":    func(c *client) { c.deaf = true },
		"hanging":         func(c *client) { c.delay["renew"] = time.Hour },
	}
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			for phase := time.Duration(0); phase < 2*term/3; phase += term / 17 {
				bubble(t, func(t *testing.T, s *server) {
					require.Negative(t, overlap(t, s, phase, cut), "cut after %v", phase)
				})
			}
		})
	}
}

func TestAHoldOutlivesAShortPartition(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		h := hold(t, open(t, conn).Mutex("it"), as(locks.NewOwner()))
		for range 10 {
			conn.set(func(c *client) { c.down = true })
			time.Sleep(term / 2)
			conn.set(func(c *client) { c.down = false })
			time.Sleep(term / 2)
			require.NoError(t, h.Err())
		}
	})
}

func TestALateReplyRevivesNoLostHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		h := hold(t, open(t, conn).Mutex("it"), as(locks.NewOwner()))
		conn.set(func(c *client) { c.delay["renew"] = 3 * term })
		<-h.Lost()
		conn.set(func(c *client) { c.delay["renew"] = 0 })
		time.Sleep(4 * term)
		require.ErrorIs(t, h.Err(), locks.ErrLost)
	})
}

func TestSlowRenewalsKeepTheHoldWithoutPilingUp(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		conn.set(func(c *client) { c.delay["renew"] = term / 2 })
		h := hold(t, open(t, conn).Mutex("it"), as(locks.NewOwner()))
		const terms = 20
		time.Sleep(terms * term)
		require.NoError(t, h.Err())
		require.LessOrEqual(t, s.count("renew"), 3*terms)
	})
}

func TestARefusedRenewalIsALossAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		h := hold(t, open(t, s.connect()).Mutex("it"), as(locks.NewOwner()))
		began := time.Now()
		s.evict("it")
		<-h.Lost()
		require.LessOrEqual(t, time.Since(began), term/3)
	})
}

func TestAFormerHolderFreesNoSuccessorsLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l, rival := open(t, s.connect()).Mutex("it"), open(t, s.connect()).Mutex("it")
		a, b := as(locks.NewOwner()), as(locks.NewOwner())
		hold(t, l, a)
		require.NoError(t, l.LockContext(a))
		s.evict("it")
		hold(t, rival, b)
		time.Sleep(term)
		require.ErrorIs(t, l.LockContext(a), locks.ErrLost, "re-entry")
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
		require.NotEmpty(t, s.holder("it"))
		require.NoError(t, rival.UnlockContext(b))
		require.NoError(t, l.LockContext(a), "taken anew")
		require.NoError(t, l.UnlockContext(a))
	})
}

func TestAFixedHoldEndsByItself(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, s.connect())
		h := hold(t, c.Mutex("it", lease.WithFixedTTL(time.Minute)), as(locks.NewOwner()))
		began := time.Now()
		<-h.Lost()
		require.Less(t, time.Since(began), time.Minute)
		require.Greater(t, time.Since(began), 55*time.Second)
		require.Zero(t, s.count("renew"))
	})
}

func TestExtendMovesTheDeadlineAndNeverReacquires(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		o := as(locks.NewOwner())
		l := open(t, s.connect()).Mutex("it", lease.WithFixedTTL(time.Minute))
		h := hold(t, l, o)
		require.NoError(t, h.Extend(o, time.Hour))
		deadline, ok := h.Deadline()
		require.True(t, ok)
		require.Greater(t, time.Until(deadline), 59*time.Minute)
		time.Sleep(59 * time.Minute)
		require.NoError(t, h.Err())
		require.Error(t, h.Extend(o, -1))
		s.evict("it")
		require.ErrorIs(t, h.Extend(o, time.Hour), locks.ErrLost)
		require.ErrorIs(t, h.Err(), locks.ErrLost)
		require.Empty(t, s.holder("it"))
		require.ErrorIs(t, l.UnlockContext(o), locks.ErrLost)
	})
}

func TestALostAcquisitionReplyLeavesOneHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		l, o := open(t, conn).Mutex("it"), as(locks.NewOwner())
		conn.set(func(c *client) { c.dropReply["acquire"] = 1 })
		h := hold(t, l, o)
		require.Equal(t, 1, s.locks["it"].holds)
		require.NotZero(t, h.Token())
		require.NoError(t, l.UnlockContext(o))
		require.Empty(t, s.holder("it"))
	})
}

func TestAnAcquisitionOfUnknownOutcomeIsUndone(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		l, o := open(t, conn).Mutex("it"), as(locks.NewOwner())
		conn.set(func(c *client) { c.dropReply["acquire"], c.dropReply["recall"] = 1, 1 })
		require.ErrorIs(t, l.LockContext(o), errNetwork)
		synctest.Wait()
		require.Empty(t, s.holder("it"))
		require.NoError(t, l.LockContext(o))
		require.NoError(t, l.UnlockContext(o))
	})
}

func TestALostReleaseReplyIsNoError(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		l, o := open(t, conn).Mutex("it"), as(locks.NewOwner())
		hold(t, l, o)
		conn.set(func(c *client) { c.dropReply["release"] = 2 })
		require.NoError(t, l.UnlockContext(o))
		require.Empty(t, s.holder("it"))
	})
}

func TestAReleaseWhoseReplyHangsIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		l, o := open(t, conn).Mutex("it"), as(locks.NewOwner())
		hold(t, l, o)
		conn.set(func(c *client) { c.delay["release"] = time.Hour })
		time.AfterFunc(time.Second/2, func() { conn.set(func(c *client) { c.delay["release"] = 0 }) })
		require.NoError(t, l.UnlockContext(o))
		require.Empty(t, s.holder("it"))
	})
}

func TestCloseDoesNotAwaitStoresIgnoringContexts(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		d, err := lease.New(stubborn{conn})
		require.NoError(t, err)
		var holds []locks.Hold
		for i := range 100 {
			holds = append(holds, hold(t, d.Mutex(fmt.Sprint(i)), as(locks.NewOwner())))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, d.Close(ctx), context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(began))
		for _, h := range holds {
			require.ErrorIs(t, h.Err(), locks.ErrLost)
		}
		time.Sleep(time.Hour)
	})
}

// stubborn is a client that takes a minute for a release, whatever the context says.
type stubborn struct{ *client }

func (s stubborn) Release(_ context.Context, id driver.HoldID) (driver.Released, error) {
	time.Sleep(time.Minute)
	return s.client.Release(context.Background(), id)
}

func TestAReleaseWithoutAStoreEndsInTime(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		l, o := open(t, conn, lease.WithReleaseTimeout(time.Second)).Mutex("it"), as(locks.NewOwner())
		hold(t, l, o)
		conn.set(func(c *client) { c.down = true })
		began := time.Now()
		require.ErrorIs(t, l.UnlockContext(o), errNetwork)
		require.Less(t, time.Since(began), 2*time.Second)
		conn.set(func(c *client) { c.down = false })
		require.NoError(t, l.LockContext(o), "the lock is usable")
		require.NoError(t, l.UnlockContext(o))
	})
}

func TestACancelledAcquisitionReturnsAndIsUndone(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		l := open(t, conn).Mutex("it")
		conn.set(func(c *client) { c.delay["acquire"] = 2 * time.Second })
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(as(locks.NewOwner()))
		time.AfterFunc(time.Second+time.Millisecond, func() { cancel(gone) })
		began := time.Now()
		err := l.LockContext(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, gone)
		require.Equal(t, time.Second+time.Millisecond, time.Since(began))
		require.NotEmpty(t, s.holder("it"), "the request has got there")
		time.Sleep(time.Second)
		require.Empty(t, s.holder("it"))
		conn.set(func(c *client) { c.delay["acquire"] = 0 })
		o := as(locks.NewOwner())
		require.NoError(t, l.LockContext(o))
		require.NoError(t, l.UnlockContext(o))
	})
}

func TestTheNextAcquisitionWaitsForTheUndoing(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		l, o := open(t, conn).Mutex("it"), locks.NewOwner()
		conn.set(func(c *client) { c.delay["acquire"] = 2 * time.Second })
		ctx, cancel := context.WithTimeout(as(o), 1500*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
		ok, err := l.TryLockContext(as(o))
		require.NoError(t, err)
		require.False(t, ok, "a try does not wait")
		hold(t, l, as(o))
		require.Equal(t, 1, s.locks["it"].holds, "the same owner's late success would have counted twice")
		require.NoError(t, l.UnlockContext(as(o)))
	})
}

func TestWaitersGoOnWithoutNotifications(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		deaf := s.connect()
		deaf.set(func(c *client) { c.mute = true })
		l, rival := open(t, s.connect()).Mutex("it"), open(t, deaf).Mutex("it")
		a, b := as(locks.NewOwner()), as(locks.NewOwner())
		hold(t, l, a)
		var wg sync.WaitGroup
		wg.Go(func() { assert.NoError(t, rival.LockContext(b)) })
		synctest.Wait()
		require.NoError(t, l.UnlockContext(a))
		began := time.Now()
		wg.Wait()
		require.LessOrEqual(t, time.Since(began), lease.DefaultPoll)
		require.NoError(t, rival.UnlockContext(b))
	})
}

func TestANotificationWithoutAReasonGrantsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l, rival := open(t, s.connect()).Mutex("it"), open(t, s.connect()).Mutex("it")
		a, b := as(locks.NewOwner()), as(locks.NewOwner())
		hold(t, l, a)
		var got atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			assert.NoError(t, rival.LockContext(b))
			got.Store(true)
		})
		for range 100 {
			synctest.Wait()
			s.mu.Lock()
			s.notify("it")
			s.mu.Unlock()
		}
		synctest.Wait()
		require.False(t, got.Load())
		require.NoError(t, l.UnlockContext(a))
		wg.Wait()
		require.NoError(t, rival.UnlockContext(b))
	})
}

func TestLocalHandoffsSkipTheStoreForAWhile(t *testing.T) {
	for _, cohort := range []int{0, 3, 64} {
		bubble(t, func(t *testing.T, s *server) {
			l := open(t, s.connect(), lease.WithMaxLocalHandoffs(cohort)).Mutex("it")
			const n = 130
			first := as(locks.NewOwner())
			hold(t, l, first)
			var wg sync.WaitGroup
			for range n - 1 {
				o := as(locks.NewOwner())
				wg.Go(func() {
					assert.NoError(t, l.LockContext(o))
					require.NoError(t, l.UnlockContext(o))
				})
			}
			synctest.Wait()
			require.NoError(t, l.UnlockContext(first))
			wg.Wait()
			want := (n + cohort) / (cohort + 1)
			require.Equal(t, want, s.count("acquire"), "cohort of %d", cohort)
			require.Equal(t, want, s.count("release"))
			require.Empty(t, s.holder("it"))
		})
	}
}

func TestLocalHandoffsEndAfterAQuarterLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, s.connect()).Mutex("it")
		rival, b := open(t, s.connect()).Mutex("it"), as(locks.NewOwner())
		a := as(locks.NewOwner())
		hold(t, l, a)
		var wg sync.WaitGroup
		for range 40 {
			o := as(locks.NewOwner())
			wg.Go(func() {
				assert.NoError(t, l.LockContext(o))
				time.Sleep(time.Second)
				require.NoError(t, l.UnlockContext(o))
			})
		}
		began, waited := time.Now(), time.Duration(0)
		wg.Go(func() {
			assert.NoError(t, rival.LockContext(b))
			waited = time.Since(began)
			assert.NoError(t, rival.UnlockContext(b))
		})
		synctest.Wait()
		require.NoError(t, l.UnlockContext(a))
		wg.Wait()
		require.LessOrEqual(t, waited, term/4+2*time.Second)
	})
}

func TestACancelledWaitersLockIsReleased(t *testing.T) {
	for range 200 {
		bubble(t, func(t *testing.T, s *server) {
			l := open(t, s.connect()).Mutex("it")
			a := as(locks.NewOwner())
			hold(t, l, a)
			ctx, cancel := context.WithCancel(as(locks.NewOwner()))
			var wg sync.WaitGroup
			wg.Go(func() {
				if l.LockContext(ctx) == nil {
					assert.NoError(t, l.UnlockContext(ctx))
				}
			})
			synctest.Wait()
			wg.Go(cancel)
			wg.Go(func() { assert.NoError(t, l.UnlockContext(a)) })
			wg.Wait()
			require.Empty(t, s.holder("it"))
		})
	}
}

func TestErrorsDoNotRepeatAnInvalidName(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, s.connect()).Mutex(strings.Repeat("x", 1<<20))
		err := l.UnlockContext(context.Background())
		require.ErrorIs(t, err, locks.ErrNotHeld)
		require.Less(t, len(err.Error()), 1000)
		require.Less(t, len(l.String()), 1000)
	})
}

func TestReEntryAsksTheStoreNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l, o := open(t, s.connect()).Mutex("it"), as(locks.NewOwner())
		for range 100 {
			require.NoError(t, l.LockContext(o))
		}
		for range 100 {
			require.NotEmpty(t, s.holder("it"))
			require.NoError(t, l.UnlockContext(o))
		}
		require.Empty(t, s.holder("it"))
		require.Equal(t, 1, s.count("acquire"))
		require.Equal(t, 1, s.count("release"))
	})
}

func TestOneOwnersGoroutinesShareARequest(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		conn.set(func(c *client) { c.delay["acquire"] = time.Second })
		l, o := open(t, conn).Mutex("it"), as(locks.NewOwner())
		const n = 10
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() { assert.NoError(t, l.LockContext(o)) })
		}
		wg.Wait()
		require.Equal(t, 1, s.count("acquire"))
		for range n {
			require.NotEmpty(t, s.holder("it"))
			require.NoError(t, l.UnlockContext(o))
		}
		require.Empty(t, s.holder("it"))
	})
}

func TestManyHoldsAreRenewedInBatches(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, s.connect())
		o := as(locks.NewOwner())
		const n = 1000
		holds := make([]locks.Hold, n)
		for i := range holds {
			holds[i] = hold(t, c.Mutex(fmt.Sprint(i)), o)
			time.Sleep(time.Millisecond)
		}
		const terms = 9
		time.Sleep(terms * term)
		for _, h := range holds {
			require.NoError(t, h.Err())
		}
		require.LessOrEqual(t, s.count("renew"), (3*terms+3)*n/100*3/2)
	})
}

// crowded is a store that knows how many renewals are under way.
type crowded struct {
	*client
	now, most *atomic.Int64
}

func (c crowded) Renew(ctx context.Context, holds []driver.HoldID, d time.Duration) ([]bool, error) {
	defer c.now.Add(-1)
	for n, most := c.now.Add(1), c.most.Load(); n > most && !c.most.CompareAndSwap(most, n); most = c.most.Load() {
	}
	return c.client.Renew(ctx, holds, d)
}

func TestRenewalsOfManyHoldsTakeTurnsUnlessTheStoreIsSlow(t *testing.T) {
	for _, c := range []struct {
		answer time.Duration // of a renewal
		most   int64
	}{{term / 1000, 16}, {term / 2, 40}} {
		bubble(t, func(t *testing.T, s *server) {
			store := crowded{s.connect(), new(atomic.Int64), new(atomic.Int64)}
			store.set(func(one *client) { one.delay["renew"] = c.answer })
			locker, o := open(t, store), as(locks.NewOwner())
			holds := make([]locks.Hold, 4000)
			for i := range holds {
				holds[i] = hold(t, locker.Mutex(fmt.Sprint(i)), o)
			}
			time.Sleep(3 * term)
			for _, h := range holds {
				require.NoError(t, h.Err())
			}
			require.GreaterOrEqual(t, store.most.Load(), c.most)
			if c.most < 40 {
				require.Equal(t, c.most, store.most.Load())
			}
		})
	}
}

func TestCloseEndsWaitsAndReleasesHolds(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, s.connect())
		other := open(t, s.connect()).Mutex("taken")
		a, b := as(locks.NewOwner()), as(locks.NewOwner())
		hold(t, other, b)
		h := hold(t, c.Mutex("it"), a)
		var wg sync.WaitGroup
		for _, name := range []string{"it", "it", "taken"} {
			o := as(locks.NewOwner())
			wg.Go(func() { assert.ErrorIs(t, c.Mutex(name).LockContext(o), locks.ErrClosed) })
		}
		synctest.Wait()
		require.NoError(t, c.Close(t.Context()))
		wg.Wait()
		<-h.Lost()
		require.ErrorIs(t, h.Err(), locks.ErrLost)
		require.ErrorIs(t, h.Err(), locks.ErrClosed)
		require.Empty(t, s.holder("it"))
		require.NotEmpty(t, s.holder("taken"))
		require.ErrorIs(t, c.Mutex("it").LockContext(a), locks.ErrClosed)
		require.ErrorIs(t, c.Mutex("it").UnlockContext(a), locks.ErrLost)
		require.NoError(t, c.Close(t.Context()))
	})
}

func TestCloseDoesNotWaitForAGoneStore(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.connect()
		c := open(t, conn)
		hold(t, c.Mutex("it"), as(locks.NewOwner()))
		conn.set(func(c *client) { c.down = true })
		began := time.Now()
		require.ErrorIs(t, c.Close(t.Context()), errNetwork)
		require.LessOrEqual(t, time.Since(began), lease.DefaultReleaseTimeout)
	})
}

func TestTokensIncreaseFromHolderToHolderAcrossClients(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		var last uint64
		for range 5 {
			l, o := open(t, s.connect()).Mutex("it"), as(locks.NewOwner())
			h := hold(t, l, o)
			require.Greater(t, h.Token(), last)
			last = h.Token()
			require.NoError(t, l.UnlockContext(o))
			require.ErrorIs(t, h.Err(), locks.ErrNotHeld, "a hold that was released")
		}
	})
}

func TestBadOptionsAreErrors(t *testing.T) {
	_, err := lease.New(nil)
	require.Error(t, err)
	for _, o := range []lease.Option{
		lease.WithTTL(0), lease.WithTTL(time.Microsecond), lease.WithMargin(term), lease.WithPoll(0),
		lease.WithReleaseTimeout(-1), lease.WithMaxLocalHandoffs(-1),
		lease.WithWrapper(func(driver.Store) driver.Store { return nil }),
	} {
		_, err := lease.New(newServer().connect(), o)
		require.Error(t, err)
	}
	c, err := lease.New(newServer().connect())
	require.NoError(t, err)
	defer c.Close(t.Context())
	require.Error(t, c.Mutex("it", lease.WithFixedTTL(-1)).LockContext(t.Context()))
	require.ErrorIs(t, c.Mutex("it").LockContext(nil), locks.ErrNilContext) //nolint:staticcheck // on purpose
}

func TestEightGoroutinesOfTwoClientsExcludeEachOther(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		var clients []*lease.Client
		for range 2 {
			c, err := lease.New(s.connect(), lease.WithMaxLocalHandoffs(2))
			require.NoError(t, err)
			defer c.Close(t.Context())
			clients = append(clients, c)
		}
		n := 0
		var wg sync.WaitGroup
		const rounds = 300
		for g := range 8 {
			wg.Go(func() {
				l := clients[g%2].Mutex("it")
				for range rounds {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					if err := l.LockContext(ctx); err != nil {
						t.Error(err)
					}
					n++
					if err := l.UnlockContext(ctx); err != nil {
						t.Error(err)
					}
					cancel()
				}
			})
		}
		wg.Wait()
		require.Equal(t, 8*rounds, n)
	})
}
