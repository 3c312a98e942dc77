package suite

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
)

// refusals are states in which a server refuses writes for a while.
var refusals = map[string]struct {
	begin, end func(t *testing.T, c *redis.Client)
}{
	"READONLY": {
		func(t *testing.T, c *redis.Client) {
			require.NoError(t, c.ReplicaOf(Background, "127.0.0.1", "1").Err())
		},
		func(t *testing.T, c *redis.Client) { require.NoError(t, c.ReplicaOf(Background, "NO", "ONE").Err()) },
	},
	"NOREPLICAS": {
		func(t *testing.T, c *redis.Client) {
			require.NoError(t, c.ConfigSet(Background, "min-replicas-to-write", "1").Err())
		},
		func(t *testing.T, c *redis.Client) {
			require.NoError(t, c.ConfigSet(Background, "min-replicas-to-write", "0").Err())
		},
	},
	"OOM": {fill, empty},
	"MISCONF": {
		func(t *testing.T, c *redis.Client) {
			dir := c.ConfigGet(Background, "dir").Val()["dir"]
			require.NoError(t, os.Mkdir(filepath.Join(dir, "dump.rdb"), 0o700)) // so that no file can be there
			require.NoError(t, c.ConfigSet(Background, "save", "3600 1").Err())
			require.NoError(t, c.BgSave(Background).Err())
			require.Eventually(t, func() bool {
				return strings.Contains(c.Info(Background, "persistence").Val(), "rdb_last_bgsave_status:err")
			}, Hang, 5*time.Millisecond)
		},
		func(t *testing.T, c *redis.Client) { require.NoError(t, c.ConfigSet(Background, "save", "").Err()) },
	},
}

func AnUnlockOutlastsAServerThatRefusesWrites(t *testing.T, on Driver) {
	t.Parallel()
	for text, refusal := range refusals {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			s := StartServer(t)
			direct := Patient(t, s.Addr)
			c := on.Open(t, s.Addr)
			a := Someone()
			done := make(map[string]chan error)
			for kind, lock := range AllKinds {
				l := lock(c, kind).(*lease.Mutex)
				Hold(t, l, a)
				done[kind] = make(chan error, 1)
			}
			refusal.begin(t, direct)
			for kind, lock := range AllKinds {
				go func() { done[kind] <- lock(c, kind).UnlockContext(a) }()
			}
			asked := func() int { return Commands(t, direct, "evalsha") + Commands(t, direct, "eval") }
			before := asked()
			require.Eventually(t, func() bool {
				// Redis 6 lets scripts write without replicas.
				return asked() > before+2*len(done) ||
					direct.Exists(Background, slices.Collect(maps.Keys(done))...).Val() == 0
			}, Hang, time.Millisecond, "they ask again")
			refusal.end(t, direct)
			for kind := range done {
				require.NoError(t, <-done[kind], kind)
				require.Zero(t, direct.Exists(Background, kind).Val(), kind)
			}
		})
	}
}

// fill has the server refuse commands that need memory.
func fill(t *testing.T, c *redis.Client) {
	require.NoError(t, c.ConfigSet(Background, "maxmemory", "1").Err())
}

func empty(t *testing.T, c *redis.Client) {
	require.NoError(t, c.ConfigSet(Background, "maxmemory", "0").Err())
}

func HoldsAndWaitersOutlastAFullMemory(t *testing.T, on Driver) {
	t.Parallel()
	s := StartServer(t)
	direct := Patient(t, s.Addr)
	c := on.Open(t, s.Addr, Term(Long))
	waiting := on.Open(t, s.Addr, redislock.WithLeaseOptions(lease.WithPoll(50*time.Millisecond)))
	semaphores := func(c *redislock.Client) map[string]locks.Semaphore {
		return map[string]locks.Semaphore{
			"permits":   c.Semaphore("permits", 1),
			"expirable": c.RedissonExpirableSemaphore("expirable"),
			"number":    c.RedissonSemaphore("number"),
		}
	}
	require.NoError(t, c.RedissonExpirableSemaphore("expirable").SetPermits(Background, 1))
	_, err := c.RedissonSemaphore("number").TrySetPermits(Background, 1)
	require.NoError(t, err)

	a, holds := Someone(), make(map[string]locks.Hold)
	permits, got := make(map[string]locks.Permits), make(map[string]chan error)
	for kind, lock := range AnyKind {
		holds[kind] = Hold(t, lock(c, kind).(*lease.Mutex), a)
	}
	for kind, s := range semaphores(c) {
		p, err := s.AcquireContext(Background, 1)
		require.NoError(t, err)
		permits[kind] = p
	}
	before := make(map[string]time.Time)
	for kind, p := range permits {
		before[kind], _ = p.Deadline()
	}
	begin := func(name string, acquire func() error) {
		done := make(chan error, 1)
		got[name] = done
		go func() { done <- acquire() }()
	}
	for kind, lock := range AnyKind {
		begin("held "+kind, func() error { return lock(waiting, kind).LockContext(Someone()) })
	}
	for kind, s := range semaphores(waiting) {
		begin(kind, func() error { _, err := s.AcquireContext(Background, 1); return err })
	}
	fill(t, direct)
	for kind, lock := range AnyKind {
		begin("free "+kind, func() error { return lock(waiting, "free "+kind).LockContext(Someone()) })
	}
	for kind, p := range permits {
		require.Eventually(t, func() bool {
			now, leased := p.Deadline()
			return !leased || now.After(before[kind])
		}, Hang, time.Millisecond, "%s is renewed", kind)
		require.NoError(t, p.Err(), kind)
		require.NoError(t, p.ReleaseContext(Background), kind)
	}
	for kind, lock := range AnyKind {
		require.NoError(t, holds[kind].Err(), kind)
		require.NoError(t, lock(c, kind).UnlockContext(a), kind)
	}
	time.Sleep(10 * 50 * time.Millisecond) // the waiters ask, and are refused
	empty(t, direct)
	for name, done := range got {
		require.NoError(t, <-done, name)
	}
}
