package redislock_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/suite"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestALostTokenCounterFollowsTheServersClock(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		const counter = "redisson_lock_token:{it}"
		l, a := open(t, connect(t, addr)).FencedMutex("it"), someone()
		before := hold(t, l, a).Token()
		require.GreaterOrEqual(t, before, uint64(time.Now().Add(-time.Hour).UnixMicro()))
		require.Less(t, before, uint64(1)<<53, "exact in a script")
		require.NoError(t, l.UnlockContext(a))
		require.Equal(t, fmt.Sprint(before), direct.Get(background, counter).Val(), "Redisson counts on from there")
		replicated := direct.Get(background, counter).Val()
		for _, lose := range []func() error{
			func() error { return direct.FlushAll(background).Err() },
			// A replica that lacks the last tokens has become the master.
			func() error { return direct.Set(background, counter, replicated, 0).Err() },
			// Redisson has begun the counter anew.
			func() error { return direct.Set(background, counter, 41, 0).Err() },
		} {
			for range 300 { // as fast as possible
				next := hold(t, l, a).Token()
				require.Greater(t, next, before)
				before = next
				require.NoError(t, l.UnlockContext(a))
			}
			require.NoError(t, lose())
		}
		require.Greater(t, hold(t, l, a).Token(), before)
		require.NoError(t, l.UnlockContext(a))
	})
}

func TestAnApplicationsHashUnderTheNameIsForeign(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		c := open(t, connect(t, addr))
		for name, fields := range map[string][]any{
			"user:42":  {"name", "Ann"},
			"user:43":  {"name", "Ann", "age", 30},
			"hits:44":  {"count", 7},
			"empty:45": {"", ""},
		} {
			require.NoError(t, direct.HSet(background, name, fields...).Err())
			before := direct.HGetAll(background, name).Val()
			for kind, lock := range kinds {
				if kind == "simple" {
					continue
				}
				l := lock(c, name)
				require.ErrorIs(t, l.LockContext(someone()), locks.ErrForeign, "%s %s", kind, name)
				_, err := l.TryLockContext(someone())
				require.ErrorIs(t, err, locks.ErrForeign, "%s %s", kind, name)
			}
			require.ErrorIs(t, c.FairMutex(name).LockContext(someone()), locks.ErrForeign, name)
			require.Equal(t, before, direct.HGetAll(background, name).Val())
		}
		require.Len(t, suite.Keys(direct), 4, "nothing is left beside them")
	})
}

func TestALockAwaitsAReplicaThatBecomesMaster(t *testing.T) {
	t.Parallel()
	master, s := startServer(t), startServer(t)
	host, port, err := net.SplitHostPort(master.Addr)
	require.NoError(t, err)
	direct := patient(t, s.Addr)
	require.NoError(t, direct.ReplicaOf(background, host, port).Err())
	require.Eventually(t, func() bool {
		return strings.Contains(direct.Info(background, "replication").Val(), "master_link_status:up")
	}, hang, 5*time.Millisecond)
	l, a := open(t, patient(t, s.Addr)).Mutex("it"), someone()
	ok, err := l.TryLockContext(a)
	require.False(t, ok)
	require.ErrorIs(t, err, lease.ErrUnavailable, "a try asks once")
	require.ErrorContains(t, err, "READONLY")
	got := begin(l, a)
	asked := commands(t, direct, "evalsha") + commands(t, direct, "eval")
	require.Eventually(t, func() bool {
		return commands(t, direct, "evalsha")+commands(t, direct,
			"eval") > asked+3
	}, hang, 5*time.Millisecond)
	require.Empty(t, got)
	require.NoError(t, direct.ReplicaOf(background, "NO", "ONE").Err())
	require.NoError(t, within(t, got))
	require.NoError(t, l.UnlockContext(a))
}

func TestAnUnreachableServerIsRetriedOnlyOnRequest(t *testing.T) {
	t.Parallel()
	addr := fmt.Sprintf("127.0.0.1:%d", testbed.Port(t))
	err := open(t, connect(t, addr)).Mutex("it").LockContext(someone())
	require.ErrorIs(t, err, lease.ErrUnreachable)
	conn, failed := connect(t, addr), make(unanswered, 1000)
	conn.AddHook(failed)
	retrying := redislock.WithLeaseOptions(lease.WithRetry(lease.RetryUnreachable))
	ctx, cancel := context.WithCancel(someone())
	defer cancel()
	got := make(chan error, 1)
	l := open(t, conn, retrying, suite.Brief).Mutex("it")
	go func() { got <- l.LockContext(ctx) }()
	failed.await(t, 6) // of several acquisitions
	require.Empty(t, got)
	cancel()
	err = <-got
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, lease.ErrUnreachable)
}

