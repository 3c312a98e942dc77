package etcdlock_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/leasetest"
)

// The engine renews 10,000 holds in 100 batches. One stream to keep the session alive is enough for
// the requests that come while another stream is under way.
func TestBatchesOfRenewalsShareTheKeepAliveOfTheirSession(t *testing.T) {
	t.Parallel()
	s, link := lendServer(t), leasetest.NewLink(t)
	var streams, reads atomic.Int64
	conn, err := dialWith([]grpc.DialOption{
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return link.DialContext(ctx, "tcp", addr)
		}),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn,
			method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			if strings.HasSuffix(method, "/LeaseKeepAlive") {
				streams.Add(1)
			}
			return open(ctx, desc, conn, method, opts...)
		}),
		grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
			invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			reads.Add(1)
			return invoke(ctx, method, req, reply, conn, opts...)
		}),
	}, s.addr)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	var store driver.Store
	open(t, conn, term(time.Hour), etcdlock.WithLeaseOptions(lease.WithWrapper(func(s driver.Store) driver.Store {
		store = s
		return s
	})))
	ids := adaptertest.Acquire(t, store, 200, func(i int) string { return fmt.Sprint("it", i) })
	link.Delay(100 * time.Millisecond)
	reads.Store(0)
	adaptertest.RenewInBatches(t, store, ids, 2)
	t.Logf("%d streams", streams.Load())
	require.LessOrEqual(t, streams.Load(), int64(20), "of 100 batches")
	require.LessOrEqual(t, reads.Load(), int64(100), "no batch has a request more")
}
