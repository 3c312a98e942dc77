package condition_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
)

// A context without an explicit owner stands for the calling goroutine.
func TestASignalByAContextOfTheGoroutineWakes(t *testing.T) {
	for name, lock := range map[string]func() sync.Locker{
		"reentrant.Mutex": func() sync.Locker { return new(reentrant.Mutex) },
		"fair.Mutex":      func() sync.Locker { return new(fair.Mutex) },
		"sync.Mutex":      func() sync.Locker { return new(sync.Mutex) },
	} {
		for what, x := range map[string]struct {
			signal func(c *condition.Cond, ctx context.Context) error
			left   int
		}{
			"SignalContext":    {(*condition.Cond).SignalContext, 1},
			"BroadcastContext": {(*condition.Cond).BroadcastContext, 0},
		} {
			t.Run(what+" of "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := lock()
					c := condition.New(l)
					var waiters sync.WaitGroup
					for range 2 {
						waiters.Go(func() {
							l.Lock()
							defer l.Unlock()
							assert.NoError(t, c.WaitContext(t.Context()))
						})
					}
					synctest.Wait()
					l.Lock()
					require.NoError(t, x.signal(c, t.Context()))
					require.Equal(t, x.left, c.WaitQueueLength())
					c.Broadcast()
					l.Unlock()
					waiters.Wait()
				})
			})
		}
	}
}
