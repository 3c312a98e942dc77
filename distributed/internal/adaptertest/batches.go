package adaptertest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease/driver"
)

// Acquire acquires n locks of s, and returns their holds.
func Acquire(t *testing.T, s driver.Store, n int, name func(i int) string) (ids []driver.HoldID) {
	t.Helper()
	for i := range n {
		id := driver.HoldID{Name: name(i), Acquisition: fmt.Sprint("acquisition:", i)}
		r, err := s.Acquire(context.Background(), driver.Request{HoldID: id, TTL: time.Minute})
		require.NoError(t, err)
		require.True(t, r.Held)
		ids = append(ids, id)
	}
	return ids
}

// RenewInBatches renews holds of s in batches of this size, all at the same time.
func RenewInBatches(t *testing.T, s driver.Store, ids []driver.HoldID, size int) {
	t.Helper()
	var batches sync.WaitGroup
	for some := range slices.Chunk(ids, size) {
		batches.Go(func() {
			ok, err := s.Renew(context.Background(), some, time.Minute)
			assert.NoError(t, err)
			assert.NotContains(t, ok, false)
		})
	}
	batches.Wait()
}
