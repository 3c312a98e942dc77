package etcdlock_test

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
)

// deposed answers requests to keep leases alive in place of the server, as a leader that does not
// know yet of its successor. It answers that the leases live, in a term that has ended. The
// others count their time.
type deposed struct {
	term    atomic.Uint64 // its term; 0: the server answers
	answers atomic.Int64
}

func (d *deposed) intercept(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := streamer(ctx, desc, conn, method, opts...)
	if term := d.term.Load(); err == nil && term > 0 && strings.HasSuffix(method, "/LeaseKeepAlive") {
		return &deposedStream{ClientStream: s, d: d, term: term}, nil
	}
	return s, err
}

type deposedStream struct {
	grpc.ClientStream
	d    *deposed
	term uint64
	ids  []int64
}

func (s *deposedStream) SendMsg(m any) error {
	s.ids = append(s.ids, m.(*etcdserverpb.LeaseKeepAliveRequest).ID)
	return nil
}

func (s *deposedStream) RecvMsg(m any) error {
	if len(s.ids) == 0 {
		return io.EOF
	}
	r := m.(*etcdserverpb.LeaseKeepAliveResponse)
	r.ID, r.TTL, r.Header = s.ids[0], 3, &etcdserverpb.ResponseHeader{RaftTerm: s.term}
	s.ids = s.ids[1:]
	s.d.answers.Add(1)
	return nil
}

func TestADeposedLeadersAnswerRenewsNothing(t *testing.T) {
	t.Parallel()
	s, d := lendServer(t), new(deposed)
	client, err := dialWith([]grpc.DialOption{grpc.WithChainStreamInterceptor(d.intercept)}, s.addr)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	l := open(t, client, term(3*short)).Mutex("it")
	now, err := client.Get(background, "it")
	require.NoError(t, err)
	d.term.Store(now.Header.GetRaftTerm() - 1)
	a, b := adaptertest.Owner(), adaptertest.Owner()
	h := adaptertest.Hold(t, l, a)
	before, _ := h.Deadline()

	rival := open(t, connect(t, s.addr), term(3*short)).Mutex("it")
	got := adaptertest.Start(rival, b)
	adaptertest.AwaitLoss(t, h)
	require.Positive(t, d.answers.Load())
	after, _ := h.Deadline()
	require.Equal(t, before, after)
	require.NoError(t, adaptertest.Result(t, got))
	require.ErrorIs(t, h.Err(), locks.ErrLost)
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
	require.NoError(t, rival.UnlockContext(b))
}
