package s3lock_test

import (
	"testing"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestTheNextProcessLeadsAndIsCounted(t *testing.T) {
	s := testbed.StartVersitygw(t, bucketName)
	adaptertest.TestElection(t, func() locks.Leased { return open(t, connect(t, s), polling).Mutex("leader") })
}
