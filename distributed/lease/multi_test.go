package lease_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease"
)

func TestMultiOrdersLocksOfTwoClientsByName(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		for range 20 {
			a, b := open(t, s.connect()), open(t, s.connect())
			var keys []string
			for _, l := range []*lease.Mutex{a.Mutex("1"), b.Mutex("2"), a.Mutex("3"), b.Mutex("30")} {
				keys = append(keys, l.LockKey())
			}
			require.True(t, slices.IsSorted(keys), "%q", keys)
			require.NotEqual(t, a.Mutex("1").LockKey(), b.Mutex("1").LockKey(), "they are not the same lock")
			require.Equal(t, a.Mutex("1").LockKey(), a.Mutex("1").LockKey())
		}
	})
}
