package redisson

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// TestOnAClusterEachSideWakesTheOther is about sharded channels, which Redisson takes since 3.22.0
// where the servers have them.
func TestOnAClusterEachSideWakesTheOther(t *testing.T) {
	t.Parallel()
	for version, modes := range map[string]map[string]redislock.PubSub{
		current: {"auto": redislock.Auto, "sharded": redislock.Sharded, "both": redislock.Both},
		before:  {"classic": redislock.Classic, "both": redislock.Both},
	} {
		t.Run(version, func(t *testing.T) {
			// By default the port of the bus is the other port plus 10000, which may be taken.
			addr, direct := startRedis(t, "--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1",
				"--cluster-port", strconv.Itoa(testbed.Port(t)))
			require.NoError(t, direct.ClusterAddSlotsRange(background, 0, 16383).Err())
			require.Eventually(t, func() bool {
				return strings.Contains(direct.ClusterInfo(background).Val(), "cluster_state:ok")
			}, patience, 10*time.Millisecond)
			conn := redis.NewClusterClient(&redis.ClusterOptions{
				Addrs: []string{addr}, DialTimeout: patience, ReadTimeout: patience, DisableIdentity: true,
			})
			t.Cleanup(func() { conn.Close() })
			java := startAgent(t, version, "cluster", addr, long)
			subscribed := func(name string) {
				t.Helper()
				require.Eventually(t, func() bool {
					return len(direct.PubSubChannels(background, "*"+name+"*").Val())+
						len(direct.PubSubShardChannels(background, "*"+name+"*").Val()) > 0
				}, patience, time.Millisecond)
			}
			for mode, pubsub := range modes {
				for _, kind := range kinds {
					t.Run(mode+" "+kind, func(t *testing.T) {
						name := fresh()
						l, a := lockOf(open(t, conn, long, redislock.WithPubSub(pubsub)), kind, name), someone()
						rival, b := lockOf(open(t, conn, long, redislock.WithPubSub(pubsub)), against(kind),
							name), someone()

						java.must(t, "a", "lock", against(kind), name, -1)
						got := start(l, a)
						subscribed(name)
						began := time.Now()
						java.must(t, "a", "unlock", against(kind), name)
						require.NoError(t, soon(t, got))
						require.NoError(t, l.UnlockContext(a))

						hold(t, rival, b)
						answer := java.start(name, "lock", kind, name, -1)
						subscribed(name)
						require.Eventually(t, func() bool { return java.asleep(t, name) }, patience, time.Millisecond)
						require.NoError(t, rival.UnlockContext(b))
						require.Equal(t, "true", soon(t, answer))
						require.Less(t, time.Since(began), woken)
						java.must(t, name, "unlock", kind, name)
					})
				}
			}
		})
	}
}
