package lease_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
	"github.com/jucgo/locks/lockstest"
)

func TestLockConformsToTryLocker(t *testing.T) {
	for name, cohort := range map[string]int{"cohort": 64, "no cohort": 0} {
		t.Run(name, func(t *testing.T) {
			servers := make(map[locks.TryLocker]*server)
			lockstest.TestTryLocker(t, lockstest.Config{
				New: func(t testing.TB) locks.TryLocker {
					s := newServer()
					ttl := lease.WithTTL(testbed.ConformanceLease(t))
					c, err := lease.New(&inspected{client: s.connect()}, lease.WithMaxLocalHandoffs(cohort), ttl)
					require.NoError(t, err)
					t.Cleanup(func() { require.NoError(t, c.Close(t.Context())) })
					l := c.Mutex("it")
					servers[l] = s
					return l
				},
				Owned:       true,
				Reentrant:   true,
				Leased:      true,
				SpuriousTry: true, // see Mutex.TryLockContext
				FIFO:        true,
				Lose:        func(l locks.TryLocker) { servers[l].evict("it") },
				Waiting:     func(l locks.TryLocker) int { return l.(*lease.Mutex).QueueLength() },
			})
		})
	}
}
