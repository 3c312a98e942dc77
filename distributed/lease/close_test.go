package lease

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/internal/test/testbed"
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

// The unlock begins when Close has found the hold, and before Close makes it lost.
func TestCloseWaitsForAnUnlockThatBeginsMeanwhile(t *testing.T) {
	c, err := New(struct{ driver.Store }{})
	require.NoError(t, err)
	q, err := c.queues.use("it", nil)
	require.NoError(t, err)
	g := &grant{s: &c.schedule, until: c.now().Add(time.Hour), index: -1}
	q.grant = g
	g.mu.Lock() // Close waits for it with the hold that it has found
	closed := make(chan error, 1)
	go func() { closed <- c.Close(context.Background()) }()
	testbed.Await(t, func() bool { return testbed.WaitsForMutex("(*releaser).close") })
	q.mu.Lock()
	q.grant, q.busy = nil, true
	q.mu.Unlock()
	g.gone = true // as after the first step of the unlock
	g.mu.Unlock()
	select {
	case err := <-closed:
		require.Fail(t, "Close has not waited", "%v", err)
	case <-time.After(50 * time.Millisecond):
	}
	q.finish()
	require.NoError(t, <-closed)
}
