package gcslock_test

import (
	"testing"
	"time"

	"github.com/jucgo/locks/distributed/gcslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestProcessesSellEachTicketOnce(t *testing.T) {
	testbed.Tickets{Role: "buy", Args: []string{start(t).URL()}, Buyers: 60, Processes: 3}.Run(t)
}

func TestAKilledProcessFreesItsLockAfterALease(t *testing.T) {
	t.Parallel()
	s := start(t)
	adaptertest.TestKilledHolder(t, testbed.Child(t, "hold", s.URL(), "2s"), openAt(t, s, polling).Mutex("it"))
}

func TestAPausedHolderLearnsOfItsLoss(t *testing.T) {
	t.Parallel()
	s := start(t)
	l := openAt(t, s, polling, gcslock.WithTTL(time.Minute)).Mutex("it")
	adaptertest.TestPausedHolder(t, testbed.Child(t, "hold", s.URL(), "2s"), l)
}
