package consullock_test

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/consullock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
)

// stock returns Consul's own lock of a key.
func stock(tb testing.TB, addr, key string) *api.Lock {
	tb.Helper()
	l, err := connect(tb, addr).LockOpts(&api.LockOptions{
		Key: key, LockTryOnce: true, LockWaitTime: 100 * time.Millisecond, LockDelay: time.Millisecond,
	})
	require.NoError(tb, err)
	return l
}

func TestConsulsLockAndOursExcludeMutually(t *testing.T) {
	t.Parallel()
	addr := startServer(t)
	c := open(t, connect(t, addr))
	for _, name := range []string{"it", "a b/../%", "orders/.lock"} {
		l, ctx := c.Mutex(name), adaptertest.Owner()
		theirs := stock(t, addr, c.Key(name))

		h := adaptertest.Hold(t, l, ctx)
		lost, err := theirs.Lock(nil)
		require.NoError(t, err)
		require.Nil(t, lost, "the lock is ours")
		require.NoError(t, l.UnlockContext(ctx))

		lost, err = theirs.Lock(nil)
		require.NoError(t, err)
		require.NotNil(t, lost)
		require.False(t, adaptertest.Try(t, l, ctx))
		info, err := l.Inspect(background)
		require.NoError(t, err)
		require.True(t, info.Held)
		require.Equal(t, pairOf(t, connect(t, addr), c.Key(name)).Session, info.Holders[0].Label)
		waiting := adaptertest.Start(l, ctx)
		require.NoError(t, theirs.Unlock())
		require.NoError(t, adaptertest.Result(t, waiting))
		next, err := l.Hold(ctx)
		require.NoError(t, err)
		require.Greater(t, next.Token(), h.Token())
		require.ErrorIs(t, theirs.Destroy(), api.ErrLockInUse)
		require.NoError(t, l.UnlockContext(ctx))

		require.NoError(t, theirs.Destroy(), "the key of a free lock may be deleted")
		last := adaptertest.Hold(t, l, ctx)
		require.Greater(t, last.Token(), next.Token())
		require.NoError(t, l.UnlockContext(ctx))
	}
}

func TestConsulsLockAndOursTakeTurns(t *testing.T) {
	t.Parallel()
	addr := startServer(t)
	key := consullock.DefaultPrefix + "it"
	var mu sync.Mutex
	inside, turns := 0, 0
	enter := func() {
		mu.Lock()
		inside++
		turns++
		assert.Equal(t, 1, inside)
		mu.Unlock()
		time.Sleep(time.Millisecond)
		mu.Lock()
		inside--
		mu.Unlock()
	}
	var wg sync.WaitGroup
	for range 3 {
		client := connect(t, addr)
		wg.Go(func() {
			for range 10 {
				l, err := client.LockOpts(&api.LockOptions{Key: key, LockDelay: time.Millisecond})
				if !assert.NoError(t, err) {
					return
				}
				_, err = l.Lock(nil)
				assert.NoError(t, err)
				enter()
				assert.NoError(t, l.Unlock())
			}
		})
		l := open(t, connect(t, addr)).Mutex("it")
		wg.Go(func() {
			ctx := adaptertest.Owner()
			for range 10 {
				assert.NoError(t, l.LockContext(ctx))
				enter()
				assert.NoError(t, l.UnlockContext(ctx))
			}
		})
	}
	wg.Wait()
	require.Equal(t, 60, turns)
}

// delayed makes a holder of Consul's own lock lose the key. From then on the key has a lock delay.
func delayed(t *testing.T, addr, key string, delay time.Duration) (began time.Time) {
	direct := connect(t, addr)
	session, _, err := direct.Session().CreateNoChecks(&api.SessionEntry{TTL: "60s", LockDelay: delay}, nil)
	require.NoError(t, err)
	ok, _, err := direct.KV().Acquire(&api.KVPair{Key: key, Flags: api.LockFlagValue, Session: session}, nil)
	require.NoError(t, err)
	require.True(t, ok)
	began = time.Now()
	_, err = direct.Session().Destroy(session, nil)
	require.NoError(t, err)
	return began
}

func TestALockDelayOfConsulsLockIsWaitedFor(t *testing.T) {
	t.Parallel()
	addr := startServer(t)
	c, ctx := open(t, connect(t, addr)), adaptertest.Owner()
	began := delayed(t, addr, c.Key("it"), 2*time.Second)
	l := c.Mutex("it")
	adaptertest.Hold(t, l, ctx)
	require.GreaterOrEqual(t, time.Since(began), 1900*time.Millisecond)
	require.NoError(t, l.UnlockContext(ctx))
}

func TestALockDelayIsTheReasonOfARefusal(t *testing.T) {
	t.Parallel()
	addr := startServer(t)
	ctx, cancel := context.WithCancel(adaptertest.Owner())
	defer cancel()
	var asked atomic.Int64
	c := open(t, connectThrough(t, addr, func(r *http.Request, next trips) (*http.Response, error) {
		if asks(t, r, api.KVLock) && asked.Add(1) == 3 {
			cancel() // the waiter knows the answer to the request before
		}
		return next(r)
	}))
	delayed(t, addr, c.Key("it"), time.Minute)
	l := c.Mutex("it")
	ok, err := l.TryLockContext(ctx)
	require.False(t, ok)
	require.ErrorContains(t, err, "lock delay")
	err = l.LockContext(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "lock delay")
}
