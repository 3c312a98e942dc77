package lease_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease"
)

func TestLocksOfTwoClientsComeInTheOrderOfTheirNamesInEveryProcess(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		for range 20 {
			a, b := open(t, s.connect()), open(t, s.connect())
			var keys []string
			for _, l := range []*lease.Lock{a.Lock("1"), b.Lock("2"), a.Lock("3"), b.Lock("30")} {
				keys = append(keys, l.LockKey())
			}
			require.True(t, slices.IsSorted(keys), "%q", keys)
			require.NotEqual(t, a.Lock("1").LockKey(), b.Lock("1").LockKey(), "they are not the same lock")
			require.Equal(t, a.Lock("1").LockKey(), a.Lock("1").LockKey())
		}
	})
}
