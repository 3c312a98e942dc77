package etcdlock_test

import (
	"context"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
)

// network is between a client and the server. It counts requests, and keeps some back.
type network struct {
	mu       sync.Mutex
	requests int
	match    func(request any) bool
	most     int
	kept     []func() error
}

// keep keeps at most so many requests back from now on: the client gets no answer.
func (n *network) keep(most int, match func(request any) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.most, n.match = most, match
}

// keeps returns how many requests are kept back.
func (n *network) keeps() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.kept)
}

func puts(request any) bool {
	r, ok := request.(*etcdserverpb.TxnRequest)
	return ok && len(r.Compare) > 0
}

func deletes(request any) bool {
	_, ok := request.(*etcdserverpb.DeleteRangeRequest)
	return ok
}

// deliver ends keep, and delivers what was kept back.
func (n *network) deliver() (sent int) {
	n.keep(0, nil)
	for _, send := range n.kept {
		send()
	}
	return len(n.kept)
}

func (n *network) intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	n.mu.Lock()
	n.requests++
	keep := n.most > 0 && n.match(req)
	if keep {
		n.most--
		n.kept = append(n.kept, func() error {
			return invoke(context.WithoutCancel(ctx), method, req, reply, conn, opts...)
		})
	}
	n.mu.Unlock()
	if keep {
		<-ctx.Done()
		return ctx.Err()
	}
	return invoke(ctx, method, req, reply, conn, opts...)
}

func (n *network) connect(t *testing.T, s *server) *clientv3.Client {
	t.Helper()
	c, err := dialWith([]grpc.DialOption{grpc.WithChainUnaryInterceptor(n.intercept)}, s.addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// giveUp ends the wait of a caller for l while its request is kept back.
func giveUp(t *testing.T, n *network, l locks.Locker) {
	t.Helper()
	n.keep(math.MaxInt, puts)
	ctx, cancel := context.WithCancel(adaptertest.Owner())
	defer cancel()
	got := adaptertest.Start(l, ctx)
	require.Eventually(t, func() bool { return n.keeps() > 0 }, long, time.Millisecond)
	cancel()
	require.ErrorIs(t, adaptertest.Result(t, got), context.Canceled)
}

// leases returns how many leases the server has.
func leases(t *testing.T, c *clientv3.Client) int {
	t.Helper()
	resp, err := c.Leases(background)
	require.NoError(t, err)
	return len(resp.Leases)
}

func TestAnIdleClientsLateRequestPutsNoKey(t *testing.T) {
	t.Parallel()
	s, n := lendServer(t), new(network)
	direct := connect(t, s.addr)
	giveUp(t, n, open(t, n.connect(t, s)).Mutex("it"))
	require.Eventually(t, func() bool { return leases(t, direct) == 0 }, long, time.Millisecond, "revoked")
	require.Positive(t, n.deliver())
	require.Empty(t, keys(t, direct, "it/"))
	rival, a := open(t, direct).Mutex("it"), adaptertest.Owner()
	require.True(t, adaptertest.Try(t, rival, a))
	require.NoError(t, rival.UnlockContext(a))
}

func TestAHoldersLateRequestBlocksNobodyForLong(t *testing.T) {
	t.Parallel()
	s, n := lendServer(t), new(network)
	direct := connect(t, s.addr)
	c, a, b := open(t, n.connect(t, s), term(10*short)), adaptertest.Owner(), adaptertest.Owner()
	h := adaptertest.Hold(t, c.Mutex("other"), a)
	giveUp(t, n, c.Mutex("it"))
	n.keep(0, nil)
	var g locks.Hold
	first := leaseOf(t, direct, keys(t, direct, "other/")[0])
	for g == nil { // once its key is deleted for the first time, the client takes another lease
		g = adaptertest.Hold(t, c.Mutex("third"), b)
		if leaseOf(t, direct, keys(t, direct, "third/")[0]) == first {
			g = nil
			require.NoError(t, c.Mutex("third").UnlockContext(b))
		}
	}
	require.Positive(t, n.deliver())
	queued(t, direct, "it/", 0)
	require.NoError(t, h.Err())
	require.NoError(t, g.Err())
	require.NoError(t, c.Mutex("other").UnlockContext(a))
	require.Eventually(t, func() bool { return leases(t, direct) == 1 }, long, time.Millisecond, "its last key is gone")
	require.NoError(t, g.Err())
	require.NoError(t, c.Mutex("third").UnlockContext(b))
}

func TestAnUnansweredReleaseLeavesOtherHoldsAlone(t *testing.T) {
	t.Parallel()
	s, n := lendServer(t), new(network)
	direct := connect(t, s.addr)
	c, a := open(t, n.connect(t, s), term(10*short)), adaptertest.Owner()
	h, g := adaptertest.Hold(t, c.Mutex("other"), a), adaptertest.Hold(t, c.Mutex("it"), a)
	deadline, _ := g.Deadline()
	n.keep(math.MaxInt, deletes)
	require.ErrorIs(t, c.Mutex("it").UnlockContext(a), locks.ErrLost)
	time.Sleep(time.Until(deadline) + short) // no release is repeated by then
	require.Len(t, keys(t, direct, "it/"), 1)
	n.keep(0, nil)
	queued(t, direct, "it/", 0)
	require.NoError(t, h.Err())
	require.NoError(t, c.Mutex("other").UnlockContext(a))
}

// mute delivers requests to keep leases alive, but not their answers.
func mute(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := streamer(ctx, desc, conn, method, opts...)
	if err == nil && strings.HasSuffix(method, "/LeaseKeepAlive") {
		return muteStream{s}, nil
	}
	return s, err
}

type muteStream struct{ grpc.ClientStream }

func (s muteStream) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		return err
	}
	return status.Error(codes.Unavailable, "refused by the test")
}

