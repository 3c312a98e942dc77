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
	"MISCONF": {
		func(t *testing.T, c *redis.Client) {
			dir := c.ConfigGet(Background, "dir").Val()["dir"]
			require.NoError(t, os.Mkdir(filepath.Join(dir, "dump.rdb"), 0o700)) // so that no file can be there
			require.NoError(t, c.ConfigSet(Background, "save", "3600 1").Err())
			require.NoError(t, c.BgSave(Background).Err())
			require.Eventually(t, func() bool {
				return strings.Contains(c.Info(Background, "persistence").Val(), "rdb_last_bgsave_status:err")
			}, 30*time.Second, 5*time.Millisecond)
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
			c := on.Open(t, s.Addr, redislock.WithLeaseOptions(lease.WithReleaseTimeout(Soon)))
			a := Someone()
			done := make(map[string]chan error)
			for kind, lock := range AllKinds {
				l := lock(c, kind).(*redislock.Mutex)
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
			}, Soon, time.Millisecond, "they ask again")
			refusal.end(t, direct)
			for kind := range done {
				require.NoError(t, <-done[kind], kind)
				require.Zero(t, direct.Exists(Background, kind).Val(), kind)
			}
		})
	}
}
