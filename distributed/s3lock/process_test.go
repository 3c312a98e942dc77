package s3lock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/s3lock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestProcessesSellEachTicketOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s *testbed.S3) {
		testbed.Tickets{Role: "buy", Args: []string{s.Addr()}, Buyers: 60, Processes: 3}.Run(t)
	})
}

func TestAKilledProcessFreesItsLockAfterALease(t *testing.T) {
	onEach(t, func(t *testing.T, s *testbed.S3) {
		holder := testbed.Child(t, "hold", s.Addr(), "2s")
		require.Equal(t, "1", holder.Line())
		holder.Kill()
		l, owner := open(t, connect(t, s), polling).Mutex("it"), adaptertest.Owner()
		began := time.Now()
		require.NoError(t, l.LockContext(owner))
		require.GreaterOrEqual(t, time.Since(began), 2*time.Second, "since this client saw it first")
		require.EqualValues(t, 2, adaptertest.Token(t, l, owner))
		require.NoError(t, l.UnlockContext(owner))
	})
}

func TestAPausedHolderLearnsOfItsLoss(t *testing.T) {
	onEach(t, func(t *testing.T, s *testbed.S3) {
		holder := testbed.Child(t, "hold", s.Addr(), "2s")
		require.Equal(t, "1", holder.Line())
		holder.Pause()
		l, owner := open(t, connect(t, s), polling, s3lock.WithTTL(time.Minute)).Mutex("it"), adaptertest.Owner()
		require.NoError(t, l.LockContext(owner))
		holder.Resume()
		holder.Say("lost?")
		require.Equal(t, "true", holder.Line())
		require.NoError(t, l.UnlockContext(owner))
	})
}
