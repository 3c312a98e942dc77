package gcslock_test

import (
	"net/http"
	"testing"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/gcslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/internal/test/testbed"
	"github.com/jucgo/locks/lockstest"
)

func TestLocksConform(t *testing.T) {
	s := start(t)
	// Its connections end with their requests, since a test that Lose is part of counts goroutines.
	direct := open(t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, gcslock.WithEndpoint(s.URL()))
	lockstest.TestTryLocker(t, adaptertest.Conformance(func(tb testing.TB) *caslock.Client {
		return openAt(tb, s, polling, gcslock.WithTTL(testbed.ConformanceLease(tb)))
	}, direct))
}
