package redislock_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

// javaClient does to a server what Redisson's locks do, command by command.
type javaClient struct {
	c  *redis.Client
	id string
}

func (j javaClient) owner(thread int) string { return fmt.Sprintf("%s:%d", j.id, thread) }

// tryLock returns false and the time to live if another owner holds the lock.
func (j javaClient) tryLock(name string, thread int, lease time.Duration) (bool, time.Duration) {
	field := j.owner(thread)
	if j.c.Exists(background, name).Val() == 1 && !j.c.HExists(background, name, field).Val() {
		return false, j.c.PTTL(background, name).Val()
	}
	j.c.HIncrBy(background, name, field, 1)
	j.c.PExpire(background, name, lease)
	return true, 0
}

// unlock returns how many holds are left, and -1 if there were none.
func (j javaClient) unlock(name, channel string, thread int) int64 {
	field := j.owner(thread)
	if !j.c.HExists(background, name, field).Val() {
		return -1
	}
	n := j.c.HIncrBy(background, name, field, -1).Val()
	if n > 0 {
		j.c.PExpire(background, name, suite.Lasting)
		return n
	}
	j.c.Del(background, name)
	j.c.Publish(background, channel, "0")
	return 0
}

var names = []struct{ name, channel, token string }{
	{"it", "redisson_lock__channel:{it}", "redisson_lock_token:{it}"},
	{"a:{b}:c", "redisson_lock__channel:a:{b}:c", "redisson_lock_token:a:{b}:c"},
	{"half{", "redisson_lock__channel:half{", "redisson_lock_token:half{"},
	{"with space\r\n'\"$", "redisson_lock__channel:{with space\r\n'\"$}", "redisson_lock_token:{with space\r\n'\"$}"},
}

func TestStateOfThePlainLockIsRedissons(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		c := open(t, connect(t, addr), term(lease.DefaultLease))
		for _, n := range names {
			heard := direct.Subscribe(background, n.channel)
			_, err := heard.Receive(background)
			require.NoError(t, err)

			l, a := c.Mutex(n.name), someone()
			began := time.Now()
			require.NoError(t, l.LockContext(a))
			require.NoError(t, l.LockContext(a))
			state := direct.HGetAll(background, n.name).Val()
			require.Len(t, state, 1)
			for owner, count := range state {
				require.Regexp(t, `^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:\d+$`, owner)
				require.Equal(t, "1", count)
			}
			ttl := direct.PTTL(background, n.name).Val()
			require.LessOrEqual(t, ttl, 30*time.Second)
			require.Greater(t, ttl+time.Since(began), 29*time.Second)
			require.Equal(t, []string{n.name}, suite.Keys(direct),
				"nothing else is left in the database")

			require.NoError(t, l.UnlockContext(a))
			require.NoError(t, l.UnlockContext(a))
			require.Zero(t, direct.Exists(background, n.name).Val())
			m, err := heard.ReceiveMessage(background)
			require.NoError(t, err)
			require.Equal(t, "0", m.Payload)
			require.NoError(t, heard.Close())
		}
	})
}

func TestJavaAndGoExcludeAndWakeEachOther(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		c := open(t, connect(t, addr), rarely)
		for _, n := range names {
			java := javaClient{direct, "11111111-2222-4333-8444-555555555555"}
			l, a := c.Mutex(n.name), someone()

			// Java has it, twice. Go waits, and is woken by the second release.
			for range 2 {
				ok, _ := java.tryLock(n.name, 7, suite.Lasting)
				require.True(t, ok)
			}
			ok, err := l.TryLockContext(a)
			require.NoError(t, err)
			require.False(t, ok)
			got := make(chan error, 1)
			go func() { got <- l.LockContext(a) }()
			require.Eventually(t, func() bool {
				return direct.PubSubNumSub(background, n.channel).Val()[n.channel] == 1
			}, hang, time.Millisecond)
			require.EqualValues(t, 1, java.unlock(n.name, n.channel, 7))
			select {
			case <-got:
				t.Fatal("Java still has a hold")
			case <-time.After(20 * time.Millisecond):
			}
			began := time.Now()
			require.Zero(t, java.unlock(n.name, n.channel, 7))
			require.NoError(t, <-got)
			require.Less(t, time.Since(began), hang, "woken, not polled")

			// Go has it. Java waits, and is woken by the release.
			heard := direct.Subscribe(background, n.channel)
			_, err = heard.Receive(background)
			require.NoError(t, err)
			ok, ttl := java.tryLock(n.name, 7, suite.Lasting)
			require.False(t, ok)
			require.Greater(t, ttl, 20*time.Second)
			require.EqualValues(t, -1, java.unlock(n.name, n.channel, 7), "not the owner")
			require.NoError(t, l.UnlockContext(a))
			_, err = heard.ReceiveMessage(background)
			require.NoError(t, err)
			require.NoError(t, heard.Close())
			ok, _ = java.tryLock(n.name, 7, suite.Lasting)
			require.True(t, ok)
			require.Zero(t, java.unlock(n.name, n.channel, 7))
		}
	})
}

