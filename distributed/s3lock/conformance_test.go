package s3lock_test

import (
	"testing"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/s3lock"
	"github.com/jucgo/locks/internal/test/testbed"
	"github.com/jucgo/locks/lockstest"
)

func TestLocksConform(t *testing.T) {
	s := testbed.StartVersitygw(t, bucketName)
	direct := open(t, connect(t, s))
	lockstest.TestTryLocker(t, adaptertest.Conformance(func(tb testing.TB) *caslock.Client {
		return open(tb, connect(tb, s), polling, s3lock.WithTTL(testbed.ConformanceLease(tb)))
	}, direct))
}