func TestALateReleaseSparesTheNextHold(t *testing.T) {
	t.Parallel()
	s, n := lendServer(t), new(network)
	direct := connect(t, s.addr)
	l, a := open(t, n.connect(t, s)).Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, l, a)
	first := keys(t, direct, "it/")
	n.keep(1, deletes)
	require.NoError(t, l.UnlockContext(a), "by the second request")
	h := adaptertest.Hold(t, l, a)
	second := keys(t, direct, "it/")
	require.NotEqual(t, first, second)
	require.Equal(t, 1, n.deliver())
	require.Equal(t, second, keys(t, direct, "it/"))
	require.NoError(t, h.Err())
	require.NoError(t, l.UnlockContext(a))
}

func TestASessionWhoseTimeIsOverIsRevoked(t *testing.T) {
	t.Parallel()
	s, n := lendServer(t), new(network)
	client, err := dialWith([]grpc.DialOption{
		grpc.WithChainStreamInterceptor(mute), grpc.WithChainUnaryInterceptor(n.intercept)}, s.addr)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	direct := connect(t, s.addr)
	holder, a := open(t, direct).Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, holder, a)
	l, b := open(t, client, term(5*short)).Mutex("it"), adaptertest.Owner()
	got := adaptertest.Start(l, b)
	queued(t, direct, "it/", 2)
	orphan := leaseOf(t, direct, keys(t, direct, "it/")[1])
	for ended := false; !ended; { // the server would keep it for some seconds more
		resp, err := direct.TimeToLive(background, orphan)
		require.NoError(t, err)
		ended = resp.TTL < 0
		require.NotZero(t, resp.TTL, "it ended by itself")
		time.Sleep(10 * time.Millisecond)
	}
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, adaptertest.Result(t, got))
	require.NoError(t, l.UnlockContext(b))
}

