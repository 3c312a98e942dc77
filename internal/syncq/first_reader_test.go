package syncq

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// eachReader returns the goroutines that have shared holds, and how many of them.
func eachReader(s *ReadWrite) map[int64]int {
	all := map[int64]int{}
	s.EachReader(func(o int64, holds int) { all[o] += holds })
	return all
}

func TestReadsThatFindLockFreeNeverBiasIt(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		for k := range int64(10 * unbiasedReads) {
			o := 2 + k%2
			require.True(t, s.Read(Owned(o)))
			require.Equal(t, oneHold|flagShared, s.Word.Load())
			require.True(t, s.ReleaseRead(o))
			require.Zero(t, s.Word.Load())
		}
	})
}

func TestTheFirstReaderIsInNoSlot(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		s.readers()
		for range 2 {
			require.True(t, s.Read(Owned(2)))
			require.True(t, s.Read(Owned(3)))
			require.NotNil(t, s.First(2))
			require.Zero(t, s.Slot(2).owner.Load())
			require.Nil(t, s.First(3))
			require.Equal(t, int64(-3), s.Slot(3).owner.Load())
			require.Equal(t, map[int64]int{2: 1, 3: 1}, eachReader(s))

			require.True(t, s.ReleaseRead(2))
			require.True(t, s.Read(Owned(4)))
			require.Nil(t, s.First(4), "the lock was not free")
			require.Equal(t, map[int64]int{3: 1, 4: 1}, eachReader(s))
			require.True(t, s.ReleaseRead(3))
			require.True(t, s.ReleaseRead(4))
			require.Zero(t, s.Word.Load())
		}
	})
}

func TestFirstReadersHoldsAreCountedUpToLimit(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		s.readers()
		require.True(t, s.Read(Owned(2)))
		require.True(t, s.Read(Owned(3)))
		require.Equal(t, Acquired, s.ReenterRead(2))
		require.Equal(t, map[int64]int{2: 2, 3: 1}, eachReader(s))
		s.First(2).reentries.set(MaxHolds - 1)
		require.Equal(t, TooMany, s.ReenterRead(2))
		require.False(t, s.First(2).Reenter())
		require.Equal(t, MaxHolds, s.ReadHolds(2))
		s.First(2).reentries.set(1)
		require.True(t, s.ReleaseRead(2))
		require.True(t, s.First(2) != nil && !s.First(2).Release(), "one hold is left")
		require.True(t, s.ReleaseRead(2))
		require.Nil(t, s.First(2))
		require.False(t, s.ReleaseRead(2))
		require.Equal(t, map[int64]int{3: 1}, eachReader(s))
		require.True(t, s.ReleaseRead(3))
	})
}

func TestTheFirstReaderUpgradesAndLeavesItsPlace(t *testing.T) {
	bothPolicies(t, func(t *testing.T, s *ReadWrite) {
		s.readers()
		require.True(t, s.Read(Owned(2)))
		require.Equal(t, Acquired, s.ReenterRead(2))
		require.Equal(t, Acquired, s.Upgrade(2))
		require.Equal(t, int64(2), s.Owner())
		require.Nil(t, s.First(2))
		require.Equal(t, 1, s.ReadHolds(2), "one of the two has become exclusive")
		require.True(t, s.Release(2))
		require.Equal(t, map[int64]int{2: 1}, eachReader(s))
		require.True(t, s.ReleaseRead(2))
		require.True(t, s.Read(Owned(3)))
		require.NotNil(t, s.First(3))
		require.True(t, s.ReleaseRead(3))
	})
}

// A fast path may end a hold by itself in the words of TryFree only.
func TestTryFreeLeavesALockWithWaiters(t *testing.T) {
	for _, value := range []uint64{Value(7), OneShared} {
		for flags, wants := range map[uint64]bool{
			0:                         true,
			flagQueued | flagWoken:    true,
			flagQueued:                false,
			flagQueued | flagReserved: false,
		} {
			var s ReadWrite
			s.Word.Store(value | flags)
			require.Equal(t, wants, s.TryFree(value|flags, value), "%#x", flags)
			if wants {
				require.Equal(t, flags, s.Word.Load())
			} else {
				require.Equal(t, value|flags, s.Word.Load())
			}
			for _, w := range []uint64{value | flags | flagVisible, value + oneHold | flags} {
				s.Word.Store(w)
				require.False(t, s.TryFree(w, value))
				require.Equal(t, w, s.Word.Load())
			}
		}
	}
}