func TestTokenOfTheFencedLockIsRedissons(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		c := open(t, connect(t, addr))
		for _, n := range names {
			direct.Set(background, n.token, 41, 0) // by Java
			l, a := c.FencedMutex(n.name), someone()
			h := hold(t, l, a)
			require.Greater(t, h.Token(), uint64(42))
			require.Equal(t, fmt.Sprint(h.Token()), direct.Get(background, n.token).Val(), "Java counts on from there")
			require.EqualValues(t, -1, direct.PTTL(background, n.token).Val())
			ok, err := c.Mutex(n.name).TryLockContext(someone())
			require.NoError(t, err)
			require.False(t, ok, "a plain lock of the same name is the same lock")
			ok, err = open(t, connect(t, addr)).FencedMutex(n.name).TryLockContext(someone())
			require.NoError(t, err)
			require.False(t, ok)
			require.Equal(t, fmt.Sprint(h.Token()), direct.Get(background, n.token).Val(), "a refusal takes no token")
			require.NoError(t, l.UnlockContext(a))
			ahead := uint64(1)<<53 - 2 // of the server's clock
			direct.Set(background, n.token, ahead, 0)
			require.Equal(t, ahead+1, hold(t, l, a).Token(), "and our locks count on from there")
			require.NoError(t, l.UnlockContext(a))
		}
	})
}

func TestHoldersOfOneProcessHaveOwnTokens(t *testing.T) {
	s := miniredis.RunT(t)
	l := open(t, connect(t, s.Addr())).FencedMutex("it")
	const n = 20
	tokens := make(chan uint64, n)
	var wg sync.WaitGroup
	first := someone()
	hold(t, l, first)
	for range n {
		wg.Go(func() {
			a := someone()
			if !assert.NoError(t, l.LockContext(a)) {
				return
			}
			h, err := l.Hold(a)
			if assert.NoError(t, err) {
				tokens <- h.Token()
			}
			assert.NoError(t, l.UnlockContext(a))
		})
	}
	require.Eventually(t, func() bool { return l.QueueLength() == n }, hang, time.Millisecond)
	require.NoError(t, l.UnlockContext(first))
	wg.Wait()
	close(tokens)
	last := uint64(1)
	for token := range tokens {
		require.Greater(t, token, last)
		last = token
	}
}

func TestSimpleLocksAreOtherLibrariesStrings(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		c := open(t, connect(t, addr), term(lease.DefaultLease),
			redislock.WithLeaseOptions(lease.WithPoll(50*time.Millisecond)))
		l, a := c.SimpleMutex("it"), someone()
		began := time.Now()
		require.NoError(t, l.LockContext(a))
		require.False(t, direct.SetNX(background, "it", "other", time.Second).Val())
		require.Greater(t, direct.PTTL(background, "it").Val()+time.Since(began), 29*time.Second)
		require.NoError(t, l.UnlockContext(a))
		require.True(t, direct.SetNX(background, "it", "other", time.Minute).Val())
		ok, err := l.TryLockContext(a)
		require.NoError(t, err)
		require.False(t, ok)
		require.Equal(t, "other", direct.Get(background, "it").Val())
		got := make(chan error, 1)
		go func() { got <- l.LockContext(a) }()
		direct.Del(background, "it")
		require.NoError(t, <-got)
		require.NoError(t, l.UnlockContext(a))
	})
}

