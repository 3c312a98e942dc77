package lease

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestCloseWaitsForAnUnlockThatBeginsTogetherWithIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(struct{ Store }{})
		require.NoError(t, err)
		e, err := c.use("it", nil)
		require.NoError(t, err)
		e.mu.Lock()
		e.busy = true // as by an unlock, which finds Close under way when it wants to be a job
		e.mu.Unlock()
		var closed atomic.Bool
		go func() {
			require.NoError(t, c.Close(context.Background()))
			closed.Store(true)
		}()
		synctest.Wait()
		require.False(t, closed.Load())
		e.mu.Lock()
		e.settled()
		e.mu.Unlock()
		synctest.Wait()
		require.True(t, closed.Load())
	})
}
