package gcslock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// BenchmarkPair has an acquisition and a release without contention, beside one read and one write.
func BenchmarkPair(b *testing.B) {
	s := start(b)
	l := openAt(b, s).Mutex("it")
	pair(b, l)
	b.Run("Mutex", func(b *testing.B) {
		for b.Loop() {
			pair(b, l)
		}
	})
	d := documentsAt(b, s)
	version, err := d.Swap(b.Context(), "another", []byte("data"), "")
	require.NoError(b, err)
	b.Run("Load", func(b *testing.B) {
		for b.Loop() {
			_, _, err := d.Load(b.Context(), "another")
			require.NoError(b, err)
		}
	})
	b.Run("Swap", func(b *testing.B) {
		for b.Loop() {
			version, err = d.Swap(b.Context(), "another", []byte("data"), version)
			require.NoError(b, err)
		}
	})
}

// BenchmarkHandOver has the time from a release to the next process, which has waited for 0.4 s.
func BenchmarkHandOver(b *testing.B) {
	s := start(b)
	first, second := openAt(b, s).Mutex("it"), openAt(b, s).Mutex("it")
	var all time.Duration
	for b.Loop() {
		holder, waiter := someone(), someone()
		require.NoError(b, first.LockContext(holder))
		got := make(chan time.Time)
		go func() {
			if second.LockContext(waiter) == nil {
				got <- time.Now()
			}
		}()
		time.Sleep(400 * time.Millisecond)
		released := time.Now()
		require.NoError(b, first.UnlockContext(holder))
		all += (<-got).Sub(released)
		require.NoError(b, second.UnlockContext(waiter))
	}
	b.ReportMetric(float64(all.Microseconds())/float64(b.N)/1000, "ms/handover")
}
