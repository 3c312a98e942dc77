package consullock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
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

// BenchmarkRead measures one round trip.
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
		adaptertest.Uncontended(b, open(b, client()).Mutex("it"))
	})
}

func BenchmarkHandover(b *testing.B) {
	onEach(b, func(b *testing.B, client func() *api.Client) {
		holder, next := open(b, client()).Mutex("it"), open(b, client()).Mutex("it")
		adaptertest.Handover(b, holder, next, 20*time.Millisecond)
	})
}
