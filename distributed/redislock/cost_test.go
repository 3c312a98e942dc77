package redislock_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

// carriedOut returns how many commands the server has carried out since the last reset, also inside
// of scripts, but for the commands that count and reset.
func carriedOut(t *testing.T, c *redis.Client) (n int, text string) {
	t.Helper()
	text = c.Info(background, "commandstats").Val()
	for line := range strings.Lines(text) {
		name, _, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":calls=")
		if ok && name != "info" && !strings.HasPrefix(name, "config") {
			n += commands(t, c, name)
		}
	}
	return n, text
}

// No command can be left out. An acquisition sees that the lock is free, and writes its field and
// its time. A release deletes the field, looks for waiters of ours, and tells Redisson's waiters.
// See the table in the README.
func TestALockAndAnUnlockTakeTheseCommands(t *testing.T) {
	t.Parallel()
	direct := connect(t, startServer(t).Addr)
	for kind, want := range map[string]int{
		"plain":  8,  // evalsha, pttl, hset, pexpire; evalsha, hdel, lpop, publish
		"fenced": 10, // the same with time, getset
		"fair":   8,
		"simple": 8,  // evalsha, get, set; evalsha, get, del, lpop, publish
		"write":  9,  // evalsha, pttl, hset, pexpire; evalsha, hgetall, del, lindex, publish
		"read":   11, // the same with set of the hold, and hdel and hlen for hgetall
	} {
		l := suite.AllKinds[kind](open(t, direct), "it of "+kind)
		a := someone()
		least, text := 1000, ""
		for range 5 { // a client tells of itself now and then
			require.NoError(t, direct.ConfigResetStat(background).Err())
			require.NoError(t, l.LockContext(a))
			require.NoError(t, l.UnlockContext(a))
			if n, all := carriedOut(t, direct); n < least {
				least, text = n, all
			}
		}
		require.Equal(t, want, least, "%s: %s", kind, text)
	}
}

func TestATokenIsTheNextNumberOrTheTimeIfThatIsLarger(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		l := open(t, connect(t, addr)).FencedMutex("it")
		const counter, ahead = "redisson_lock_token:{it}", uint64(9_000_000_000_000_000)
		for _, before := range []string{"", "0", "7", "-7", "9000000000000000"} {
			require.NoError(t, direct.Del(background, counter).Err())
			if before != "" {
				require.NoError(t, direct.Set(background, counter, before, 0).Err())
			}
			a := someone()
			token := hold(t, l, a).Token()
			if before == "9000000000000000" {
				require.Equal(t, ahead+1, token)
			} else {
				require.InDelta(t, time.Now().UnixMicro(), token, float64(time.Hour.Microseconds()), "after %q", before)
			}
			require.Equal(t, strconv.FormatUint(token, 10), direct.Get(background, counter).Val())
			require.NoError(t, l.UnlockContext(a))
		}
		require.NoError(t, direct.Set(background, counter, "seven", 0).Err())
		require.Error(t, l.LockContext(someone()))
		require.Equal(t, "seven", direct.Get(background, counter).Val())
		require.Zero(t, direct.Exists(background, "it").Val())
	})
}
