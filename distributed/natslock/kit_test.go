package natslock_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/natslock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestOneServerPassesTheKit(t *testing.T) { prove(t, []*testbed.NATS{startServer(t)}) }

func TestAClusterPassesTheKit(t *testing.T) { prove(t, startCluster(t)) }

func TestSemaphoresPassTheKit(t *testing.T) {
	servers := []*testbed.NATS{startServer(t)}
	urls := strings.Join(addrs(servers), ",")
	direct := connect(t, urls)
	bucket := create(t, direct, 1)
	kv, err := direct.KeyValue(background, bucket)
	require.NoError(t, err)
	leasetest.TestStore(t, leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			js := connectFor(tb, urls, brief, nats.SetCustomDialer(linked{link}))
			var inner driver.Store
			c, err := natslock.New(background, js, bucket, caslock.WithLeaseOptions(
				lease.WithWrapper(func(of driver.Store) driver.Store {
					inner = of
					return of
				})))
			require.NoError(tb, err)
			closeWith(tb, c)
			c.Semaphore("it", 1) // opens the Store of semaphores
			lc, err := lease.New(inner, opts...)
			require.NoError(tb, err)
			closeWith(tb, lc)
			return lc
		},
		Semaphore: leasetest.Semaphores,
		Foreign: func(tb testing.TB, name string) {
			_, err := kv.PutString(background, name+".semaphore", "a photograph")
			require.NoError(tb, err)
		},
		Rest: func(tb testing.TB, name string) {
			e, err := kv.Get(background, name+".semaphore")
			if err != nil {
				assert.ErrorIs(tb, err, jetstream.ErrKeyNotFound)
				return
			}
			if !strings.HasPrefix(string(e.Value()), `{"cassemaphore"`) {
				return
			}
			if strings.Contains(string(e.Value()), "holders") { // a client that died may have written last
				testbed.TakeAll(tb, open(tb, direct, bucket).Semaphore(name, 1<<30))
				e, err = kv.Get(background, name+".semaphore")
				require.NoError(tb, err)
			}
			assert.NotContains(tb, string(e.Value()), "holders")
		},
	})
}

// closeWith closes c with the test.
func closeWith(tb testing.TB, c interface {
	Close(ctx context.Context) error
}) {
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(background, 5*time.Second)
		defer cancel()
		_ = c.Close(ctx) // it fails for a client that has died
	})
}

// linked has all connections go through a link, also those to servers that others tell of.
type linked struct{ *leasetest.Link }

func (l linked) Dial(network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(background, answer)
	defer cancel()
	return l.DialContext(ctx, network, addr)
}

// prove runs the kit on a bucket with a replica on each server.
func prove(t *testing.T, servers []*testbed.NATS) {
	t.Parallel()
	urls := strings.Join(addrs(servers), ",")
	direct := connect(t, urls)
	bucket := create(t, direct, len(servers))
	kv, err := direct.KeyValue(background, bucket)
	require.NoError(t, err)
	leasetest.TestStore(t, leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			js := connectFor(tb, urls, brief, nats.SetCustomDialer(linked{link}))
			c, err := natslock.New(background, js, bucket, caslock.WithLeaseOptions(opts...))
			require.NoError(tb, err)
			closeWith(tb, c)
			return c
		},
		Foreign: func(tb testing.TB, name string) {
			_, err := kv.PutString(background, name, "a photograph")
			require.NoError(tb, err)
		},
		Rest: func(tb testing.TB, name string) {
			e, err := kv.Get(background, name)
			if err != nil {
				assert.ErrorIs(tb, err, jetstream.ErrKeyNotFound)
				return
			}
			if strings.HasPrefix(string(e.Value()), `{"caslock"`) {
				r, err := caslock.JSON.Decode(e.Value())
				require.NoError(tb, err)
				assert.NotZero(tb, r.Token)
			}
		},
	})
}
