//go:build !lockexplore

package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/semaphore"
)

// With the tag lockexplore, an operation that may fail announces its outcome, which allocates.
func TestAcquireWithoutWaitAllocatesNothing(t *testing.T) {
	s := semaphore.NewWeighted(4)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_ = s.Acquire(ctx, 1)
		_ = s.Acquire(context.Background(), 1)
		s.TryAcquire(1)
		s.TryAcquireFor(1, time.Hour)
		s.Release(4)
	}))
}
