package natslock_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/natslock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestOneServerPassesTheKit(t *testing.T) { prove(t, []*testbed.NATS{startServer(t)}) }

func TestAClusterPassesTheKit(t *testing.T) { prove(t, startCluster(t)) }

func TestSemaphoresPassTheKit(t *testing.T) {
	urls := strings.Join(addrs([]*testbed.NATS{startServer(t)}), ",")
	direct := connect(t, urls)
	bucket := create(t, direct, 1)
	kv, err := direct.KeyValue(background, bucket)
	require.NoError(t, err)
	adaptertest.TestSemaphores(t, adaptertest.Semaphores{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) *caslock.Client {
			js := connectFor(tb, urls, brief, nats.SetCustomDialer(linked{link}))
			c, err := natslock.New(background, js, bucket, caslock.WithLeaseOptions(opts...))
			require.NoError(tb, err)
			adaptertest.CloseWith(tb, c)
			return c
		},
		Get: func(tb testing.TB, key string) string {
			e, err := kv.Get(background, key)
			if err != nil {
				assert.ErrorIs(tb, err, jetstream.ErrKeyNotFound)
				return ""
			}
			return string(e.Value())
		},
		Put: func(tb testing.TB, key, data string) {
			_, err := kv.PutString(background, key, data)
			require.NoError(tb, err)
		},
	})
}

// linked leads all connections through a link, also the connections to servers that other servers
// tell of.
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
			adaptertest.CloseWith(tb, c)
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
