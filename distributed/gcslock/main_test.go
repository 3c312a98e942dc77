package gcslock_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/gcslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	testbed.Main(m, map[string]testbed.Role{"hold": holdLock, "buy": buy}, 8)
}

// bucketName is the bucket of all tests.
const bucketName = "locks-bucket"

// start starts a server with the bucket, whose objects are in memory.
func start(tb testing.TB) *testbed.GCS {
	tb.Helper()
	return testbed.StartFakeGCS(tb, bucketName, "")
}

// connect returns an HTTP client whose connections end with the test.
func connect(tb testing.TB) *http.Client { return connectBy(tb, (&net.Dialer{}).DialContext) }

func connectBy(tb testing.TB, dial func(ctx context.Context, network, addr string) (net.Conn, error)) *http.Client {
	transport := &http.Transport{DialContext: dial}
	tb.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// openAt returns a client of the locks on a server, which is closed with the test.
func openAt(tb testing.TB, s *testbed.GCS, opts ...gcslock.Option) *caslock.Client {
	tb.Helper()
	return open(tb, connect(tb), append(opts, gcslock.WithEndpoint(s.URL()))...)
}

func open(tb testing.TB, client *http.Client, opts ...gcslock.Option) *caslock.Client {
	tb.Helper()
	c, err := gcslock.New(client, bucketName, opts...)
	require.NoError(tb, err)
	tb.Cleanup(func() { adaptertest.Close(tb, c) })
	return c
}

// documentsAt returns what clients of a server are made of.
func documentsAt(tb testing.TB, s *testbed.GCS) caslock.Documents {
	return gcslock.Documents(connect(tb), bucketName, s.URL())
}

// put writes an object, whatever is there.
func put(tb testing.TB, s *testbed.GCS, name, data string) {
	tb.Helper()
	address := s.URL() + "/upload/storage/v1/b/" + bucketName + "/o?uploadType=media&name=" + url.QueryEscape(name)
	resp, err := connect(tb).Post(address, "text/plain", bytes.NewReader([]byte(data)))
	require.NoError(tb, err)
	resp.Body.Close()
	require.Equal(tb, http.StatusOK, resp.StatusCode)
}

// get returns what an object has and its generation, or nothing.
func get(tb testing.TB, s *testbed.GCS, name string) (data []byte, generation string) {
	tb.Helper()
	resp, err := connect(tb).Get(s.URL() + "/storage/v1/b/" + bucketName + "/o/" + url.PathEscape(name) + "?alt=media")
	require.NoError(tb, err)
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, ""
	}
	data, err = io.ReadAll(resp.Body)
	require.NoError(tb, err)
	return data, resp.Header.Get("X-Goog-Generation")
}

// at returns a function that opens clients of the locks on a server.
func at(s *testbed.GCS) adaptertest.Opener {
	return func(tb testing.TB, opts ...lease.Option) *caslock.Client {
		return openAt(tb, s, gcslock.WithLeaseOptions(opts...))
	}
}

// polling are pauses for tests.
var polling = gcslock.WithPolling(2*time.Millisecond, 100*time.Millisecond)

// holdLock holds the lock it until it is killed, and says each time when it reads a line whether
// it has lost it.
func holdLock(args []string) error {
	ttl, err := time.ParseDuration(args[1])
	if err != nil {
		return err
	}
	c, err := gcslock.New(http.DefaultClient, bucketName, gcslock.WithEndpoint(args[0]), gcslock.WithTTL(ttl),
		gcslock.WithLabel("holder"))
	if err != nil {
		return err
	}
	return testbed.HoldLock(c.Mutex("it"))
}

// buy takes part in the ticket test.
func buy(args []string) error {
	return testbed.Buy(args, func(args []string) (locks.TryLocker, func(), error) {
		c, err := gcslock.New(http.DefaultClient, bucketName, gcslock.WithEndpoint(args[0]), polling,
			gcslock.WithTTL(20*time.Second))
		if err != nil {
			return nil, nil, err
		}
		return c.Mutex("tickets"), func() { c.Close(context.Background()) }, nil
	})
}
