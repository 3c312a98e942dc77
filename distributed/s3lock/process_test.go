package s3lock_test

import (
	"testing"
	"time"

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
		adaptertest.TestKilledHolder(t, holder, open(t, connect(t, s), polling).Mutex("it"))
	})
}

func TestAPausedHolderLearnsOfItsLoss(t *testing.T) {
	onEach(t, func(t *testing.T, s *testbed.S3) {
		holder := testbed.Child(t, "hold", s.Addr(), "2s")
		adaptertest.TestPausedHolder(t, holder, open(t, connect(t, s), polling, s3lock.WithTTL(time.Minute)).Mutex("it"))
	})
}
