package gcslock_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/gcslock"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestLocksPassTheKit(t *testing.T) {
	s := start(t)
	leasetest.TestStore(t, leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			c, err := gcslock.New(connectBy(tb, link.DialContext), bucketName, polling,
				gcslock.WithEndpoint(s.URL()), gcslock.WithLeaseOptions(opts...))
			require.NoError(tb, err)
			closeWith(tb, c)
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
					return link.Pipe(f.serve), nil
				})
				c, err := gcslock.New(client, bucketName, polling, gcslock.WithEndpoint("http://fake"),
					gcslock.WithLeaseOptions(opts...))
				require.NoError(tb, err)
				closeWith(tb, c)
				return c
			},
			Foreign: func(_ testing.TB, name string) {
				f.set(func() {
					f.last++
					f.objects["locks/"+name+".json"] = object{"a photograph", f.last}
				})
			},
		}
	})
}

func TestSemaphoresPassTheKit(t *testing.T) {
	s := start(t)
	leasetest.TestStore(t, leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			var inner driver.Store
			c, err := gcslock.New(connectBy(tb, link.DialContext), bucketName, polling,
				gcslock.WithEndpoint(s.URL()),
				gcslock.WithLeaseOptions(lease.WithWrapper(func(of driver.Store) driver.Store {
					inner = of
					return of
				})))
			require.NoError(tb, err)
			closeWith(tb, c)
			c.Semaphore("it", 1) // opens the Store of semaphores
			lc, err := lease.New(inner, opts...)
			require.NoError(tb, err)
			closeWith(tb, lc)
			return checked{lc, documentsAt(tb, s).(caslock.NameChecker)}
		},
		Semaphore: func(p locks.Provider, name string, size int64) locks.Semaphore {
			return p.(checked).Semaphore(name, size)
		},
		Foreign: func(tb testing.TB, name string) { put(tb, s, "locks/"+name+".semaphore.json", "a photograph") },
		Rest: func(tb testing.TB, name string) {
			document := "locks/" + name + ".semaphore.json"
			data, _ := get(tb, s, document)
			if !strings.HasPrefix(string(data), `{"cassemaphore"`) {
				return
			}
			if strings.Contains(string(data), "holders") { // a client that died may have written last
				testbed.TakeAll(tb, openAt(tb, s, polling).Semaphore(name, 1<<30))
				data, _ = get(tb, s, document)
			}
			assert.NotContains(tb, string(data), "holders")
		},
	})
}

// checked has the locks of a Store of semaphores, and refuses the names that gcslock refuses.
type checked struct {
	*lease.Client
	names caslock.NameChecker
}

func (c checked) Locker(name string) locks.TryLocker {
	return c.Mutex(name, driver.WithRefusal(c.names.CheckName(name+".semaphore")))
}

// closeWith closes c with the test.
func closeWith(tb testing.TB, c interface {
	Close(ctx context.Context) error
}) {
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = c.Close(ctx) // it fails for a client that has died
	})
}
