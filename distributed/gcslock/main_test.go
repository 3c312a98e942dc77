package gcslock_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/gcslock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	testbed.Play(map[string]testbed.Role{"hold": holdLock, "buy": buy})
	flag.Parse()
	flag.Set("test.parallel", "8") // they wait more than they work
	const process = "github.com/jucgo/locks/internal/test/testbed.start.func1.1"
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(process))
}

// bucketName is that of all tests.
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
	tb.Cleanup(func() { require.NoError(tb, c.Close(context.Background())) })
	return c
}

// documentsAt returns what clients of a server are made of.
func documentsAt(tb testing.TB, s *testbed.GCS) caslock.Documents {
	return gcslock.Documents(connect(tb), bucketName, s.URL())
}

func someone() context.Context { return locks.WithOwner(context.Background(), locks.NewOwner()) }

// pair acquires and releases the lock.
func pair(tb testing.TB, l locks.TryLocker) {
	tb.Helper()
	require.NoError(tb, locks.Do(context.Background(), l, func(context.Context) error { return nil }))
}

// token returns the token of the owner's hold.
func token(tb testing.TB, l locks.Leased, owner context.Context) uint64 {
	tb.Helper()
	h, err := l.Hold(owner)
	require.NoError(tb, err)
	return h.Token()
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
	ctx := context.Background()
	l := c.Mutex("it")
	if err := l.LockContext(ctx); err != nil {
		return err
	}
	h, err := l.Hold(ctx)
	if err != nil {
		return err
	}
	fmt.Println(h.Token())
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println(errors.Is(h.Err(), locks.ErrLost))
	}
	return nil
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
