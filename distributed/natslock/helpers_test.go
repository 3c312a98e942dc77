package natslock_test

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// sent counts what a connection sends.
type sent struct {
	net.Conn
	*counts
}

type counts struct {
	mu   sync.Mutex
	sent bytes.Buffer
}

func (s sent) Write(b []byte) (int, error) {
	s.mu.Lock()
	s.counts.sent.Write(b)
	s.mu.Unlock()
	return s.Conn.Write(b)
}

// Dial implements [nats.CustomDialer].
func (c *counts) Dial(network, addr string) (net.Conn, error) {
	conn, err := net.Dial(network, addr)
	return sent{conn, c}, err
}

func (c *counts) option() nats.Option { return nats.SetCustomDialer(c) }

// requests returns how many reads, writes and other requests were sent since the last call.
func (c *counts) requests() (reads, writes, others int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.sent.Bytes()
	reads = bytes.Count(all, []byte("PUB $JS.API.STREAM.MSG.GET."))
	writes = bytes.Count(all, []byte("HPUB $KV."))
	others = bytes.Count(all, []byte("PUB ")) - reads - writes
	c.sent.Reset()
	return reads, writes, others
}

// consumers waits until so many watches of the bucket are on.
func consumers(tb testing.TB, js jetstream.JetStream, bucket string, n int) {
	tb.Helper()
	require.Eventually(tb, func() bool {
		ctx, cancel := context.WithTimeout(background, brief)
		defer cancel()
		s, err := js.Stream(ctx, "KV_"+bucket)
		return err == nil && s.CachedInfo().State.Consumers == n
	}, long, 5*time.Millisecond, "%d watches", n)
}
