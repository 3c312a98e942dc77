package spin

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/park"
)

// If the waiter left the permit behind, the next waiter at the same place would get the permit.
func TestACancelledWaiterAwaitsAComingPermit(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	end()
	var p park.Place
	p.Init()
	arrived, l := make(chan struct{}), park.Until(ctx)
	require.True(t, l.Open(&p))
	permit := p.Open()
	granted := func() bool {
		go func() {
			p.Unpark()
			close(arrived)
		}()
		return false
	}
	require.True(t, await(l, &p, granted))
	<-arrived
	require.Empty(t, permit, "the permit is left behind")
	require.False(t, await(l, &p, func() bool { return true }))
}
