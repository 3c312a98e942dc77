package dynamolock_test

import (
	"testing"
	"time"

	"github.com/jucgo/locks/distributed/dynamolock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
)

// BenchmarkGetItem measures one round trip.
func BenchmarkGetItem(b *testing.B) {
	client := dial(b, startKumo(b))
	put(b, client, "it", map[string]string{"lock": "{}", "version": "1"})
	for b.Loop() {
		read(b, client, "it")
	}
}

// BenchmarkUncontended is a lock and an unlock whose version is known.
func BenchmarkUncontended(b *testing.B) {
	adaptertest.Uncontended(b, open(b, dial(b, startKumo(b))).Mutex("it"))
}

// BenchmarkHandover has the time from a release to the next process, which has waited for 0.4 s
// with the pauses that a client has by default.
func BenchmarkHandover(b *testing.B) {
	addr := startKumo(b)
	pauses := dynamolock.WithPolling(250*time.Millisecond, 5*time.Second)
	first, second := open(b, dial(b, addr), pauses).Mutex("it"), open(b, dial(b, addr), pauses).Mutex("it")
	adaptertest.Handover(b, first, second, 400*time.Millisecond)
}
