package dynamolock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/dynamolock"
)

// BenchmarkGetItem is what one round trip costs.
func BenchmarkGetItem(b *testing.B) {
	client := dial(b, startKumo(b))
	put(b, client, "it", map[string]string{"lock": "{}", "version": "1"})
	for b.Loop() {
		read(b, client, "it")
	}
}

// BenchmarkUncontended is a lock and an unlock whose version is known.
func BenchmarkUncontended(b *testing.B) {
	l, owner := open(b, dial(b, startKumo(b))).Mutex("it"), someone()
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, l.LockContext(owner))
		require.NoError(b, l.UnlockContext(owner))
	}
}

// BenchmarkHandover has the time from a release to the next process, which has waited for 0.4 s
// with the pauses that a client has by default.
func BenchmarkHandover(b *testing.B) {
	addr := startKumo(b)
	pauses := dynamolock.WithPolling(250*time.Millisecond, 5*time.Second)
	first, second := open(b, dial(b, addr), pauses).Mutex("it"), open(b, dial(b, addr), pauses).Mutex("it")
	var all time.Duration
	for b.Loop() {
		holder, waiter := someone(), someone()
		require.NoError(b, first.LockContext(holder))
		got := make(chan time.Time)
		go func() {
			if err := second.LockContext(waiter); err != nil {
				b.Error(err)
			}
			got <- time.Now()
		}()
		time.Sleep(400 * time.Millisecond)
		released := time.Now()
		require.NoError(b, first.UnlockContext(holder))
		all += (<-got).Sub(released)
		require.NoError(b, second.UnlockContext(waiter))
	}
	b.ReportMetric(float64(all.Microseconds())/float64(b.N)/1000, "ms/handover")
}
