package dynamolock_test

import (
	"testing"

	"github.com/stretchr/testify/require"
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
