package adaptertest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
)

// Uncontended measures an acquisition and a release without contention.
func Uncontended(b *testing.B, l locks.Locker) {
	owner := Owner()
	b.ReportAllocs()
	for b.Loop() {
		if err := l.LockContext(owner); err != nil {
			b.Fatal(err)
		}
		if err := l.UnlockContext(owner); err != nil {
			b.Fatal(err)
		}
	}
}

// Handover lets a lock go from one client to another client, which has waited for a time. It
// reports the time from the call of the release to the return of the acquisition.
func Handover(b *testing.B, holder, next locks.Locker, wait time.Duration) {
	owners := [2]context.Context{Owner(), Owner()}
	require.NoError(b, holder.LockContext(owners[0]))
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		got := make(chan time.Time)
		go func() {
			if err := next.LockContext(owners[1-i%2]); err != nil {
				b.Error(err)
			}
			got <- time.Now()
		}()
		time.Sleep(wait)
		began := time.Now()
		if err := holder.UnlockContext(owners[i%2]); err != nil {
			b.Fatal(err)
		}
		took = append(took, (<-got).Sub(began))
		holder, next = next, holder
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
	require.NoError(b, holder.UnlockContext(owners[len(took)%2]))
}
