package s3lock_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/s3lock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	testbed.Main(testbed.Ending(m, motos.End), map[string]testbed.Role{"hold": holdLock, "buy": buy}, 8)
}

// bucketName is the bucket of all tests.
const bucketName = "locks-bucket"

// servers start or lend a server with the bucket, which is empty.
var servers = map[string]func(tb testing.TB) *testbed.S3{
	"versitygw": func(tb testing.TB) *testbed.S3 { return testbed.StartVersitygw(tb, bucketName) },
	"moto":      motos.Lend,
}

// motos are servers whose conditional writes are atomic.
var motos = testbed.Pool[*testbed.S3]{
	Start: func(tb testing.TB) *testbed.S3 { return testbed.StartMotoS3(tb, bucketName, 10*time.Second) },
	Empty: func(s *testbed.S3) error { return s.Empty(bucketName) },
}

// onEach runs a test on each server.
func onEach(t *testing.T, test func(t *testing.T, s *testbed.S3)) {
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

// onEachBucket runs a test of any store of documents on each server.
func onEachBucket(t *testing.T, test func(t *testing.T, open adaptertest.Opener)) {
	onEach(t, func(t *testing.T, s *testbed.S3) { test(t, at(s)) })
}

// doer sends requests.
type doer interface {
	Do(*http.Request) (*http.Response, error)
}

// clientOf returns a client of S3 that sends its requests by http, to a server at addr.
func clientOf(http doer, addr string, opts ...func(*s3.Options)) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String("http://" + addr), UsePathStyle: true, Region: "us-east-1", HTTPClient: http,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: testbed.S3Access, SecretAccessKey: testbed.S3Secret}, nil
		}),
	}, opts...)
}

// connect returns a client of a server, whose connections end with the test.
func connect(tb testing.TB, s *testbed.S3, opts ...func(*s3.Options)) *s3.Client {
	tb.Helper()
	return connectBy(tb, s.Addr(), (&net.Dialer{}).DialContext, opts...)
}

func connectBy(tb testing.TB, addr string, dial func(ctx context.Context, network, addr string) (net.Conn, error),
	opts ...func(*s3.Options)) *s3.Client {
	tb.Helper()
	transport := &http.Transport{DialContext: dial}
	tb.Cleanup(transport.CloseIdleConnections)
	return clientOf(&http.Client{Transport: transport}, addr, opts...)
}

// open returns a client of the locks that is closed with the test.
func open(tb testing.TB, client *s3.Client, opts ...s3lock.Option) *caslock.Client {
	tb.Helper()
	c, err := s3lock.New(client, bucketName, opts...)
	require.NoError(tb, err)
	tb.Cleanup(func() { adaptertest.Close(tb, c) })
	return c
}

// at returns a function that opens clients of the locks on a server.
func at(s *testbed.S3) adaptertest.Opener {
	return func(tb testing.TB, opts ...lease.Option) *caslock.Client {
		return open(tb, connect(tb, s), s3lock.WithLeaseOptions(opts...))
	}
}

// polling are pauses for tests.
var polling = s3lock.WithPolling(2*time.Millisecond, 100*time.Millisecond)

// holdLock holds the lock it until it is killed, and says each time when it reads a line whether
// it has lost it.
func holdLock(args []string) error {
	ttl, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	c, err := s3lock.New(clientOf(http.DefaultClient, args[0]), bucketName, s3lock.WithTTL(ttl), s3lock.WithLabel("holder"))
	if err != nil {
		return err
	}
	return testbed.HoldLock(c.Mutex("it"))
}

// buy takes part in the ticket test.
func buy(args []string) error {
	return testbed.Buy(args, func(args []string) (locks.TryLocker, func(), error) {
		c, err := s3lock.New(clientOf(http.DefaultClient, args[0]), bucketName, polling, s3lock.WithTTL(20*time.Second))
		if err != nil {
			return nil, nil, err
		}
		return c.Mutex("tickets"), func() { c.Close(context.Background()) }, nil
	})
}
