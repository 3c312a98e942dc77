package redislock_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

func TestForceUnlockFreesALockTellingItsHolder(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		for kind, lock := range anyKind {
			c := open(t, connect(t, addr), term(long))
			l, elsewhere := lock(c, kind).(*lease.Mutex), lock(open(t, connect(t, addr), term(long)),
				kind).(*lease.Mutex)
			a, b := someone(), someone()
			ok, err := l.ForceUnlock(background)
			require.NoError(t, err)
			require.False(t, ok, "nobody holds it")

			h := hold(t, l, a)
			got := make(chan error, 1)
			go func() { got <- elsewhere.LockContext(b) }()
			require.Eventually(t, func() bool { return len(subscriptions(direct)) == 1 }, hang,
				time.Millisecond)
			began := time.Now()
			ok, err = l.ForceUnlock(background)
			require.NoError(t, err)
			require.True(t, ok, kind)
			require.ErrorIs(t, h.Err(), locks.ErrLost, "it is of this client, and told at once")
			require.NoError(t, <-got)
			require.Less(t, time.Since(began), hang, "woken")
			require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)

			h, err = elsewhere.Hold(b)
			require.NoError(t, err)
			ok, err = l.ForceUnlock(background)
			require.NoError(t, err)
			require.True(t, ok)
			successor := hold(t, l, a)
			select {
			case <-h.Lost():
			case <-time.After(hang):
				t.Fatal("the renewal did not tell")
			}
			require.ErrorIs(t, elsewhere.UnlockContext(b), locks.ErrLost)
			require.EqualValues(t, 1, direct.Exists(background, kind).Val(), "the loser leaves its successor alone")
			require.NoError(t, successor.Err())
			require.NoError(t, l.UnlockContext(a))
			require.Eventually(t, func() bool { return len(subscriptions(direct)) == 0 }, hang,
				time.Millisecond)
		}
	})
}

func TestForceUnlockFreesReadersAndKeepsAWriter(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		read, write := rw(t, addr, term(long))
		read2, _ := rw(t, addr, term(long))
		a, b, c := someone(), someone(), someone()
		h, g, elsewhere := hold(t, read, a), hold(t, read, b), hold(t, read2, c)
		ok, err := write.ForceUnlock(background)
		require.NoError(t, err)
		require.False(t, ok, "nobody writes")
		got := make(chan error, 1)
		w := someone()
		go func() { got <- write.LockContext(w) }()
		require.Eventually(t, func() bool { return len(subscriptions(direct)) == 1 }, hang, time.Millisecond)
		ok, err = read.ForceUnlock(background)
		require.NoError(t, err)
		require.True(t, ok)
		require.ErrorIs(t, h.Err(), locks.ErrLost)
		require.ErrorIs(t, g.Err(), locks.ErrLost)
		require.NoError(t, <-got)
		<-elsewhere.Lost()
		ok, err = read.ForceUnlock(background)
		require.NoError(t, err)
		require.False(t, ok, "nobody reads")
		require.Len(t, suite.Keys(direct), 1, "the holds of the readers are gone")
		require.NoError(t, write.UnlockContext(w))
		for _, o := range []struct {
			l *lease.Mutex
			h locks.Hold
		}{{read, h}, {read2, elsewhere}} {
			require.ErrorIs(t, o.h.Err(), locks.ErrLost)
		}
	})
}

func TestForceUnlockLeavesWhatIsNoLock(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		c := open(t, connect(t, addr))
		direct.Set(background, "string", "data", 0)
		direct.HSet(background, "hash", "name", "data")
		direct.HSet(background, "more", "a", 1, "b", 2)
		direct.HSet(background, "rw", "mode", "read", "somebody", 1)
		direct.RPush(background, "list", "data")
		keys := len(suite.Keys(direct))
		for _, l := range []*lease.Mutex{
			c.Mutex("string"), c.Mutex("hash"), c.Mutex("more"), c.Mutex("rw"), c.Mutex("list"), c.FencedMutex("hash"),
			c.FairMutex("string"), c.FairMutex("hash"), c.FairMutex("rw"),
			c.SimpleMutex("string"), c.SimpleMutex("hash"), c.SimpleMutex("list"),
			c.RWMutex("hash").ReadMutex(), c.RWMutex("string").ReadMutex(),
			c.RWMutex("hash").WriteMutex(), c.RWMutex("list").WriteMutex(),
		} {
			ok, err := l.ForceUnlock(background)
			require.ErrorIs(t, err, locks.ErrForeign, l.String())
			require.False(t, ok)
		}
		require.Len(t, suite.Keys(direct), keys)
		_, err := c.Mutex("").ForceUnlock(background)
		require.Error(t, err)
		_, err = c.Mutex("it").ForceUnlock(nil) //nolint:staticcheck // on purpose
		require.ErrorIs(t, err, locks.ErrNilContext)
		require.NoError(t, c.Close(background))
		_, err = c.Mutex("it").ForceUnlock(background)
		require.ErrorIs(t, err, locks.ErrClosed)
	})
}
