package consullock_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/test/testbed"
)

// onEach runs a benchmark on a server alone, and on a cluster of three.
func onEach(b *testing.B, f func(b *testing.B, client func() *api.Client)) {
	for _, n := range []int{1, 3} {
		b.Run(fmt.Sprint("servers=", n), func(b *testing.B) {
			servers := testbed.StartConsul(b, testbed.ConsulCluster{Version: version, Servers: n})
			f(b, func() *api.Client { return connect(b, leader(b, servers, nil).Addr()) })
		})
	}
}

// BenchmarkRead is what one round trip costs.
func BenchmarkRead(b *testing.B) {
	onEach(b, func(b *testing.B, client func() *api.Client) {
		l := open(b, client()).Mutex("it")
		for b.Loop() {
			if _, err := l.Inspect(background); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkUncontended(b *testing.B) {
	onEach(b, func(b *testing.B, client func() *api.Client) {
		l := open(b, client()).Mutex("it")
		for b.Loop() {
			if err := l.LockContext(background); err != nil {
				b.Fatal(err)
			}
			if err := l.UnlockContext(background); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkHandover has a lock change between two clients, of which the second has waited for 20
// ms. It reports the time from the call of the release to the return of the acquisition.
func BenchmarkHandover(b *testing.B) {
	onEach(b, func(b *testing.B, client func() *api.Client) {
		holder, next := open(b, client()).Mutex("it"), open(b, client()).Mutex("it")
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
			time.Sleep(20 * time.Millisecond)
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
	})
}
