package redislock_test

import (
	"io/fs"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestErrorsSayWhatWasAttemptedOnWhichLock(t *testing.T) {
	t.Parallel()
	down := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1, MaxRetries: -1})
	t.Cleanup(func() { down.Close() })
	c := open(t, down)
	a := someone()

	err := c.Mutex("it").LockContext(a)
	require.EqualError(t, err, `redislock: lock "it": dial tcp 127.0.0.1:1: connect: connection refused`)
	require.ErrorIs(t, err, lease.ErrUnreachable)
	require.ErrorIs(t, err, lease.ErrUnavailable)
	require.ErrorIs(t, err, lease.ErrRefused)
	_, err = c.FairMutex("it").TryLockContext(a)
	require.EqualError(t, err, `redislock: try lock "it": dial tcp 127.0.0.1:1: connect: connection refused`)

	require.EqualError(t, c.Mutex("it").UnlockContext(a), `redislock: unlock "it": lock not held by the caller: the lock has no holder in this client; another client may hold it, see Inspect`)
	require.EqualError(t, c.Mutex("").LockContext(a), `redislock: lock "": the name is empty`)
	_, err = c.Mutex("").ForceUnlock(a)
	require.EqualError(t, err, `redislock: force unlock "": the name is empty`)
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.NoError(t, c.Close(background))
	require.EqualError(t, c.Mutex("it").LockContext(a), `redislock: lock "it": client closed`)
	require.EqualError(t, c.SimpleMutex("it").LockContext(a), `redislock: lock "it": client closed`)
}

func TestAnUpgradeNamesTheLockOnce(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, _ *redis.Client, addr string) {
		l, a := open(t, connect(t, addr)).RWMutex("it"), someone()
		hold(t, l.ReadMutex(), a)
		err := l.WriteLocker().LockContext(a)
		require.ErrorIs(t, err, locks.ErrUpgrade)
		require.EqualError(t, err, `redislock: lock "it": `+locks.ErrUpgrade.Error())
		require.NoError(t, l.ReadLocker().UnlockContext(a))
	})
}

func TestARefusedOptionSaysWhatIsAllowed(t *testing.T) {
	t.Parallel()
	c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", ReadTimeout: 3 * time.Second})
	t.Cleanup(func() { c.Close() })
	for text, o := range map[string]redislock.Option{
		"PubSub of 9, it must be Auto, Classic, Sharded or Both": redislock.WithPubSub(9),
		"fair wait of 1ms, at least 10ms is needed":              redislock.WithFairWait(time.Millisecond),
		"TTL of 0s, at least 1ms is needed":                      redislock.WithTTL(0),
	} {
		_, err := redislock.New(c, o)
		require.EqualError(t, err, "redislock: "+text)
	}
}

func TestARefusedLockNeverAsksTheServer(t *testing.T) {
	t.Parallel()
	down := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", DialerRetries: 1, MaxRetries: -1})
	t.Cleanup(func() { down.Close() })
	c := open(t, down)
	rw := c.RWMutex("")
	for name, l := range map[string]locks.TryLocker{
		"plain": c.Mutex(""), "fenced": c.FencedMutex(""), "simple": c.SimpleMutex(""), "fair": c.FairMutex(""),
		"read": rw.ReadLocker(), "write": rw.WriteLocker(),
	} {
		t.Run(name, func(t *testing.T) { testbed.Refused(t, l, "the name is empty") })
	}
}
