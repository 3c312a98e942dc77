package natslock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
	"github.com/jucgo/locks/lockstest"
)

func TestLocksConform(t *testing.T) {
	js := connect(t, startServer(t).Addr())
	bucket := create(t, js, 1)
	kv, err := js.KeyValue(background, bucket)
	require.NoError(t, err)
	lockstest.TestTryLocker(t, lockstest.Config{
		New: func(tb testing.TB) locks.TryLocker {
			return open(tb, js, bucket, caslock.WithTTL(testbed.ConformanceLease(tb))).Mutex(unused())
		},
		Owned:       true,
		Reentrant:   true,
		Leased:      true,
		FIFO:        true,
		SpuriousTry: true, // while another attempt fails
		Waiting:     func(l locks.TryLocker) int { return l.(*lease.Mutex).QueueLength() },
		Lose: func(l locks.TryLocker) {
			require.NoError(t, kv.Delete(background, l.(*lease.Mutex).Name()))
		},
		Rounds:     40,
		Goroutines: 4,
		Settle:     20 * time.Millisecond,
		Timeout:    testbed.Hang,
	})
}