func TestAnUnlockEndsInTimeUnderAllOptions(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := leasetest.NewProxy(t, s.Addr)
	conn := redis.NewClient(&redis.Options{Addr: p.Addr(), ReadTimeout: -1, DisableIdentity: true})
	t.Cleanup(func() { conn.Close() })
	brief := redislock.WithLeaseOptions(lease.WithReleaseTimeout(400 * time.Millisecond))
	l, a := open(t, conn, brief).Mutex("it"), someone()
	hold(t, l, a)
	p.Cut()
	done := make(chan error, 1)
	go func() { done <- l.UnlockContext(a) }()
	err := within(t, done) // without the limit it never returns
	require.Error(t, err)
	require.NotErrorIs(t, err, context.DeadlineExceeded, "the caller's context has not ended")
	p.Reset() // the client's connections, and with them what it waits for
}

// confined are the rules of a user with the rights that the locks need, for names that begin with
// orders. The documentation of the package has this line.
const confined = `~orders* ~{orders* ~redisson_lock_token:{orders* ` +
	`~redisson_lock_queue:{orders* ~redisson_lock_timeout:{orders* ` +
	`~locks_waiting:{orders* ~locks_waiting_rw:{orders* ~locks_waiting_simple:{orders* ` +
	`~locks_permits:{orders* ~locks_waiting_permits:{orders* ~locks_permits_channel:{orders* ~redisson_sc:{orders* ` +
	`~locks_fence:{orders* ~locks_client:* ` +
	`~redisson_lock__channel:{orders* ~redisson_rwlock:{orders* ~locks_simple_channel:{orders* ` +
	`&redisson_lock__channel:{orders* &redisson_rwlock:{orders* &locks_simple_channel:{orders* ` +
	`&locks_permits_channel:{orders* &locks_waiting_permits:{orders* &redisson_sc:{orders* ` +
	`&locks_client:* &locks_waiting:{orders* &locks_waiting_rw:{orders* &locks_waiting_simple:{orders* ` +
	`-@all +eval +evalsha +ping +hello +subscribe +unsubscribe +publish +pubsub|numsub ` +
	`+hdel +hexists +hget +hgetall +hkeys +hlen +hmget +hscan +hset +pttl +pexpire +pexpireat +persist +exists ` +
	`+del +get +getset +set +incr +incrby +decrby +time ` +
	`+lindex +llen +lpop +lpos +lpush +lrange +lrem +rpush +zadd +zcard +zcount +zincrby ` +
	`+zrange +zrangebyscore +zrem +zscore +wait ` +
	`+ssubscribe +sunsubscribe +spublish +pubsub|shardnumsub`

