package k8slock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/test/testbed"
)

// BenchmarkUncontended has a lock and an unlock whose version is known, beside one round trip.
func BenchmarkUncontended(b *testing.B) {
	k := testbed.StartKubernetes(b)
	api := connect(b, k)
	l, owner := open(b, api).Mutex("it"), someone()
	hold(b, l, owner)
	require.NoError(b, l.UnlockContext(owner))
	b.Run("Mutex", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, l.LockContext(owner))
			require.NoError(b, l.UnlockContext(owner))
		}
	})
	cfg := config(b, k)
	cfg.QPS = -1 // client-go delays reads otherwise
	direct := dial(b, cfg)
	b.Run("Get", func(b *testing.B) {
		for b.Loop() {
			read(b, direct, "it")
		}
	})
}

// BenchmarkHandover has a lock change between two clients, of which the second has waited for 100
// ms. It reports the time from the call of the release to the return of the acquisition.
func BenchmarkHandover(b *testing.B) {
	k := testbed.StartKubernetes(b)
	holder, next := open(b, connect(b, k)).Mutex("it"), open(b, connect(b, k)).Mutex("it")
	owners := [2]context.Context{someone(), someone()}
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
		time.Sleep(100 * time.Millisecond)
		began := time.Now()
		require.NoError(b, holder.UnlockContext(owners[i%2]))
		took = append(took, (<-got).Sub(began))
		holder, next = next, holder
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
	require.NoError(b, holder.UnlockContext(owners[len(took)%2]))
}
