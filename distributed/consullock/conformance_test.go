package consullock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/consullock"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
	"github.com/jucgo/locks/lockstest"
)

func TestLocksConform(t *testing.T) {
	addr := startServer(t)
	direct := connect(t, addr)
	_, err := direct.Status().Leader() // connects before the suite counts goroutines
	require.NoError(t, err)
	lockstest.TestTryLocker(t, lockstest.Config{
		New: func(tb testing.TB) locks.TryLocker {
			return open(tb, connect(tb, addr), term(testbed.ConformanceLease(tb))).Mutex(unused())
		},
		Owned:       true,
		Reentrant:   true,
		Leased:      true,
		FIFO:        true,
		SpuriousTry: true, // while the key changes
		Waiting:     func(l locks.TryLocker) int { return l.(*lease.Mutex).QueueLength() },
		Lose: func(l locks.TryLocker) {
			_, err := direct.KV().Delete(consullock.DefaultPrefix+l.(*lease.Mutex).Name(), nil)
			require.NoError(t, err)
		},
		Rounds:     40,
		Goroutines: 4,
		Settle:     20 * time.Millisecond,
		Timeout:    testbed.Hang,
	})
}
