package redisson

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/redislock"
)

// inspectDescribesHoldersOfBothSides also checks that Java finds its locks as before, whatever
// our clients tell of themselves.
func inspectDescribesHoldersOfBothSides(t *testing.T, s *stage) {
	c := s.open(t, long, redislock.WithLabel("ours"))
	for _, kind := range []string{"plain", "fair", "fenced", "read", "write"} {
		name := fresh()
		l := lockOf(c, kind, name)
		inspect := func() locks.Info {
			i, err := l.Inspect(background)
			require.NoError(t, err, kind)
			require.Equal(t, kind == "read" && i.Held, i.Shared, kind)
			return i
		}
		require.False(t, inspect().Held, kind)
		s.java.must(t, name, "lock", kind, name, -1)
		i := inspect()
		require.Len(t, i.Holders, 1, kind)
		require.Regexp(t, `^[0-9a-f-]{36}:\d+$`, i.Holders[0].Label, kind)
		require.Positive(t, i.Holders[0].Left, kind)
		require.Equal(t, kind == "fenced", i.Holders[0].Token > 0)
		s.java.must(t, name, "unlock", kind, name)
		require.False(t, inspect().Held, kind)

		a := someone()
		hold(t, l, a)
		require.Equal(t, "ours", inspect().Holders[0].Label, kind)
		require.NoError(t, l.UnlockContext(a))
		s.java.must(t, name, "lock", kind, name, -1)
		s.java.must(t, name, "unlock", kind, name)
	}
}
