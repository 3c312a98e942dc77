package zklock

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestAnAcquisitionThatWasLeftAsksNothing(t *testing.T) {
	c := new(core)
	c.life, c.end = context.WithCancelCause(t.Context())
	defer c.end(nil)
	st := newStore(c, queue{mutexMode})
	id := lease.HoldID{Name: "/it", Acquisition: "acquisition"}
	a := st.begin(lease.Request{HoldID: id})
	require.NoError(t, st.Leave(t.Context(), id))
	reply, err := a.ask(func(context.Context) (bool, error) {
		t.Error("it asks the server")
		return false, nil
	}, time.Second)
	require.NoError(t, err)
	require.False(t, reply.Held)
}

func TestAReleaseBesideRequestsLeavesNothing(t *testing.T) {
	t.Parallel()
	c, err := New(t.Context(), []string{testbed.StartZooKeeper(t).Addr()})
	require.NoError(t, err)
	defer c.Close(context.Background())
	ctx := t.Context()
	for i := range 100 {
		k := []kind{mutexes, semaphores}[i%2]
		st, name := c.stores[k], fmt.Sprint("/it", k)
		id := lease.HoldID{Name: name, Acquisition: fmt.Sprint(i)}
		var wg sync.WaitGroup
		for range 2 { // one of them is late
			wg.Go(func() {
				_, err := st.Enqueue(ctx, lease.Request{HoldID: id, TTL: time.Second})
				assert.NoError(t, err)
			})
		}
		time.Sleep(time.Duration(i) * 100 * time.Microsecond)
		_, err := st.Release(ctx, id)
		assert.NoError(t, err)
		wg.Wait()
		_, err = st.Release(ctx, id) // of the one that came after the first release
		require.NoError(t, err)
		for _, dir := range []string{name, name + locksDir, name + leasesDir} {
			require.Eventually(t, func() bool {
				s, err := c.core.session(ctx)
				require.NoError(t, err)
				children, err := childrenIf(ctx, s, dir)
				require.NoError(t, err)
				return len(arrived(children)) == 0
			}, 20*time.Second, time.Millisecond)
		}
	}
}
