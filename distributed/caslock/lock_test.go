package caslock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/internal/test/testbed"
	"github.com/jucgo/locks/lockstest"
)

const term = 30 * time.Second // the lease of the tests

// bubble runs f with virtual time and a server.
func bubble(t *testing.T, f func(t *testing.T, s *server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newServer()) })
}

// open returns a client of d that is closed with the test.
func open(tb testing.TB, d caslock.Documents, opts ...caslock.Option) *caslock.Client {
	tb.Helper()
	c, err := caslock.New(d, append([]caslock.Option{caslock.WithTTL(term)}, opts...)...)
	require.NoError(tb, err)
	tb.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// die has a client hold the lock called name, and stop at once.
func die(t *testing.T, s *server, name string) {
	t.Helper()
	c := s.connect()
	require.NoError(t, open(t, c).Mutex(name).LockContext(adaptertest.Owner()))
	c.set(func() { c.loadErr, c.swapErr = errNetwork, errNetwork })
}

func TestAMutexConformsToTryLocker(t *testing.T) {
	servers := make(map[locks.TryLocker]*server)
	lockstest.TestTryLocker(t, lockstest.Config{
		New: func(t testing.TB) locks.TryLocker {
			s := newServer()
			c := open(t, s, caslock.WithTTL(testbed.ConformanceLease(t)),
				caslock.WithPolling(time.Millisecond, 5*time.Millisecond))
			l := c.Mutex("it")
			servers[l] = s
			return l
		},
		Owned:       true,
		Reentrant:   true,
		Leased:      true,
		SpuriousTry: true, // another local attempt may be failing
		FIFO:        true,
		Lose:        func(l locks.TryLocker) { servers[l].remove("it") },
		Waiting:     func(l locks.TryLocker) int { return l.(*lease.Mutex).QueueLength() },
	})
}

func TestADeadHolderIsReplacedAfterItsLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		die(t, s, "it")
		began := time.Now()
		require.NoError(t, open(t, s, caslock.WithTTL(time.Hour)).Mutex("it").LockContext(adaptertest.Owner()))
		require.GreaterOrEqual(t, time.Since(began), term)
		require.LessOrEqual(t, time.Since(began), term+term/50)
	})
}

func TestAWaiterCountsFromItsFirstSight(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		die(t, s, "it")
		time.Sleep(time.Hour)
		l := open(t, s).Mutex("it")
		began := time.Now()
		require.NoError(t, l.LockContext(adaptertest.Owner()))
		require.GreaterOrEqual(t, time.Since(began), term)
	})
}

func TestADeadHolderKeepsTheLockForItsWholeLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		die(t, s, "it")
		l := open(t, s).Mutex("it")
		for _, pause := range []time.Duration{0, term + term/100 - 1, 1} {
			time.Sleep(pause)
			held, err := l.TryLockContext(adaptertest.Owner())
			require.NoError(t, err)
			require.Equal(t, pause == 1, held)
		}
	})
}

func TestATryRemembersWhatItSaw(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		die(t, s, "it")
		l := open(t, s).Mutex("it")
		for _, want := range []bool{false, true} {
			held, err := l.TryLockContext(adaptertest.Owner())
			require.NoError(t, err)
			require.Equal(t, want, held)
			time.Sleep(time.Hour)
		}
	})
}

func TestALivingHolderKeepsTheLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		owner := adaptertest.Owner()
		l := open(t, s).Mutex("it")
		require.NoError(t, l.LockContext(owner))
		ctx, cancel := context.WithTimeout(adaptertest.Owner(), 10*term)
		defer cancel()
		require.ErrorIs(t, open(t, s).Mutex("it").LockContext(ctx), context.DeadlineExceeded)
		require.NoError(t, l.UnlockContext(owner))
	})
}

func TestAHolderWithoutAnswersLosesTheLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := s.connect()
		l := open(t, c).Mutex("it")
		owner := adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		h, err := l.Hold(owner)
		require.NoError(t, err)
		c.set(func() { c.loadErr, c.swapErr = errNetwork, errNetwork })
		rival := adaptertest.Owner()
		require.NoError(t, open(t, s).Mutex("it").LockContext(rival))
		require.ErrorIs(t, h.Err(), locks.ErrLost)
		c.set(func() { c.loadErr, c.swapErr = nil, nil })
		require.ErrorIs(t, l.UnlockContext(owner), locks.ErrLost)
	})
}

