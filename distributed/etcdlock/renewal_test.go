package etcdlock_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
)

// refusals are how many requests to keep leases alive fail from now on, and how many have
// succeeded since.
type refusals struct {
	left, kept atomic.Int64
}

func (r *refusals) intercept(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if strings.HasSuffix(method, "/LeaseKeepAlive") {
		if r.left.Add(-1) >= 0 {
			return nil, status.Error(codes.Unavailable, "refused by the test")
		}
		r.kept.Add(1)
	}
	return streamer(ctx, desc, conn, method, opts...)
}

// A place in the queue is renewed after a third of its lease. Were a renewal that fails repeated
// after another third only, the third one would be too late.
func TestAPlacesFailedRenewalIsRepeatedSoon(t *testing.T) {
	t.Parallel()
	s, r := lendServer(t), new(refusals)
	client, err := dialWith([]grpc.DialOption{grpc.WithChainStreamInterceptor(r.intercept)}, s.addr)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	direct := connect(t, s.addr)
	const lease = 6 * short
	r.left.Store(3)
	holder, l := open(t, connect(t, s.addr)).Mutex("it"), open(t, client, term(lease)).Mutex("it")
	a, b := adaptertest.Owner(), adaptertest.Owner()
	adaptertest.Hold(t, holder, a)
	got := adaptertest.Start(l, b)
	queued(t, direct, "it/", 2)
	places := keys(t, direct, "it/")
	time.Sleep(lease + short) // the place would be over
	require.Negative(t, r.left.Load())
	require.Positive(t, r.kept.Load())
	require.Equal(t, places, keys(t, direct, "it/"))
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, adaptertest.Result(t, got))
	require.NoError(t, l.UnlockContext(b))
}
