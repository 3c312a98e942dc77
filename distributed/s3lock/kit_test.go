package s3lock_test

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/s3lock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestLocksPassTheKitOnVersitygw(t *testing.T) {
	prove(t, testbed.StartVersitygw(t, bucketName), 0)
}

func TestLocksPassTheKitOnMoto(t *testing.T) {
	prove(t, motos.Lend(t), 0)
}

func TestLocksInMemoryPassTheKit(t *testing.T) {
	leasetest.TestInVirtualTime(t, func(testing.TB) leasetest.Config {
		f := newFake()
		return leasetest.Config{
			Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
				client := connectBy(tb, "fake", func(context.Context, string, string) (net.Conn, error) {
					return link.Pipe(f.serve), nil
				})
				c, err := s3lock.New(client, bucketName, polling, s3lock.WithoutProbe(), s3lock.WithLeaseOptions(opts...))
				require.NoError(tb, err)
				closeWith(tb, c)
				return c
			},
			Foreign: func(_ testing.TB, name string) {
				f.set(func() { f.objects["locks/"+name+".json"] = "a photograph" })
			},
		}
	})
}

func TestSemaphoresPassTheKit(t *testing.T) {
	s := testbed.StartVersitygw(t, bucketName)
	direct := connect(t, s)
	key := func(name string) string { return "locks/" + name + ".semaphore.json" }
	leasetest.TestStore(t, leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			var inner driver.Store
			c, err := s3lock.New(connectBy(tb, s.Addr(), link.DialContext), bucketName, polling,
				s3lock.WithoutProbe(),
				s3lock.WithLeaseOptions(lease.WithWrapper(func(of driver.Store) driver.Store {
					inner = of
					return of
				})))
			require.NoError(tb, err)
			closeWith(tb, c)
			c.Semaphore("it", 1) // opens the Store of semaphores
			lc, err := lease.New(inner, opts...)
			require.NoError(tb, err)
			closeWith(tb, lc)
			return checked{lc, s3lock.Documents(direct, bucketName).(caslock.NameChecker)}
		},
		Semaphore: func(p locks.Provider, name string, size int64) locks.Semaphore {
			return p.(checked).Semaphore(name, size)
		},
		Foreign: func(tb testing.TB, name string) { put(tb, direct, key(name), "a photograph") },
		Rest: func(tb testing.TB, name string) {
			data := get(direct, key(name))
			if !strings.HasPrefix(data, `{"cassemaphore"`) {
				return
			}
			if strings.Contains(data, "holders") { // a client that died may have written last
				testbed.TakeAll(tb, open(tb, direct, polling, s3lock.WithoutProbe()).Semaphore(name, 1<<30))
				data = get(direct, key(name))
			}
			assert.NotContains(tb, data, "holders")
		},
	})
}

// checked has the locks of a Store of semaphores, and refuses the names that s3lock refuses.
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

// get returns what is at a key, or nothing.
func get(direct *s3.Client, key string) string {
	in := &s3.GetObjectInput{Bucket: aws.String(bucketName), Key: &key}
	out, err := direct.GetObject(context.Background(), in)
	if err != nil {
		return ""
	}
	defer out.Body.Close()
	data, _ := io.ReadAll(out.Body)
	return string(data)
}

// prove runs the kit on locks in the bucket of a server.
func prove(t *testing.T, s *testbed.S3, ttl time.Duration) {
	t.Parallel()
	direct := connect(t, s)
	leasetest.TestStore(t, leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			c, err := s3lock.New(connectBy(tb, s.Addr(), link.DialContext), bucketName, polling,
				s3lock.WithoutProbe(), // 18 requests of each client. Other tests have it
				s3lock.WithLeaseOptions(opts...))
			require.NoError(tb, err)
			closeWith(tb, c)
			return c
		},
		TTL:     ttl,
		Foreign: func(tb testing.TB, name string) { put(tb, direct, "locks/"+name+".json", "a photograph") },
		Rest: func(tb testing.TB, name string) {
			data := get(direct, "locks/"+name+".json") // nothing if nobody has had the lock
			if r, err := caslock.JSON.Decode([]byte(data)); err == nil {
				assert.NotZero(tb, r.Token)
			}
		},
	})
}
