package k8slock_test

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/k8slock"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/internal/test/testbed"
	"github.com/jucgo/locks/lockstest"
)

func TestLocksPassTheKit(t *testing.T) {
	k := testbed.StartKubernetes(t)
	direct := connect(t, k)
	leasetest.TestStore(t, leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			cfg := config(tb, k)
			cfg.Dial = link.DialContext
			c, err := k8slock.New(dial(tb, cfg), namespace, caslock.WithLeaseOptions(opts...))
			require.NoError(tb, err)
			tb.Cleanup(func() {
				ctx, cancel := context.WithTimeout(background, 5*time.Second)
				defer cancel()
				_ = c.Close(ctx) // it fails for a client that has died
			})
			return c
		},
		Foreign: func(tb testing.TB, name string) {
			strategy := coordinationv1.OldestEmulationVersion
			create(tb, direct, name, coordinationv1.LeaseSpec{Strategy: &strategy})
		},
		Rest: func(tb testing.TB, name string) {
			if o := read(tb, direct, name); o != nil && o.Spec.Strategy == nil {
				assert.NotZero(tb, *o.Spec.LeaseTransitions)
			}
		},
	})
}

func TestLocksInMemoryPassTheKit(t *testing.T) {
	leasetest.TestInVirtualTime(t, func(tb testing.TB) leasetest.Config {
		f := &fake{tb: tb, objects: make(map[string]coordinationv1.Lease)}
		return leasetest.Config{
			Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
				transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
					return link.Pipe(f.serve), nil
				}}
				tb.Cleanup(transport.CloseIdleConnections)
				c, err := k8slock.New(f.clientBy(transport), namespace, caslock.WithLeaseOptions(opts...))
				require.NoError(tb, err)
				tb.Cleanup(func() {
					ctx, cancel := context.WithTimeout(background, 5*time.Second)
					defer cancel()
					_ = c.Close(ctx) // it fails for a client that has died
				})
				return c
			},
			Foreign: func(_ testing.TB, name string) {
				f.mu.Lock()
				defer f.mu.Unlock()
				strategy := coordinationv1.OldestEmulationVersion
				f.version++
				foreign := coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{Strategy: &strategy}}
				foreign.Name, foreign.ResourceVersion = name, strconv.Itoa(f.version)
				f.objects[name] = foreign
			},
		}
	})
}

func TestLocksConform(t *testing.T) {
	k := testbed.StartKubernetes(t)
	direct := connect(t, k)
	read(t, direct, "connects") // before the suite counts goroutines
	names := make(map[locks.TryLocker]string)
	lockstest.TestTryLocker(t, lockstest.Config{
		New: func(tb testing.TB) locks.TryLocker {
			name := unused()
			l := open(tb, connect(tb, k), caslock.WithTTL(testbed.ConformanceLease(tb))).Mutex(name)
			names[l] = name
			return l
		},
		Owned:       true,
		Reentrant:   true,
		Leased:      true,
		FIFO:        true,
		SpuriousTry: true, // while another attempt fails
		Lose: func(l locks.TryLocker) {
			require.NoError(t, remove(direct, names[l]))
		},
		Waiting:    func(l locks.TryLocker) int { return l.(*lease.Mutex).QueueLength() },
		Rounds:     40,
		Goroutines: 4,
		Settle:     20 * time.Millisecond,
		Timeout:    time.Minute,
	})
}