func TestALockAndAnUnlockAreTwoRequests(t *testing.T) {
	t.Parallel()
	s, n := lendServer(t), new(network)
	l, a := open(t, n.connect(t, s)).Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, l, a) // begins the session
	require.NoError(t, l.UnlockContext(a))
	n.requests = 0
	for range 3 {
		adaptertest.Hold(t, l, a)
		require.NoError(t, l.UnlockContext(a))
	}
	require.Equal(t, 6, n.requests)
}

func TestAClientsHoldsShareOneLease(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	c, a := open(t, connect(t, s.addr)), adaptertest.Owner()
	var holds []locks.Hold
	for _, l := range []locks.Locker{c.Mutex("one"), c.Mutex("two"), c.RWMutex("three").ReadLocker()} {
		require.NoError(t, l.LockContext(a))
		h, err := l.(*lease.Mutex).Hold(a)
		require.NoError(t, err)
		holds = append(holds, h)
	}
	require.Equal(t, 1, leases(t, direct))
	time.Sleep(time.Second) // until they are watched
	_, err := direct.Revoke(background, leaseOf(t, direct, keys(t, direct, "one/")[0]))
	require.NoError(t, err)
	for _, h := range holds {
		adaptertest.AwaitLoss(t, h)
		require.ErrorIs(t, h.Err(), etcdlock.ErrSessionExpired)
	}
	require.ErrorIs(t, c.Mutex("one").UnlockContext(a), locks.ErrLost)
	adaptertest.Hold(t, c.Mutex("one"), a)
	require.Equal(t, 1, leases(t, direct))
	require.NoError(t, c.Mutex("one").UnlockContext(a))
}

// A server that exceeds its quota by a request carries it out, and refuses it.
func TestAFullStoresRefusalLeavesNoKey(t *testing.T) {
	t.Parallel()
	s, full, refusals := lendServer(t), new(atomic.Bool), new(atomic.Int64)
	client, err := dialWith([]grpc.DialOption{grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string,
		req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, conn, opts...)
		if err == nil && puts(req) && full.Load() {
			refusals.Add(1)
			return rpctypes.ErrGRPCNoSpace
		}
		return err
	})}, s.addr)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	direct, c := connect(t, s.addr), open(t, client)
	adaptertest.Hold(t, c.Mutex("other"), adaptertest.Owner()) // so that the session goes on
	l, a := c.Mutex("it"), adaptertest.Owner()
	full.Store(true)
	_, err = l.TryLockContext(a)
	require.ErrorIs(t, err, rpctypes.ErrNoSpace)
	queued(t, direct, "it/", 0)
	ctx, cancel := context.WithCancel(a)
	defer cancel()
	got, before := adaptertest.Start(l, ctx), refusals.Load()
	require.Eventually(t, func() bool { return refusals.Load() > before+1 }, long, time.Millisecond)
	cancel()
	require.ErrorIs(t, adaptertest.Result(t, got), rpctypes.ErrNoSpace)
	queued(t, direct, "it/", 0)
	full.Store(false)
	adaptertest.Hold(t, l, a)
	require.NoError(t, l.UnlockContext(a))
}

func TestARefusedDowngradeEndsWithTheReader(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	client, err := dialWith([]grpc.DialOption{grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string,
		req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		r, ok := req.(*etcdserverpb.TxnRequest)
		if ok && len(r.Success) > 0 && r.Success[0].GetRequestPut().GetIgnoreLease() {
			return rpctypes.ErrGRPCPermissionDenied
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	})}, s.addr)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	direct, l, a := connect(t, s.addr), open(t, client).RWMutex("it"), adaptertest.Owner()
	require.NoError(t, l.WriteLocker().LockContext(a))
	require.NoError(t, l.ReadLocker().LockContext(a))
	require.ErrorIs(t, l.WriteLocker().UnlockContext(a), rpctypes.ErrPermissionDenied)
	require.Len(t, keys(t, direct, "it"), 1)
	require.NoError(t, l.ReadLocker().UnlockContext(a))
	require.Empty(t, keys(t, direct, "it"))
}
