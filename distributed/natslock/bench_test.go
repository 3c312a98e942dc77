package natslock_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/internal/test/testbed"
)

// onEach runs a benchmark on a server alone, and on a cluster of three.
func onEach(b *testing.B, f func(b *testing.B, js func() jetstream.JetStream, bucket string)) {
	for _, n := range []int{1, 3} {
		b.Run(fmt.Sprint("servers=", n), func(b *testing.B) {
			servers := testbed.StartNATS(b, testbed.NATSCluster{Version: version, Servers: n})
			js := func() jetstream.JetStream { return connect(b, strings.Join(addrs(servers), ",")) }
			f(b, js, create(b, js(), n))
		})
	}
}

// BenchmarkRead measures one round trip.
func BenchmarkRead(b *testing.B) {
	onEach(b, func(b *testing.B, js func() jetstream.JetStream, bucket string) {
		l := open(b, js(), bucket).Mutex("it")
		for b.Loop() {
			if _, err := l.Inspect(background); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkUncontended(b *testing.B) {
	onEach(b, func(b *testing.B, js func() jetstream.JetStream, bucket string) {
		adaptertest.Uncontended(b, open(b, js(), bucket).Mutex("it"))
	})
}

func BenchmarkHandover(b *testing.B) {
	onEach(b, func(b *testing.B, js func() jetstream.JetStream, bucket string) {
		holder, next := open(b, js(), bucket).Mutex("it"), open(b, js(), bucket).Mutex("it")
		adaptertest.Handover(b, holder, next, 20*time.Millisecond)
	})
}
