package gcslock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
)

// BenchmarkPair has an acquisition and a release without contention, beside one read and one write.
func BenchmarkPair(b *testing.B) {
	s := start(b)
	l := openAt(b, s).Mutex("it")
	adaptertest.Pair(b, l)
	b.Run("Mutex", func(b *testing.B) {
		for b.Loop() {
			adaptertest.Pair(b, l)
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
	adaptertest.Handover(b, first, second, 400*time.Millisecond)
}
