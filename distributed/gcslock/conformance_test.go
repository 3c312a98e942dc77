package gcslock_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/gcslock"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
	"github.com/jucgo/locks/lockstest"
)

func TestLocksConform(t *testing.T) {
	s := start(t)
	// Its connections end with their requests, since a test that Lose is part of counts goroutines.
	direct := open(t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, gcslock.WithEndpoint(s.URL()))
	var n atomic.Int64
	lockstest.TestTryLocker(t, lockstest.Config{
		New: func(tb testing.TB) locks.TryLocker {
			c := openAt(tb, s, polling, gcslock.WithTTL(testbed.ConformanceLease(tb)))
			return c.Mutex(fmt.Sprint("it", n.Add(1)))
		},
		Owned:       true,
		Reentrant:   true,
		Leased:      true,
		FIFO:        true,
		SpuriousTry: true, // while another attempt fails
		Lose: func(l locks.TryLocker) {
			held := direct.Mutex(l.(*lease.Mutex).Name())
			if freed, err := held.ForceUnlock(context.Background()); err != nil || !freed {
				panic(fmt.Sprint(freed, err))
			}
		},
		Waiting:    func(l locks.TryLocker) int { return l.(*lease.Mutex).QueueLength() },
		Rounds:     20,
		Goroutines: 4,
		Settle:     10 * time.Millisecond,
		Timeout:    testbed.Hang,
	})
}
