package lease_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
)

// afterGivingUp closes a client whose caller has just given up a request, which gets the lock. down
// says that the store is away from then on.
func afterGivingUp(t *testing.T, s *server, down bool) error {
	conn := s.connect()
	conn.set(func(c *client) { c.delay["acquire"] = 10 * time.Millisecond })
	c := open(t, conn)
	ctx, cancel := context.WithTimeout(as(locks.NewOwner()), time.Millisecond)
	defer cancel()
	require.Error(t, c.Mutex("it").LockContext(ctx))
	time.Sleep(6 * time.Millisecond)
	require.NotEmpty(t, s.holder("it"), "the request is carried out after 5 ms")
	conn.set(func(c *client) { c.down = down })
	return c.Close(t.Context())
}

func TestCloseCountsAnAcquisitionThatIsBeingUndone(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		err := afterGivingUp(t, s, true)
		require.NotEmpty(t, s.holder("it"))
		require.ErrorContains(t, err, `1 of 1 locks not released, such as "it"`)
	})
}

func TestCloseReturnsNilIfAnUndoneLockIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		require.NoError(t, afterGivingUp(t, s, false))
		require.Empty(t, s.holder("it"))
	})
}
