package s3lock_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/s3lock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestLocksPassTheKitOnVersitygw(t *testing.T) {
	prove(t, testbed.StartVersitygw(t, bucketName), 0)
}

func TestLocksPassTheKitOnMoto(t *testing.T) {
	prove(t, startMoto(t, bucketName), 0)
}

// prove runs the kit on locks in the bucket of a server.
func prove(t *testing.T, s *testbed.S3, ttl time.Duration) {
	direct := connect(t, s)
	leasetest.TestStore(t, leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			c, err := s3lock.New(connectBy(tb, s.Addr(), link.DialContext), bucketName, polling,
				s3lock.WithoutProbe(), // 18 requests of each client. Other tests have it
				s3lock.WithLeaseOptions(opts...))
			require.NoError(tb, err)
			tb.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				_ = c.Close(ctx) // it fails for a client that has died
			})
			return c
		},
		TTL:     ttl,
		Foreign: func(tb testing.TB, name string) { put(tb, direct, "locks/"+name+".json", "a photograph") },
		Rest: func(tb testing.TB, name string) {
			key := "locks/" + name + ".json"
			in := &s3.GetObjectInput{Bucket: aws.String(bucketName), Key: &key}
			out, err := direct.GetObject(context.Background(), in)
			if err != nil {
				return // nobody has had the lock
			}
			defer out.Body.Close()
			data := make([]byte, caslock.MaxData)
			n, _ := out.Body.Read(data)
			if r, err := caslock.JSON.Decode(data[:n]); err == nil {
				assert.NotZero(tb, r.Token)
			}
		},
	})
}
