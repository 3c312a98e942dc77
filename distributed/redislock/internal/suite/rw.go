package suite

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
	"github.com/jucgo/locks/lockstest"
)

func conformRWOn(t *testing.T, on Driver, direct redis.UniversalClient, open opener) {
	flush(t, direct)
	for name, reader := range map[string]bool{"write": false, "read": true} {
		t.Run(name, func(t *testing.T) {
			writers := make(map[locks.TryLocker]locks.TryLocker)
			cfg := lockstest.Config{
				New: func(tb testing.TB) locks.TryLocker {
					flush(tb, direct)
					l := open(tb, Term(testbed.ConformanceLease(tb))).RWMutex("it")
					if !reader {
						return l.WriteLocker()
					}
					writers[l.ReadLocker()] = l.WriteLocker()
					return l.ReadLocker()
				},
				Owned:       true,
				Reentrant:   true,
				Leased:      true,
				SpuriousTry: true,
				Rounds:      30,
				Goroutines:  4,
				Settle:      10 * time.Millisecond,
				IgnoreLeaks: on.Leaks,
				Timeout:     Hang,
			}
			if reader {
				cfg.Exclusive = func(l locks.TryLocker) locks.TryLocker { return writers[l] }
			}
			lockstest.TestTryLocker(t, cfg)
		})
	}
}

func ReadWriteLocksConformOnMiniredis(t *testing.T, on Driver) {
	addr := miniredis.RunT(t).Addr()
	conformRWOn(t, on, Connect(t, addr), at(on, addr))
}

func ReadWriteLocksConformOnRedis(t *testing.T, on Driver) {
	addr := Addr(t)
	conformRWOn(t, on, Connect(t, addr), at(on, addr))
}

// Try acquires l if it is free.
func Try(t *testing.T, l *lease.Mutex, ctx context.Context) bool {
	t.Helper()
	ok, err := l.TryLockContext(ctx)
	require.NoError(t, err)
	return ok
}
