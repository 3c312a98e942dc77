package lease

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease/driver"
)

func TestCloseWaitsForASimultaneousUnlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(struct{ driver.Store }{})
		require.NoError(t, err)
		q, err := c.queues.use("it", nil)
		require.NoError(t, err)
		q.mu.Lock()
		q.busy = true // as by an unlock, which finds Close under way when it wants to be a job
		q.mu.Unlock()
		var closed atomic.Bool
		go func() {
			require.NoError(t, c.Close(context.Background()))
			closed.Store(true)
		}()
		synctest.Wait()
		require.False(t, closed.Load())
		q.mu.Lock()
		q.finishLocked()
		q.mu.Unlock()
		synctest.Wait()
		require.True(t, closed.Load())
	})
}