func TestTheTokenGrowsFromHolderToHolder(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		a, b := open(t, s).Mutex("it"), open(t, s).Mutex("it")
		adaptertest.Pair(t, a)
		owner := adaptertest.Owner()
		require.NoError(t, b.LockContext(owner))
		require.EqualValues(t, 2, adaptertest.Token(t, b, owner))
		broken, err := a.ForceUnlock(context.Background())
		require.NoError(t, err)
		require.True(t, broken)
		require.ErrorIs(t, b.UnlockContext(owner), locks.ErrLost)
		die(t, s, "it")
		require.NoError(t, b.LockContext(owner))
		require.EqualValues(t, 4, adaptertest.Token(t, b, owner))
	})
}

func TestADeletedDocumentEndsTheHold(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, s).Mutex("it")
		owner := adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		h, err := l.Hold(owner)
		require.NoError(t, err)
		s.remove("it")
		time.Sleep(term / 2)
		require.ErrorIs(t, h.Err(), locks.ErrLost)
		require.ErrorIs(t, l.UnlockContext(owner), locks.ErrLost)
	})
}

func TestAForeignDocumentStaysAsItIs(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, s).Mutex("it")
		for _, data := range []string{
			"", "a photograph", "{}", "null", `{"caslock":2,"token":1,"write":"x"}`,
			`{"caslock":1}` + strings.Repeat(" ", caslock.MaxData),
			`{"caslock":1,"holder":"x","write":"x"}`, `{"caslock":1,"holder":"x","lease_ms":-1}`,
			`{"caslock":1,"holder":"x","lease_ms":3153600000001}`, // more than a hundred years
			`{"caslock":1,"holder":"x","lease_ms":-9223372036854775807}`,
			`{"caslock":1,"holder":"x","lease_ms":9223372036854775807}`, `{"caslock":1,"token":-1}`,
		} {
			s.put("it", data)
			_, err := l.TryLockContext(adaptertest.Owner())
			require.ErrorIs(t, err, locks.ErrForeign, data)
			require.ErrorContains(t, err, `caslock: try lock "it": `)
			require.NotErrorIs(t, err, lease.ErrUnavailable)
			require.ErrorIs(t, l.LockContext(adaptertest.Owner()), locks.ErrForeign)
			_, err = l.ForceUnlock(context.Background())
			require.ErrorIs(t, err, locks.ErrForeign)
			_, err = l.Inspect(context.Background())
			require.ErrorIs(t, err, locks.ErrForeign)
			require.Equal(t, data, s.data("it"))
		}
	})
}

func TestInspectTellsTheHolder(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, s, caslock.WithLabel("web-1")).Mutex("it")
		other := open(t, s).Mutex("it")
		info, err := other.Inspect(context.Background())
		require.NoError(t, err)
		require.False(t, info.Held)
		began := time.Now()
		require.NoError(t, l.LockContext(adaptertest.Owner()))
		time.Sleep(time.Second)
		_, err = other.Inspect(context.Background())
		require.NoError(t, err)
		time.Sleep(time.Second)
		info, err = other.Inspect(context.Background())
		require.NoError(t, err)
		require.Len(t, info.Holders, 1)
		h := info.Holders[0]
		require.Equal(t, "web-1", h.Label)
		require.NotEmpty(t, h.Host)
		require.NotZero(t, h.PID)
		require.True(t, began.Equal(h.Since), "%v, not %v", h.Since, began)
		require.EqualValues(t, 1, h.Token)
		require.Equal(t, term+term/100-time.Second, h.Left, "since the first look")
		require.Zero(t, h.Permits)
		require.Equal(t, -1, info.Waiting)
	})
}

// Without it, Inspect of package lease tells when the acquisition began.
func TestTheDocumentTellsSinceWhenALockIsHeld(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		var inner driver.Store // of the locks, and then of the semaphores
		reader := open(t, s, caslock.WithLeaseOptions(lease.WithWrapper(func(of driver.Store) driver.Store {
			inner = of
			return of
		})))
		c := open(t, s)
		requireSince := func(began ...time.Time) {
			t.Helper()
			state, err := inner.(driver.Inspector).Inspect(t.Context(), "it")
			require.NoError(t, err)
			require.Len(t, state.Holders, len(began))
			for i, h := range state.Holders {
				require.True(t, began[i].Equal(h.Since), "%v, not %v", h.Since, began[i])
			}
		}
		first := time.Now()
		adaptertest.Hold(t, c.Mutex("it"), adaptertest.Owner())
		time.Sleep(2 * term) // renewals change nothing
		requireSince(first)

		reader.Semaphore("it", 3)
		first = time.Now()
		_, err := c.Semaphore("it", 3).AcquireContext(adaptertest.Owner(), 1)
		require.NoError(t, err)
		time.Sleep(2 * term)
		second := time.Now()
		_, err = c.Semaphore("it", 3).AcquireContext(adaptertest.Owner(), 1)
		require.NoError(t, err)
		time.Sleep(2 * term)
		requireSince(first, second)
	})
}

func TestALocalWaiterGetsATokenOfItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l, a, b := open(t, s).Mutex("it"), adaptertest.Owner(), adaptertest.Owner()
		first := adaptertest.Hold(t, l, a).Token()
		got := make(chan error, 1)
		go func() { got <- l.LockContext(b) }()
		synctest.Wait()
		require.NoError(t, l.UnlockContext(a))
		require.NoError(t, <-got)
		h, err := l.Hold(b)
		require.NoError(t, err)
		require.Equal(t, first+1, h.Token())
	})
}

func TestInspectTellsADeadHolder(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		die(t, s, "it")
		l := open(t, s).Mutex("it")
		for range 2 {
			info, err := l.Inspect(context.Background())
			require.NoError(t, err)
			require.Len(t, info.Holders, 1)
			require.GreaterOrEqual(t, info.Holders[0].Left, time.Duration(0))
			time.Sleep(2 * term)
		}
	})
}

func TestARefusedNameIsRefusedByEachMethod(t *testing.T) {
	c := open(t, picky{newServer()})
	for name, why := range map[string]string{"": "empty", "a b": "a space"} {
		l := c.Mutex(name)
		_, tried := l.TryLockContext(adaptertest.Owner())
		_, forced := l.ForceUnlock(context.Background())
		_, inspected := l.Inspect(context.Background())
		_, held := l.Hold(adaptertest.Owner())
		locked, unlocked := l.LockContext(adaptertest.Owner()), l.UnlockContext(adaptertest.Owner())
		for _, err := range []error{locked, tried, forced, inspected, held, unlocked} {
			require.ErrorContains(t, err, why)
		}
	}
}

// picky refuses documents with a space in their names.
type picky struct{ *server }

func (picky) CheckName(name string) error {
	if strings.Contains(name, " ") {
		return errors.New("the name has a space")
	}
	return nil
}

func TestWrongOptionsAreRefused(t *testing.T) {
	s := newServer()
	for why, err := range map[string]error{
		"caslock: nil Documents":       second(caslock.New(nil)),
		"caslock: nil Format":          second(caslock.New(s, caslock.WithFormat(nil))),
		"s3lock: nil Documents":        second(caslock.New(nil, caslock.WithErrorPrefix("s3lock"))),
		"caslock: pauses from 0s":      second(caslock.New(s, caslock.WithPolling(0, time.Second))),
		"caslock: pauses from 2s to 1": second(caslock.New(s, caslock.WithPolling(2*time.Second, time.Second))),
		"caslock: TTL of 0s":           second(caslock.New(s, caslock.WithTTL(0))),
	} {
		require.ErrorContains(t, err, why)
	}
}

func second[T any](_ T, err error) error { return err }

func TestTheLongestLeaseIsNoOverflow(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		const forever = 1<<63 - 1
		require.NoError(t, open(t, s, caslock.WithTTL(forever)).Mutex("it").LockContext(adaptertest.Owner()))
		held, err := open(t, s, caslock.WithTTL(forever)).Mutex("it").TryLockContext(adaptertest.Owner())
		require.NoError(t, err)
		require.False(t, held)
	})
}

func TestAClientForgetsLocksThatAreFree(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		die(t, s, "dead")
		c := open(t, s)
		held, err := c.Mutex("dead").TryLockContext(adaptertest.Owner())
		require.NoError(t, err)
		require.False(t, held)
		for n := range 10_000 {
			adaptertest.Pair(t, c.Mutex(fmt.Sprint(n)))
		}
		require.Less(t, c.Remembered(), 5000)
		time.Sleep(term + term/50)
		held, err = c.Mutex("dead").TryLockContext(adaptertest.Owner())
		require.NoError(t, err)
		require.True(t, held)
	})
}

func TestAWaitersViewLastsTwoLeases(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		die(t, s, "dead")
		var c *caslock.Client
		try := func(name string) bool {
			held, err := c.Mutex(name).TryLockContext(adaptertest.Owner())
			require.NoError(t, err)
			return held
		}
		c = open(t, s)
		c.RememberFew()
		require.False(t, try("dead"))
		time.Sleep(3 * term / 2)
		require.True(t, try("one"))
		require.True(t, try("dead"), "it was seen a lease ago")

		die(t, s, "forgotten")
		c = open(t, s)
		c.RememberFew()
		require.False(t, try("forgotten"))
		time.Sleep(3 * term)
		require.True(t, try("two"))
		require.Equal(t, 1, c.Remembered())
	})
}
