package redlock_test

import (
	"context"
	"testing"
)

// BenchmarkRedlock takes and releases a lock on five servers.
func BenchmarkRedlock(b *testing.B) {
	l := openMajority(b, startMasters(b).addrs()).Locker("it")
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := l.LockContext(ctx); err != nil {
			b.Fatal(err)
		}
		if err := l.UnlockContext(ctx); err != nil {
			b.Fatal(err)
		}
	}
}
