package etcdlock_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/grpc"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
)

// lagging reports at the beginning of each watch that its key was deleted at an earlier revision,
// as a member does that lags behind, if the key had an earlier life.
type lagging struct{ reports atomic.Int64 }

func (l *lagging) intercept(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := streamer(ctx, desc, conn, method, opts...)
	if err == nil && strings.HasSuffix(method, "/Watch") {
		return &laggingStream{ClientStream: s, l: l, keys: make(chan []byte, 100)}, nil
	}
	return s, err
}

type laggingStream struct {
	grpc.ClientStream
	l    *lagging
	keys chan []byte // of watches that are being created
	next *etcdserverpb.WatchResponse
}

func (s *laggingStream) SendMsg(m any) error {
	if create := m.(*etcdserverpb.WatchRequest).GetCreateRequest(); create != nil {
		s.keys <- create.Key
	}
	return s.ClientStream.SendMsg(m)
}

func (s *laggingStream) RecvMsg(m any) error {
	r := m.(*etcdserverpb.WatchResponse)
	if s.next != nil {
		r.WatchId, r.Header, r.Events = s.next.WatchId, s.next.Header, s.next.Events
		s.next = nil
		s.l.reports.Add(1)
		return nil
	}
	if err := s.ClientStream.RecvMsg(m); err != nil || !r.Created {
		return err
	}
	s.next = &etcdserverpb.WatchResponse{WatchId: r.WatchId, Header: r.Header, Events: []*mvccpb.Event{{
		Type: mvccpb.Event_DELETE, Kv: &mvccpb.KeyValue{Key: <-s.keys, ModRevision: 1},
	}}}
	return nil
}

func TestAnEarlierEventDoesNotEndAKey(t *testing.T) {
	t.Parallel()
	s, lag := lendServer(t), new(lagging)
	client, err := dialWith([]grpc.DialOption{grpc.WithChainStreamInterceptor(lag.intercept)}, s.addr)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	direct := connect(t, s.addr)
	holder, l := open(t, direct).Mutex("it"), open(t, client).Mutex("it")
	a, b := adaptertest.Owner(), adaptertest.Owner()
	adaptertest.Hold(t, holder, a)
	got := adaptertest.Start(l, b)
	queued(t, direct, "it/", 2)
	first := keys(t, direct, "it/")
	require.Eventually(t, func() bool { return lag.reports.Load() >= 2 }, long, time.Millisecond, "of both keys")
	time.Sleep(300 * time.Millisecond) // for a waiter that begins anew
	require.Equal(t, first, keys(t, direct, "it/"))
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, adaptertest.Result(t, got))
	require.NoError(t, l.UnlockContext(b))
}
