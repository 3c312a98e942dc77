package etcdlock_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/lease/leasetest"
)

func TestCloseReleasesTenThousandHoldsByOneRevocation(t *testing.T) {
	s := startServer(t)
	link := leasetest.NewLink(t)
	conn, err := dialWith([]grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
		return link.DialContext(ctx, "tcp", addr)
	})}, s.addr)
	require.NoError(t, err)
	defer conn.Close()
	other := connect(t, s.addr)
	c, err := etcdlock.New(conn, etcdlock.WithTTL(time.Minute))
	require.NoError(t, err)
	const n = 10_000
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			a := locks.WithOwner(context.Background(), locks.NewOwner())
			for i := w; i < n; i += 16 {
				if !assert.NoError(t, c.Mutex(fmt.Sprint(i)).LockContext(a)) {
					return
				}
			}
		})
	}
	wg.Wait()
	before, err := other.Get(t.Context(), "", clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(t, err)
	require.GreaterOrEqual(t, before.Count, int64(n))
	link.Delay(40 * time.Millisecond)
	began := time.Now()
	require.NoError(t, c.Close(t.Context()))
	t.Logf("closed in %v", time.Since(began))
	after, err := other.Get(t.Context(), "", clientv3.WithPrefix(), clientv3.WithCountOnly())
	require.NoError(t, err)
	require.Zero(t, after.Count)
	require.LessOrEqual(t, after.Header.Revision, before.Header.Revision+1, "one change deletes all keys")
}
