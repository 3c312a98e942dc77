package suite

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
)

func NamesListsHeldLocks(t *testing.T, on Driver) {
	t.Parallel()
	Servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		c := on.Open(t, addr)
		ctx := Someone()
		held := []locks.TryLocker{c.Mutex("50%"), c.FencedMutex("a[b]c"), c.FairMutex("team/nightly"),
			c.Mutex("team/weekly"), c.Mutex("x*y"), c.Mutex("x1y"), c.Mutex("x\\y")}
		for _, l := range held {
			require.NoError(t, l.LockContext(ctx))
		}
		// Names lists none of the following keys.
		require.NoError(t, c.SimpleMutex("simple").LockContext(ctx))
		require.NoError(t, c.RWMutex("shared").ReadLocker().LockContext(ctx))
		require.NoError(t, direct.HSet(Background, "session", "user", 1).Err())
		require.NoError(t, direct.Expire(Background, "session", time.Hour).Err())
		require.NoError(t, direct.HSet(Background, "forever", "00000000-0000-4000-8000-000000000000:1", 1).Err())
		require.NoError(t, direct.HSet(Background, "large", "00000000-0000-4000-8000-000000000000:1", 1, "more", 1).Err())
		require.NoError(t, direct.Expire(Background, "large", time.Hour).Err())
		require.NoError(t, c.Mutex("free").LockContext(ctx))
		require.NoError(t, c.Mutex("free").UnlockContext(ctx))

		for pattern, want := range map[string][]string{
			"":            {"50%", "a[b]c", "team/nightly", "team/weekly", "x*y", "x1y", "x\\y"},
			"*":           {"50%", "a[b]c", "x*y", "x1y", "x\\y"},
			"team/*":      {"team/nightly", "team/weekly"},
			"team/weekly": {"team/weekly"},
			"x\\*y":       {"x*y"},
			"x?y":         {"x*y", "x1y", "x\\y"},
			"x\\\\y":      {"x\\y"},
			"a\\[b\\]c":   {"a[b]c"},
			"none":        nil,
		} {
			names, err := c.Names(Background, pattern)
			require.NoError(t, err, pattern)
			require.Equal(t, want, names, pattern)
		}
		_, err := c.Names(Background, "[")
		require.ErrorIs(t, err, path.ErrBadPattern)
		_, err = c.Names(nil, "") //nolint:staticcheck // what is tested
		require.ErrorIs(t, err, locks.ErrNilContext)
		ended, cancel := context.WithCancel(Background)
		cancel()
		_, err = c.Names(ended, "")
		require.ErrorIs(t, err, context.Canceled)
		require.True(t, strings.HasPrefix(err.Error(), "redislock: list names: "), err)
	})
}

// NamesOfAllMastersAreListed makes more locks than one step of the listing has.
func NamesOfAllMastersAreListed(t *testing.T, on Driver) {
	t.Parallel()
	c := on.across(t, StartNodes(t))
	ctx := Someone()
	var want []string
	for i := range 700 {
		name := fmt.Sprintf("lock %03d", i)
		require.NoError(t, c.Mutex(name).LockContext(ctx))
		want = append(want, name)
	}
	names, err := c.Names(Background, "")
	require.NoError(t, err)
	require.Equal(t, want, names)
	names, err = c.Names(Background, "lock 6?9")
	require.NoError(t, err)
	require.Equal(t, slices.DeleteFunc(want, func(name string) bool { return name[5] != '6' || name[7] != '9' }), names)
}
