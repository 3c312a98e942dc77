package lease_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/locktest"
)

// In TestAFailedAttemptOfAHolderLeavesNothing one goroutine takes the lock, and gives it back while
// a second goroutine of the same owner tries in vain. The second goroutine asks before the first
// goroutine is through. The last of the two to go frees the lock. Contexts end by the clock of the
// machine: in virtual time none would end while a goroutine is at work.
func TestAFailedAttemptOfAHolderLeavesNothing(t *testing.T) {
	s := newServer()
	l := open(t, s.connect()).Mutex("it")
	for range 20 {
		o, cancel := context.WithTimeout(as(locks.NewOwner()), time.Minute)
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for range 500 {
					if i == 0 {
						if assert.NoError(t, l.LockContext(o)) {
							assert.NoError(t, l.UnlockContext(o))
						}
					} else if i == 1 {
						ctx, cancel := context.WithTimeout(o, time.Microsecond)
						if l.LockContext(ctx) == nil {
							assert.NoError(t, l.UnlockContext(o))
						}
						cancel()
					} else if ok, err := l.TryLockContext(o); assert.NoError(t, err) && ok {
						assert.NoError(t, l.UnlockContext(o))
					}
				}
			})
		}
		wg.Wait()
		cancel()
		require.Eventually(t, func() bool { return s.holder("it") == "" }, time.Minute, time.Millisecond)
	}
}

func TestCloseWaitsForAnUnlockUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn, o := s.connect(), as(locks.NewOwner())
		c, err := lease.New(conn)
		require.NoError(t, err)
		l := c.Mutex("it")
		require.NoError(t, l.LockContext(o))
		conn.set(func(c *client) { c.delay["release"] = 500 * time.Millisecond })
		unlocked := make(chan error, 1)
		go func() { unlocked <- l.UnlockContext(o) }()
		synctest.Wait()
		require.NoError(t, c.Close(context.Background()))
		require.NoError(t, <-unlocked)
		require.Empty(t, s.holder("it"))
	})
}

func TestAContextWhoseDoneFailsLeavesNoTrace(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, s.connect()).Mutex("it")
		for _, ctx := range []context.Context{t.Context(), as(locks.NewOwner())} {
			for _, wait := range []bool{false, true} {
				holder := as(locks.NewOwner())
				if wait {
					require.NoError(t, l.LockContext(holder))
				}
				locktest.Fails(t, ctx, func(ctx context.Context) { _ = l.LockContext(ctx) })
				if wait {
					require.NoError(t, l.UnlockContext(holder))
				}
				require.Empty(t, s.holder("it"))
				require.NoError(t, l.LockContext(ctx))
				require.NoError(t, l.UnlockContext(ctx))
			}
		}
	})
}
