package gcslock_test

import (
	"context"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/gcslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
)

func TestLocksPassTheKit(t *testing.T) {
	s := start(t)
	leasetest.TestStore(t, leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			c, err := gcslock.New(connectBy(tb, link.DialContext), bucketName, polling,
				gcslock.WithEndpoint(s.URL()), gcslock.WithLeaseOptions(opts...))
			require.NoError(tb, err)
			adaptertest.CloseWith(tb, c)
			return c
		},
		Foreign: func(tb testing.TB, name string) { put(tb, s, "locks/"+name+".json", "a photograph") },
		Rest: func(tb testing.TB, name string) {
			data, _ := get(tb, s, "locks/"+name+".json") // nothing if nobody has had the lock
			if r, err := caslock.JSON.Decode(data); err == nil {
				assert.NotZero(tb, r.Token)
			}
		},
	})
}

func TestLocksInMemoryPassTheKit(t *testing.T) {
	leasetest.TestInVirtualTime(t, func(testing.TB) leasetest.Config {
		f := newFake()
		return leasetest.Config{
			Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
				client := connectBy(tb, func(context.Context, string, string) (net.Conn, error) {
					return link.Pipe(f.Serve), nil
				})
				c, err := gcslock.New(client, bucketName, polling, gcslock.WithEndpoint("http://fake"),
					gcslock.WithLeaseOptions(opts...))
				require.NoError(tb, err)
				adaptertest.CloseWith(tb, c)
				return c
			},
			Foreign: func(_ testing.TB, name string) {
				f.Set(func() {
					f.last++
					f.objects["locks/"+name+".json"] = object{"a photograph", f.last}
				})
			},
		}
	})
}

func TestSemaphoresPassTheKit(t *testing.T) {
	s := start(t)
	adaptertest.TestSemaphores(t, adaptertest.Semaphores{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) *caslock.Client {
			c, err := gcslock.New(connectBy(tb, link.DialContext), bucketName, polling,
				gcslock.WithEndpoint(s.URL()), gcslock.WithLeaseOptions(opts...))
			require.NoError(tb, err)
			adaptertest.CloseWith(tb, c)
			return c
		},
		Get: func(tb testing.TB, key string) string {
			data, _ := get(tb, s, "locks/"+key+".json")
			return string(data)
		},
		Put:   func(tb testing.TB, key, data string) { put(tb, s, "locks/"+key+".json", data) },
		Names: documentsAt(t, s).(caslock.NameChecker),
	})
}
