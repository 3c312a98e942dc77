package etcdlock_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
)

func TestAReleaseBesideRequestsLeavesNothing(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.addr)
	var store *leasetest.Requests
	open(t, direct, etcdlock.WithLeaseOptions(lease.WithWrapper(func(s lease.Store) lease.Store {
		store = leasetest.NewRequests(s)
		return store
	})))
	for i := range 100 {
		id := lease.HoldID{Name: "it", Acquisition: fmt.Sprint(i)}
		var wg sync.WaitGroup
		for range 2 { // one of them is late
			wg.Go(func() { _, _ = store.Enqueue(background, lease.Request{HoldID: id, TTL: time.Second}) })
		}
		time.Sleep(time.Duration(i) * 100 * time.Microsecond)
		_, err := store.Release(background, id)
		assert.NoError(t, err)
		wg.Wait()
		_, err = store.Release(background, id) // of the one that came after the first release
		require.NoError(t, err)
		queued(t, direct, "it/", 0)
	}
}
