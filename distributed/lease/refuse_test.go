package lease_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/internal/test/testbed"
)

// versatile is a store with all that a method of a lock may ask for.
type versatile struct{ *inspected }

func (v versatile) Break(ctx context.Context, name string) (bool, error) {
	return mighty{v.client}.Break(ctx, name)
}

func TestARefusedLockNeverAsksTheStore(t *testing.T) {
	bad := errors.New("the name is bad")
	s := newServer()
	lc, err := lease.New(versatile{&inspected{client: s.connect()}}, lease.WithTTL(term))
	require.NoError(t, err)
	defer lc.Close(t.Context())
	ctx := as(locks.NewOwner())
	hold(t, lc.Mutex("it"), ctx)
	acquired := s.count("acquire")
	for name, opts := range map[string][]lease.MutexOption{"exclusive": nil, "shared": {lease.WithShared()}} {
		t.Run(name, func(t *testing.T) {
			l := lc.Mutex("it", append(opts, driver.WithRefusal(bad))...)
			testbed.Refused(t, l, bad.Error())
			require.ErrorIs(t, l.UnlockContext(ctx), bad, "an adapter may have cut the name to one that is held")
			require.Zero(t, s.count("force"))
			require.Equal(t, acquired, s.count("acquire"))
		})
	}
}
