package natslock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/natslock"
	"github.com/jucgo/locks/internal/test/testbed"
)

const (
	version = "2.15"           // of the servers
	answer  = 10 * time.Second // it takes that long only on a busy machine
	brief   = time.Second      // for an answer that may be lost, and is asked for again
	long    = time.Minute      // what only a hang reaches
)

var background = context.Background()

var names atomic.Int64

// unused returns a name that no other bucket or lock has.
func unused() string { return fmt.Sprint("it", names.Add(1)) }

// startServer runs a server until the test ends.
func startServer(tb testing.TB) *testbed.NATS {
	tb.Helper()
	return testbed.StartNATS(tb, testbed.NATSCluster{Version: version})[0]
}

// startCluster runs three servers until the test ends.
func startCluster(tb testing.TB) []*testbed.NATS {
	tb.Helper()
	return testbed.StartNATS(tb, testbed.NATSCluster{Version: version, Servers: 3})
}

func addrs(servers []*testbed.NATS) (all []string) {
	for _, s := range servers {
		all = append(all, "nats://"+s.Addr())
	}
	return all
}

// dial connects to the first of the servers that answers, and goes on with the others. A request
// gets its answer within the limit, or never.
func dial(addr string, limit time.Duration, opts ...nats.Option) (jetstream.JetStream, error) {
	conn, err := nats.Connect(addr, append([]nats.Option{
		nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.PingInterval(limit / 2), nats.Timeout(answer),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // it prints them otherwise
	}, opts...)...)
	if err != nil {
		return nil, err
	}
	return jetstream.New(conn, jetstream.WithDefaultTimeout(limit))
}

// connect returns a connection that is closed with the test, after what is registered later.
func connect(tb testing.TB, addr string, opts ...nats.Option) jetstream.JetStream {
	tb.Helper()
	return connectFor(tb, addr, answer, opts...)
}

// connectFor is connect with the limit of [dial].
func connectFor(tb testing.TB, addr string, limit time.Duration, opts ...nats.Option) jetstream.JetStream {
	tb.Helper()
	js, err := dial(addr, limit, opts...)
	require.NoError(tb, err)
	tb.Cleanup(js.Conn().Close)
	return js
}

// create makes a bucket of its own with a number of replicas.
func create(tb testing.TB, js jetstream.JetStream, replicas int) string {
	tb.Helper()
	bucket := unused()
	createAs(tb, js, jetstream.KeyValueConfig{Bucket: bucket, Replicas: replicas, History: 3})
	return bucket
}

// createAs makes the bucket. A cluster that has just begun may lack room, or not answer.
func createAs(tb testing.TB, js jetstream.JetStream, config jetstream.KeyValueConfig) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(background, long)
	defer cancel()
	for {
		attempt, cancel := context.WithTimeout(ctx, answer)
		_, err := js.CreateKeyValue(attempt, config)
		cancel()
		if err == nil || errors.Is(err, jetstream.ErrBucketExists) { // the answer before may have been lost
			return
		}
		require.NoError(tb, ctx.Err(), "%v", err)
		time.Sleep(50 * time.Millisecond)
	}
}

// open returns a client that is closed with the test.
func open(tb testing.TB, js jetstream.JetStream, bucket string, opts ...caslock.Option) *caslock.Client {
	tb.Helper()
	// On a busy machine a release takes long. No test is about the default of this time.
	patient := caslock.WithLeaseOptions(lease.WithReleaseTimeout(long))
	c, err := natslock.New(background, js, bucket, append([]caslock.Option{patient}, opts...)...)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, c.Close(background)) })
	return c
}

// leader returns the server that leads the stream of the bucket.
func leader(tb testing.TB, js jetstream.JetStream, bucket string, servers []*testbed.NATS) *testbed.NATS {
	tb.Helper()
	var found *testbed.NATS
	require.Eventually(tb, func() bool {
		ctx, cancel := context.WithTimeout(background, brief)
		defer cancel()
		s, err := js.Stream(ctx, "KV_"+bucket)
		if err != nil || s.CachedInfo().Cluster == nil {
			return false
		}
		for _, server := range servers {
			if server.Name() == s.CachedInfo().Cluster.Leader {
				found = server
			}
		}
		return found != nil
	}, long, 20*time.Millisecond)
	return found
}

// startWith runs a server with more configuration until the test ends.
func startWith(tb testing.TB, more string) *testbed.NATS {
	tb.Helper()
	return testbed.StartNATS(tb, testbed.NATSCluster{Version: version, More: more})[0]
}

func readme(tb testing.TB) string {
	tb.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(tb, err)
	return string(text)
}