func TestOthersGetTheLockAfterItsTime(t *testing.T) {
	t.Parallel()
	s := miniredis.RunT(t)
	l := open(t, connect(t, s.Addr())).Mutex("it")
	java := javaClient{connect(t, s.Addr()), "java"}
	java.tryLock("it", 1, 10*time.Second)
	a := someone()
	ok, _ := l.TryLockContext(a)
	require.False(t, ok)
	s.FastForward(11 * time.Second)
	ok, err := l.TryLockContext(a)
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, l.UnlockContext(a))
}

func TestAWaiterGetsAnExpiredLockExactly(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	c := open(t, connect(t, s.Addr), rarely)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			l, a := c.Mutex(fmt.Sprint("it", i)), someone()
			for range 20 {
				direct.Eval(background, "redis.call('hset', KEYS[1], 'java:1', 1) redis.call('pexpire', KEYS[1], 20)",
					[]string{l.Name()})
				if assert.NoError(t, l.LockContext(a)) {
					assert.NoError(t, l.UnlockContext(a))
				}
			}
		})
	}
	wg.Wait()
	require.Less(t, time.Since(began), hang)
}

func TestWrongNamesLeasesAndClientsAreRefused(t *testing.T) {
	t.Parallel()
	s := miniredis.RunT(t)
	c := open(t, connect(t, s.Addr()))
	for _, l := range []*lease.Mutex{
		c.Mutex(""), c.Mutex(strings.Repeat("x", 4097)), c.FencedMutex(""), c.SimpleMutex(""),
		c.Mutex("it", lease.WithFixedTTL(0)), c.Mutex("it", lease.WithFixedTTL(-time.Second)), c.Mutex("it",
			lease.WithFixedTTL(time.Microsecond)),
	} {
		ok, err := l.TryLockContext(background)
		require.False(t, ok)
		require.Error(t, err)
		require.Error(t, l.LockContext(background))
		require.ErrorIs(t, l.UnlockContext(background), locks.ErrNotHeld)
	}
	require.Empty(t, suite.Keys(connect(t, s.Addr())))

	for _, none := range []redis.UniversalClient{nil, (*redis.Client)(nil), (*redis.ClusterClient)(nil)} {
		_, err := redislock.New(none)
		require.ErrorContains(t, err, "nil client")
	}
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": s.Addr()}})
	defer ring.Close()
	_, err := redislock.New(ring)
	require.ErrorContains(t, err, "Ring")
	_, err = redislock.New(connect(t, s.Addr()), redislock.WithPubSub(9))
	require.Error(t, err)
	for _, d := range []time.Duration{0, -1, -time.Hour, time.Microsecond} {
		_, err = redislock.New(connect(t, s.Addr()), term(d))
		require.Error(t, err)
	}
	_, err = redislock.New(connect(t, s.Addr()), redislock.WithFairWait(0))
	require.Error(t, err)
}

func TestTheLongestOfLeasesIsOne(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l, a := open(t, connect(t, s.Addr)).Mutex("it", lease.WithFixedTTL(math.MaxInt64)), someone()
	h := hold(t, l, a)
	require.NoError(t, h.Err())
	ttl, err := connect(t, s.Addr).Do(background, "pttl", "it").Int64()
	require.NoError(t, err)
	require.Greater(t, ttl, int64(200*365*24*time.Hour/time.Millisecond))
	require.NoError(t, l.UnlockContext(a))
}

func TestOnlyClustersRefuseNamesAcrossSlots(t *testing.T) {
	t.Parallel()
	_, cluster := startCluster(t)
	c := open(t, cluster)
	for _, name := range []string{"half{", "{}x", "a}b", "{", "}{", "x{}{y}"} {
		ok, err := c.Mutex(name).TryLockContext(background)
		require.False(t, ok)
		require.ErrorContains(t, err, "hash tag", name)
	}
	for _, name := range []string{"it", "{a}", "b{a}c{", "a{b}}"} {
		ctx, cancel := context.WithTimeout(someone(), hang)
		require.NoError(t, c.FencedMutex(name).LockContext(ctx), name)
		require.NoError(t, c.FencedMutex(name).UnlockContext(ctx), name)
		cancel()
	}
}