// confine starts a server with a confined user, and returns how to connect as it.
func confine(t *testing.T) (direct *redis.Client, as func() *redis.Client) {
	s := startServer(t)
	direct = connect(t, s.Addr)
	rules := append([]any{"acl", "setuser", "locks", "on", ">secret"}, toAny(strings.Fields(confined))...)
	require.NoError(t, direct.Do(background, rules...).Err())
	return direct, func() *redis.Client {
		o := options(s.Addr, hang)
		o.Username, o.Password = "locks", "secret"
		conn := redis.NewClient(o)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
}

func TestAConfinedUserReachesNoNeighboursKey(t *testing.T) {
	t.Parallel()
	_, as := confine(t)
	c := as()
	for _, key := range []string{
		"payments", "{payments}:x", "redisson_lock_token:{payments}", "redisson_lock_queue:{payments}",
		"redisson_lock_timeout:{payments}", "locks_waiting:{payments}", "locks_waiting_rw:{payments}",
		"locks_waiting_simple:{payments}", "locks_waiting_permits:{payments}", "locks_permits:{payments}",
		"locks_fence:{payments}",
	} {
		require.ErrorContains(t, c.Set(background, key, "9", 0).Err(), "NOPERM", key)
		require.ErrorContains(t, c.Get(background, key).Err(), "NOPERM", key)
	}
	for _, channel := range []string{
		"redisson_lock__channel:{payments}", "redisson_rwlock:{payments}", "locks_simple_channel:{payments}",
		"locks_waiting:{payments}:1", "locks_waiting_rw:{payments}:1", "locks_waiting_simple:{payments}:1",
	} {
		require.ErrorContains(t, c.Publish(background, channel, "1").Err(), "NOPERM", channel)
	}
}

func TestAConfinedUserCanUseAllLocks(t *testing.T) {
	t.Parallel()
	direct, as := confine(t)
	c, d := open(t, as(), rarely), open(t, as(), rarely)
	for kind, lock := range suite.AllKinds {
		name := "orders:" + kind
		l, rival := lock(c, name).(*lease.Mutex), suite.AnyKind[suite.Against(kind)](d, name).(*lease.Mutex)
		a, b := someone(), someone()
		h := hold(t, l, a)
		require.NoError(t, h.Extend(background, time.Minute))
		got := begin(rival, b)
		require.Eventually(t, func() bool { return len(subscriptions(direct)) > 0 }, hang, time.Millisecond)
		require.NoError(t, l.UnlockContext(a))
		require.NoError(t, within(t, got), kind)
		_, err := rival.ForceUnlock(background)
		require.NoError(t, err, kind)
		require.Eventually(t, func() bool { return len(subscriptions(direct)) == 0 }, hang, 10*time.Millisecond)
	}
	mine, theirs := c.Semaphore("orders:permits", 1), d.Semaphore("orders:permits", 1)
	p := get(t, mine, 1)
	require.NoError(t, p.Extend(background, time.Minute))
	waiting := waits(background, theirs, 1)
	require.Eventually(t, func() bool { return len(subscriptions(direct)) > 0 }, hang, time.Millisecond)
	_, err := theirs.Inspect(background)
	require.NoError(t, err)
	require.NoError(t, p.ReleaseContext(background))
	require.NoError(t, (<-waiting).ReleaseContext(background))
	theirKind := c.RedissonExpirableSemaphore("orders:expirable")
	require.NoError(t, theirKind.SetPermits(background, 1))
	got := get(t, theirKind, 1)
	waiting = waits(background, d.RedissonExpirableSemaphore("orders:expirable"), 1)
	require.Eventually(t, func() bool { return len(subscriptions(direct)) > 0 }, hang, time.Millisecond)
	require.NoError(t, got.Extend(background, time.Minute))
	require.NoError(t, got.ReleaseContext(background))
	require.NoError(t, (<-waiting).ReleaseContext(background))
	number := c.RedissonSemaphore("orders:number")
	require.NoError(t, number.AddPermits(background, 1))
	require.NoError(t, get(t, number, 1).ReleaseContext(background))
	_, err = number.DrainPermits(background)
	require.NoError(t, err)
	rw := c.RWMutex("orders:readers")
	read, write := rw.ReadMutex(), rw.WriteMutex()
	a, b := someone(), someone()
	hold(t, write, a)
	hold(t, read, a)
	require.NoError(t, write.UnlockContext(a), "which leaves the lock to its readers")
	hold(t, read, b)
	require.NoError(t, read.UnlockContext(b))
	require.NoError(t, read.UnlockContext(a))
	gate, err := redislock.NewGate(as())
	require.NoError(t, err)
	require.NoError(t, gate.Set(background, "orders:1", 7, "paid"))
	log := direct.Do(background, "acl", "log").Val()
	require.Empty(t, log, "the server has refused something")
	err = c.Mutex("invoices").LockContext(someone())
	require.ErrorIs(t, err, lease.ErrRefused)
	require.ErrorContains(t, err, "NOPERM")
}

func toAny(all []string) (args []any) {
	for _, s := range all {
		args = append(args, s)
	}
	return args
}

func TestDeadFairWaitersCostOneGraceTogether(t *testing.T) {
	t.Parallel()
	l := newLine(t, 0)
	dies := float64(time.Now().Add(time.Hour).UnixMilli())
	for i := range 5 {
		dead := fmt.Sprintf("dead:%d", i)
		l.direct.ZAdd(background, fairTimes, redis.Z{Score: dies, Member: dead})
		l.direct.RPush(background, fairQueue, dead)
	}
	l.join(0, someone())
	l.queued(6)
	require.Less(t, l.finish(), hang, "and not the hour that their places last")
	require.Equal(t, []int{0}, l.order)
}

func TestAFairQueueExpiresUnlessRedissonWaits(t *testing.T) {
	t.Parallel()
	l := newLine(t, 2, term(lease.DefaultLease))
	ttl := func(key string) time.Duration { return l.direct.PTTL(background, key).Val() }
	for _, key := range []string{fairQueue, fairTimes} {
		require.Greater(t, ttl(key), 30*time.Second)
		require.Less(t, ttl(key), 65*time.Second, "of the lease and the fair wait")
	}
	l.direct.RPush(background, fairQueue, "java:1")
	l.direct.ZAdd(background, fairTimes,
		redis.Z{Score: float64(time.Now().Add(5 * time.Minute).UnixMilli()), Member: "java:1"})
	ctx, cancel := context.WithCancel(someone())
	l.join(2, ctx)
	l.queued(4)
	cancel()
	l.queued(3)
	for _, key := range []string{fairQueue, fairTimes} {
		require.Equal(t, time.Duration(-1), ttl(key), "its place is not ours to end")
	}
	l.direct.LRem(background, fairQueue, 0, "java:1")
	l.direct.ZRem(background, fairTimes, "java:1")
	l.finish()
}

// allCommands returns how many commands a server has carried out, in scripts or not.
func allCommands(t *testing.T, c *redis.Client) (n int) {
	for line := range strings.Lines(c.Info(background, "commandstats").Val()) {
		var calls int
		if _, rest, ok := strings.Cut(line, ":calls="); ok {
			_, err := fmt.Sscanf(rest, "%d,", &calls)
			require.NoError(t, err)
			n += calls
		}
	}
	return n
}

func TestAFairLockTakesConstantCommands(t *testing.T) {
	t.Parallel()
	each := func(n int) int {
		l := newLine(t, n)
		require.Eventually(t, func() bool { return len(subscriptions(l.direct)) == n }, hang, time.Millisecond)
		before := allCommands(t, l.direct)
		l.finish()
		return (allCommands(t, l.direct) - before) / n
	}
	few, many := each(4), each(32)
	require.Less(t, many, 2*few, "commands of an acquisition with 32 waiters, and with 4")
}
