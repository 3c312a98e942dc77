package consullock

import (
	"context"
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease"
)

func TestAMissingRightIsNoConflictWhateverTheKey(t *testing.T) {
	for _, key := range []string{"index", "exist", "held", "invalid session", "due to lock delay"} {
		refusal, err := refusalOf(api.TxnErrors{{What: `Permission denied: token with AccessorID '1' ` +
			`lacks permission 'key:write' on "locks/` + key + `"`}})
		require.NoError(t, refusal, key)
		require.ErrorIs(t, err, lease.ErrRefused, key)
		require.ErrorContains(t, err, "Permission denied", key)
	}
}

func TestAQueryWithoutAnIndexWaits(t *testing.T) {
	s := newStore(nil, options{ttl: DefaultTTL})
	defer s.stop()
	for _, last := range []uint64{0, 7, 3} { // none, more, and less than before
		index := uint64(5)
		require.NoError(t, s.await(context.Background(), &index, func(*api.QueryOptions) (*api.QueryMeta, error) {
			return &api.QueryMeta{LastIndex: last}, nil
		}))
		require.Equal(t, max(last, 1), index)
	}
}
