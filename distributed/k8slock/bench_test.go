package k8slock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/internal/test/testbed"
)

// BenchmarkUncontended has a lock and an unlock whose version is known, beside one round trip.
func BenchmarkUncontended(b *testing.B) {
	k := testbed.StartKubernetes(b)
	api := connect(b, k)
	l, owner := open(b, api).Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(b, l, owner)
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

func BenchmarkHandover(b *testing.B) {
	k := testbed.StartKubernetes(b)
	holder, next := open(b, connect(b, k)).Mutex("it"), open(b, connect(b, k)).Mutex("it")
	adaptertest.Handover(b, holder, next, 100*time.Millisecond)
}
