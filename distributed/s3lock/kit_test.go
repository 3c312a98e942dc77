package s3lock_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
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
					return link.Pipe(f.Serve), nil
				})
				c, err := s3lock.New(client, bucketName, polling, s3lock.WithoutProbe(), s3lock.WithLeaseOptions(opts...))
				require.NoError(tb, err)
				adaptertest.CloseWith(tb, c)
				return c
			},
			Foreign: func(_ testing.TB, name string) {
				f.Set(func() { f.objects["locks/"+name+".json"] = "a photograph" })
			},
		}
	})
}

func TestSemaphoresPassTheKit(t *testing.T) {
	s := testbed.StartVersitygw(t, bucketName)
	direct := connect(t, s)
	adaptertest.TestSemaphores(t, adaptertest.Semaphores{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) *caslock.Client {
			c, err := s3lock.New(connectBy(tb, s.Addr(), link.DialContext), bucketName, polling,
				s3lock.WithoutProbe(), s3lock.WithLeaseOptions(opts...))
			require.NoError(tb, err)
			adaptertest.CloseWith(tb, c)
			return c
		},
		Get:   func(_ testing.TB, key string) string { return get(direct, "locks/"+key+".json") },
		Put:   func(tb testing.TB, key, data string) { put(tb, direct, "locks/"+key+".json", data) },
		Names: s3lock.Documents(direct, bucketName).(caslock.NameChecker),
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
			adaptertest.CloseWith(tb, c)
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
