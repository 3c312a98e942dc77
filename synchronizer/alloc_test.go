//go:build !lockexplore

package synchronizer_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/synchronizer"
)

// With the tag lockexplore, an operation that may fail announces its outcome, which allocates.
func TestAcquisitionWithoutWaitAllocatesNothing(t *testing.T) {
	s := synchronizer.New(permitRules{3}, 3, locks.FIFO)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		s.Acquire(1)
		_ = s.AcquireContext(ctx, 1)
		s.AcquireFor(1, time.Hour)
		s.TryAcquire(1)
		s.Release(3)
	}))
}
