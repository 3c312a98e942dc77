package consullock_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/consullock"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
)

func TestLocksPassTheKitOnOneServer(t *testing.T) { prove(t, startServer(t)) }

func TestLocksPassTheKitOnACluster(t *testing.T) { prove(t, addrs(startCluster(t))...) }

// prove runs the kit with clients of all servers.
func prove(t *testing.T, servers ...string) {
	const ttl = 3 * time.Second
	direct := connect(t, servers[0])
	var clients atomic.Int64
	leasetest.TestStore(t, leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			addr := servers[clients.Add(1)%int64(len(servers))]
			c, err := consullock.New(connectBy(tb, addr, "", link.DialContext),
				term(link.TTL()), consullock.WithLeaseOptions(opts...))
			require.NoError(tb, err)
			tb.Cleanup(func() {
				ctx, cancel := context.WithTimeout(background, 5*time.Second)
				defer cancel()
				_ = c.Close(ctx) // it fails for a client that has died
			})
			return c
		},
		SpuriousTry: true, // while the key changes
		TTL:         ttl,
		Foreign: func(tb testing.TB, name string) {
			other := &api.KVPair{Key: consullock.DefaultPrefix + name, Value: []byte("a photograph")}
			_, err := direct.KV().Put(other, nil)
			require.NoError(tb, err)
		},
		Rest: func(tb testing.TB, name string) {
			pair, _, err := direct.KV().Get(consullock.DefaultPrefix+name, nil)
			require.NoError(tb, err)
			if pair == nil || pair.Flags != api.LockFlagValue || pair.Session == "" {
				return
			}
			entry, _, err := direct.Session().Info(pair.Session, nil)
			require.NoError(tb, err)
			// The session of a client that has died lasts for up to two minutes.
			assert.True(tb, entry == nil || entry.TTL == time.Minute.String(), "%s is held by %v", name, entry)
		},
	})
}
