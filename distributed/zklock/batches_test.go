package zklock_test

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/zklock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// received returns how many packets a server has received.
func received(t *testing.T, s *testbed.ZooKeeper) int {
	t.Helper()
	found := regexp.MustCompile(`Received: (\d+)`).FindStringSubmatch(s.Ask("srvr"))
	require.NotNil(t, found)
	n, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return n
}

func TestBatchesOfRenewalsShareTheRequestForTheirSession(t *testing.T) {
	t.Parallel()
	s, link := zklock.LendServer(t), leasetest.NewLink(t)
	var store driver.Store
	open(t, s.Addr(), zklock.WithDialer(link.DialContext),
		zklock.WithLeaseOptions(lease.WithWrapper(func(s driver.Store) driver.Store {
			store = s
			return s
		})))
	ids := adaptertest.Acquire(t, store, 200, func(i int) string { return fmt.Sprint("/it", i) })
	adaptertest.RenewInBatches(t, store, ids, 200) // sets the watches that are not set
	link.Delay(100 * time.Millisecond)
	before := received(t, s)
	adaptertest.RenewInBatches(t, store, ids, 2)
	sent := received(t, s) - before
	t.Logf("%d packets", sent)
	require.LessOrEqual(t, sent, 50, "of 100 batches")
}

// So Close waits for thousands of answers at once, and not for one after the other.
func TestABatchOfReleasesIsSentAtOnce(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	p := leasetest.NewProxy(t, s.Addr())
	var store driver.Store
	open(t, p.Addr(), zklock.WithLeaseOptions(lease.WithWrapper(func(s driver.Store) driver.Store {
		store = s
		return s
	})))
	ids := adaptertest.Acquire(t, store, 100, func(i int) string { return fmt.Sprint("/it", i) })
	p.CutReplies()
	began := time.Now()
	_, _ = store.(driver.BatchReleaser).ReleaseAll(t.Context(), ids) // which waits a second for answers
	require.Less(t, time.Since(began), time.Duration(len(ids))*time.Second/2, "they are sent one after the other")
	direct := connect(t, s.Addr())
	for _, id := range ids {
		direct.queued(id.Name, 0)
	}
	p.Heal()
}
