package lease_test

import (
	"context"
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

// asked is a store that tells whether clients wait.
type asked struct{ *client }

var _ driver.ContentionProber = asked{}

func (a asked) Contended(ctx context.Context, name string) (awaited bool, err error) {
	err = a.call(ctx, "awaited", func() { awaited = len(a.s.watches) > 0 })
	return awaited, err
}

// turns has n owners in one process take the lock one after the other, each for a millisecond,
// after during was called.
func turns(t *testing.T, c driver.Store, n int, during func()) {
	l, err := lease.New(c)
	require.NoError(t, err)
	defer l.Close(context.Background())
	first, it := as(locks.NewOwner()), l.Mutex("it")
	require.NoError(t, it.LockContext(first))
	var wg sync.WaitGroup
	for range n - 1 {
		o := as(locks.NewOwner())
		wg.Go(func() {
			assert.NoError(t, it.LockContext(o))
			time.Sleep(time.Millisecond)
			require.NoError(t, it.UnlockContext(o))
		})
	}
	synctest.Wait()
	during()
	require.NoError(t, it.UnlockContext(first))
	wg.Wait()
}

func TestLocalHandoffsGoOnWhileNobodyElseWaits(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		turns(t, asked{s.connect()}, 200, func() {})
		require.Equal(t, 1, s.count("acquire"))
		require.Equal(t, 1, s.count("release"))
		require.Equal(t, 3, s.count("awaited"))
	})
}

func TestARemoteWaiterEndsLocalHandoffs(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		rival, b := open(t, s.connect()).Mutex("it"), as(locks.NewOwner())
		conn := asked{s.connect()}
		began, waited := time.Now(), time.Duration(0)
		var wg sync.WaitGroup
		turns(t, conn, 200, func() {
			began = time.Now()
			wg.Go(func() {
				assert.NoError(t, rival.LockContext(b))
				waited = time.Since(began)
				assert.NoError(t, rival.UnlockContext(b))
			})
			synctest.Wait()
		})
		wg.Wait()
		require.LessOrEqual(t, waited, 67*time.Millisecond, "the turns of one cohort, and those until the answer")
	})
}

func TestAnUnansweredProbeEndsLocalHandoffsSoon(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := asked{s.connect()}
		conn.set(func(c *client) { c.delay["awaited"] = 10 * time.Second })
		turns(t, conn, 200, func() {})
		// Of 200 turns the first lock has 65, and the turns of 20 milliseconds. The next turns do
		// not ask, since an answer is due.
		require.Equal(t, 3, s.count("acquire"))
	})
}

func TestAContendedLockIsNotProbed(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		rival, b := open(t, s.connect()).Mutex("it"), as(locks.NewOwner())
		hold(t, rival, b)
		conn := asked{s.connect()}
		l, err := lease.New(conn, lease.WithMaxLocalHandoffs(3))
		require.NoError(t, err)
		defer l.Close(context.Background())
		it := l.Mutex("it")
		var wg sync.WaitGroup
		for range 8 {
			o := as(locks.NewOwner())
			wg.Go(func() {
				assert.NoError(t, it.LockContext(o))
				time.Sleep(time.Millisecond)
				require.NoError(t, it.UnlockContext(o))
			})
		}
		synctest.Wait()
		require.NoError(t, rival.UnlockContext(b))
		wg.Wait()
		require.Zero(t, s.count("awaited"), "nobody waits now, but that was not asked")
		require.Equal(t, 2, s.count("release")-1)
	})
}

// between makes two local owners acquire the lock again and again, each for the time section. A
// rival in another process does the same. It returns how many local holds there were at most
// between two holds of the rival.
func between(t *testing.T, section time.Duration) (most int) {
	bubble(t, func(t *testing.T, s *server) {
		conn, far := s.connect(), s.connect()
		for _, c := range []*client{conn, far} {
			c.set(func(c *client) {
				for _, request := range []string{"acquire", "release"} {
					c.delay[request] = 100 * time.Microsecond
				}
			})
		}
		l, err := lease.New(asked{conn})
		require.NoError(t, err)
		defer l.Close(context.Background())
		rival := open(t, far).Mutex("it")
		var over atomic.Bool
		ours := 0 // guarded by the lock
		var wg sync.WaitGroup
		for range 2 {
			o := as(locks.NewOwner())
			wg.Go(func() {
				for !over.Load() {
					assert.NoError(t, l.Mutex("it").LockContext(o))
					ours++
					time.Sleep(section)
					assert.NoError(t, l.Mutex("it").UnlockContext(o))
				}
			})
		}
		b := as(locks.NewOwner())
		for i := range 20 {
			require.NoError(t, rival.LockContext(b))
			if i > 0 { // nobody had waited before
				most = max(most, ours)
			}
			ours = 0
			time.Sleep(section)
			require.NoError(t, rival.UnlockContext(b))
		}
		over.Store(true)
		wg.Wait()
	})
	return most
}

func TestAContendedLockServesEarlierLocalWaitersOnly(t *testing.T) {
	require.LessOrEqual(t, between(t, 3*time.Millisecond), 3)
}

func TestQuickLocalTurnsContinueDespiteARemoteWaiter(t *testing.T) {
	require.Equal(t, lease.DefaultMaxLocalHandoffs+1, between(t, time.Microsecond))
}

func TestAnIdleLockForgetsItsContention(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, s.connect())
		l, other := c.Mutex("it"), c.Mutex("it")
		a := as(locks.NewOwner())
		for _, next := range []*lease.Mutex{l, other, l, l, other} {
			h := hold(t, next, a)
			require.NoError(t, next.LockContext(a))
			require.NoError(t, other.UnlockContext(a))
			require.NoError(t, h.Err())
			require.NoError(t, l.UnlockContext(a))
			require.Empty(t, s.holder("it"))
		}
	})
}
