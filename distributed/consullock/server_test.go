package consullock_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/consullock"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
)

const (
	version = "1.14"      // of the servers
	long    = time.Minute // what only a hang reaches
)

var background = context.Background()

var names atomic.Int64

// unused returns a name that no other lock has.
func unused() string { return fmt.Sprint("it", names.Add(1)) }

// startServer runs a server until the test ends, and returns its address.
func startServer(tb testing.TB) string {
	tb.Helper()
	return testbed.StartConsul(tb, testbed.ConsulCluster{Version: version})[0].Addr()
}

// startCluster runs three servers until the test ends.
func startCluster(tb testing.TB) []*testbed.Consul {
	tb.Helper()
	return testbed.StartConsul(tb, testbed.ConsulCluster{Version: version, Servers: 3})
}

func addrs(servers []*testbed.Consul) (all []string) {
	for _, s := range servers {
		all = append(all, s.Addr())
	}
	return all
}

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// connectBy returns Consul's client of an agent, whose connections are closed with the test.
func connectBy(tb testing.TB, addr, token string, dial dialer) *api.Client {
	tb.Helper()
	transport := &http.Transport{DialContext: dial, MaxIdleConnsPerHost: 100}
	tb.Cleanup(transport.CloseIdleConnections)
	c, err := api.NewClient(&api.Config{Address: addr, Token: token, HttpClient: &http.Client{Transport: transport}})
	require.NoError(tb, err)
	return c
}

func connect(tb testing.TB, addr string) *api.Client {
	tb.Helper()
	return connectBy(tb, addr, "", (&net.Dialer{}).DialContext)
}

// open returns a client that is closed with the test.
func open(tb testing.TB, client *api.Client, opts ...consullock.Option) *consullock.Client {
	tb.Helper()
	// On a busy machine a release takes long. No test depends on the default of this time limit.
	patient := consullock.WithLeaseOptions(lease.WithReleaseTimeout(long))
	c, err := consullock.New(client, append([]consullock.Option{patient}, opts...)...)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, c.Close(background)) })
	return c
}

// term is a TTL that a test of its end can wait for.
func term(d time.Duration) consullock.Option { return consullock.WithTTL(d) }

// trips is an [http.RoundTripper].
type trips func(*http.Request) (*http.Response, error)

func (f trips) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// connectThrough is connect by requests that go through f, which may send them by next.
func connectThrough(tb testing.TB, addr string, f func(r *http.Request, next trips) (*http.Response, error)) *api.Client {
	tb.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	tb.Cleanup(transport.CloseIdleConnections)
	through := trips(func(r *http.Request) (*http.Response, error) { return f(r, transport.RoundTrip) })
	c, err := api.NewClient(&api.Config{Address: addr, HttpClient: &http.Client{Transport: through}})
	require.NoError(tb, err)
	return c
}

// asks reports whether r is a transaction with an operation of this verb. It can still be sent.
func asks(tb testing.TB, r *http.Request, verb api.KVOp) bool {
	tb.Helper()
	if r.URL.Path != "/v1/txn" {
		return false
	}
	text, err := io.ReadAll(r.Body)
	require.NoError(tb, err)
	r.Body = io.NopCloser(bytes.NewReader(text))
	return bytes.Contains(text, []byte(`"Verb":"`+verb+`"`))
}
