package locks_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/rwlock"
)

// heap returns how many bytes the reachable objects take.
func heap() int64 {
	runtime.GC()
	runtime.GC() // a sync.Pool keeps its objects for one collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestALockKeepsNoMemoryOfABurst(t *testing.T) {
	const owners = 4000
	read := func() locks.TryLocker { return new(rwlock.RWMutex).ReadLocker() }
	goroutine := locks.Owner(1) << 40 // no goroutine of this test
	another := func() locks.Owner { goroutine++; return goroutine }
	for name, c := range map[string]struct {
		l     locks.TryLocker
		owner func() locks.Owner
	}{
		"explicit owners": {read(), locks.NewOwner},
		"goroutines":      {read(), another},
		"Multi":           {locks.Multi(read()), locks.NewOwner},
		"record":          {record.New(record.Options{}).Wrap("it", read()), locks.NewOwner},
	} {
		t.Run(name, func(t *testing.T) {
			crowd := func(n int) {
				all := make([]context.Context, n)
				for i := range all {
					all[i] = locks.WithOwner(t.Context(), c.owner())
					require.NoError(t, c.l.LockContext(all[i]))
				}
				for _, ctx := range all {
					require.NoError(t, c.l.UnlockContext(ctx))
				}
			}
			crowd(100) // makes what a lock keeps
			before := heap()
			crowd(owners)
			require.Less(t, heap()-before, int64(8*owners), "bytes")
			runtime.KeepAlive(c)
		})
	}
}
