package consullock_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/consullock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// slow is a fake whose renewals of sessions take a while. It counts them.
type slow struct {
	*fake
	renewals atomic.Int64
}

func (s *slow) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.URL.Path, "/v1/session/renew/") {
		s.renewals.Add(1)
		time.Sleep(10 * time.Millisecond)
	}
	return s.fake.RoundTrip(r)
}

func TestBatchesOfRenewalsShareTheRenewalOfTheirSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		agent := &slow{fake: newFake()}
		client, err := api.NewClient(&api.Config{Address: "fake", HttpClient: &http.Client{Transport: agent}})
		require.NoError(t, err)
		var store driver.Store
		c, err := consullock.New(client, consullock.WithLeaseOptions(lease.WithWrapper(func(s driver.Store) driver.Store {
			store = s
			return s
		})))
		require.NoError(t, err)
		ids := adaptertest.Acquire(t, store, 200, func(i int) string { return fmt.Sprint("it", i) })
		adaptertest.RenewInBatches(t, store, ids, 2)
		require.NotZero(t, agent.renewals.Load())
		require.LessOrEqual(t, agent.renewals.Load(), int64(2), "that of the first batch, and that of the others")
		require.NoError(t, c.Close(background))
	})
}
