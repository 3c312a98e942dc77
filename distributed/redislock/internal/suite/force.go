package suite

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
)

func AForcedUnlockTellsRemoteHoldersAtOnce(t *testing.T, on Driver) {
	t.Parallel()
	tell := func(t *testing.T, c, other *redislock.Client, listening func() int) {
		for kind, lock := range AllKinds {
			l, rest := lock(c, kind).(*lease.Mutex), listening()
			h := Hold(t, l, Someone())
			require.Eventually(t, func() bool { return listening() == rest+1 }, Hang, 5*time.Millisecond)
			require.NoError(t, h.Err())
			ok, err := lock(other, kind).(*lease.Mutex).ForceUnlock(Background)
			require.NoError(t, err)
			require.True(t, ok)
			select {
			case <-h.Lost():
				require.ErrorIs(t, h.Err(), locks.ErrLost)
				require.ErrorContains(t, h.Err(), "ForceUnlock")
			case <-time.After(Hang):
				t.Fatalf("the holder of the %s lock is not told", kind)
			}
		}
	}
	Servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		tell(t, on.Open(t, addr), on.Open(t, addr), func() int {
			return len(direct.PubSubChannels(Background, "locks_client:*").Val())
		})
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		nodes := StartNodes(t)
		tell(t, on.across(t, nodes), on.across(t, nodes), func() (n int) {
			for _, s := range nodes {
				n += len(Patient(t, s.Addr).PubSubShardChannels(Background, "locks_client:*").Val())
			}
			return n
		})
	})
}

func AFalseForcedUnlockNoticeEndsNoHold(t *testing.T, on Driver) {
	t.Parallel()
	addr := Addr(t)
	direct := Connect(t, addr)
	h := Hold(t, on.Open(t, addr).Mutex("it"), Someone())
	var channels []string
	require.Eventually(t, func() bool {
		channels = direct.PubSubChannels(Background, "locks_client:*").Val()
		return len(channels) == 1
	}, Hang, 5*time.Millisecond)
	holder := direct.HKeys(Background, "it").Val()[0]
	for _, message := range []string{"", "0", holder, "nobody it", holder + " it"} {
		asked := Commands(t, direct, "hexists")
		require.NoError(t, direct.Publish(Background, channels[0], message).Err())
		require.Eventually(t, func() bool { return Commands(t, direct, "hexists") > asked }, Hang, time.Millisecond)
	}
	require.NoError(t, h.Extend(Background, time.Minute))
	require.NoError(t, h.Err())
}
