package fence_test

import (
	"errors"
	"math"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/fence"
)

func TestAGateRefusesSmallerTokensOnly(t *testing.T) {
	var g fence.Gate
	require.NoError(t, g.Check("it", 5))
	require.NoError(t, g.Check("it", 5), "a holder writes more than once")
	require.NoError(t, g.Check("it", 7))
	err := g.Check("it", 6)
	require.ErrorIs(t, err, fence.ErrStale)
	require.ErrorIs(t, err, locks.ErrLost)
	require.ErrorContains(t, err, `"it"`)
	require.EqualValues(t, 7, g.Highest("it"))
	require.NoError(t, g.Check("it", math.MaxUint64))
	require.ErrorIs(t, g.Check("it", math.MaxUint64-1), fence.ErrStale)
}

func TestAGateRefusesToken0(t *testing.T) {
	var g fence.Gate
	require.ErrorIs(t, g.Check("it", 0), fence.ErrNoToken)
	require.ErrorIs(t, g.Do("it", 0, func() error { panic("written") }), fence.ErrNoToken)
	require.NotErrorIs(t, g.Check("it", 0), fence.ErrStale)
}

func TestAGatesResourcesAreIndependent(t *testing.T) {
	var g fence.Gate
	require.NoError(t, g.Check("a", 9))
	require.NoError(t, g.Check("b", 1))
	require.Zero(t, g.Highest("c"))
	require.ErrorIs(t, g.Check("a", 8), fence.ErrStale, "a second resource leaves the first alone")
	g.Raise("b", 4)
	g.Raise("b", 3)
	require.ErrorIs(t, g.Check("b", 3), fence.ErrStale)
	g.Forget("b")
	require.NoError(t, g.Check("b", 1))
}

func TestAStaleWriteIsNotCarriedOut(t *testing.T) {
	var g fence.Gate
	failed := errors.New("failed")
	require.ErrorIs(t, g.Do("it", 2, func() error { return failed }), failed)
	require.ErrorIs(t, g.Do("it", 1, func() error { panic("written") }), fence.ErrStale)
	require.Panics(t, func() { g.Do("it", 3, func() error { panic("no") }) })
	require.ErrorIs(t, g.Do("it", 2, func() error { panic("written") }), fence.ErrStale)
	require.NoError(t, g.Do("it", 3, func() error { return nil }), "a panic leaves the gate open")
}

func TestConcurrentWritesHappenInTokenOrder(t *testing.T) {
	var g fence.Gate
	var written []uint64 // guarded by the gate
	var wg sync.WaitGroup
	for token := uint64(1); token <= 100; token++ {
		wg.Go(func() {
			err := g.Do("it", token, func() error {
				written = append(written, token)
				return nil
			})
			if err != nil {
				assert.ErrorIs(t, err, fence.ErrStale)
			}
		})
	}
	wg.Wait()
	require.IsNonDecreasing(t, written)
	require.EqualValues(t, 100, written[len(written)-1])
}
