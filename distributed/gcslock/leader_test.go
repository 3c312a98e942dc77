package gcslock_test

import (
	"testing"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
)

func TestTheNextProcessLeadsAndIsCounted(t *testing.T) {
	s := start(t)
	adaptertest.TestElection(t, func() locks.Leased { return openAt(t, s, polling).Mutex("leader") })
}
