package spin

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Otherwise the next waiter at the same place would get it.
func TestALimitThatEndsWhenThePermitIsOnItsWayWaitsForIt(t *testing.T) {
	ended, permit, arrived := make(chan struct{}), make(chan struct{}), make(chan struct{})
	close(ended)
	giveUp := func() bool {
		go func() {
			permit <- struct{}{}
			close(arrived)
		}()
		return false
	}
	require.True(t, limit{ctx: ended}.await(permit, giveUp))
	select {
	case <-arrived:
	case <-time.After(10 * time.Second):
		<-permit
		t.Fatal("nobody took it")
	}
	require.False(t, limit{ctx: ended}.await(permit, func() bool { return true }))
}
