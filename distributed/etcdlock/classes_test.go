package etcdlock_test

import (
	"context"
	"errors"
	"regexp"
	"strings"
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
	"github.com/jucgo/locks/distributed/internal/classes"
	"github.com/jucgo/locks/distributed/lease"
)

// mood replaces each answer of a server, unless it is nil.
type mood struct {
	adaptertest.Refuser[error]
	only string // how the names of the methods end whose requests are refused, or "" for all
}

func (m *mood) intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if strings.HasSuffix(method, m.only) {
		if why := m.Answer(); why != nil {
			return why
		}
	}
	return invoke(ctx, method, req, reply, conn, opts...)
}

// keepAlive is intercept of the streams that keep leases alive, if only these are refused.
func (m *mood) keepAlive(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string,
	open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := open(ctx, desc, conn, method, opts...)
	if err != nil || m.only == "" || !strings.HasSuffix(method, m.only) {
		return s, err
	}
	return moodyStream{s, m}, nil
}

type moodyStream struct {
	grpc.ClientStream
	mood *mood
}

func (s moodyStream) RecvMsg(msg any) error {
	if why := s.mood.Answer(); why != nil {
		return why
	}
	return s.ClientStream.RecvMsg(msg)
}

// reaction is the reaction of a client to an error of a class. Without goesOn the client returns
// the error.
type reaction struct {
	is            error // what the error of a first request matches
	firstGoesOn   bool
	waitGoesOn    bool
	releaseGoesOn bool // until the error ends, or the release timeout
}

var reactions = map[classes.Class]reaction{
	classes.Unclear:    {nil, true, true, true},
	classes.Doubt:      {nil, true, true, true},
	classes.Request:    {lease.ErrRefused, false, false, false},
	classes.Connection: {lease.ErrLogin, false, true, false},
	classes.Moment:     {nil, true, true, true},
	etcdlock.Brief:     {nil, true, true, true},
	classes.Unreached:  {nil, true, true, true},
	etcdlock.Expired:   {nil, true, true, true},
}

// classed is an error with its class.
type classed struct {
	err   error
	class classes.Class
}

// errorsOf returns the errors of servers that are listed.
func errorsOf() (list []classed) {
	for _, r := range etcdlock.Refusals {
		list = append(list, classed{r.Err, r.Class})
	}
	for _, r := range etcdlock.TextRefusals {
		list = append(list, classed{status.Error(codes.Unavailable, "of the test: "+r.Code), r.Class})
	}
	list = append(list, classed{rpctypes.ErrGRPCInvalidAuthToken, classes.Connection})
	for code, class := range etcdlock.ByCode {
		list = append(list, classed{status.Error(code, "of a proxy: "+code.String()), class})
	}
	return list
}

// clients are the clients of a test: one whose server has moods, a rival, and a plain client of
// etcd.
type clients struct {
	c, rival *etcdlock.Client
	direct   *clientv3.Client
}

// inEachMood runs f for errors of a server, with a client that has a session.
func inEachMood(t *testing.T, ttl time.Duration, f func(t *testing.T, m *mood, c clients, why classed)) {
	t.Parallel()
	inMoodsOf(t, "", ttl, func(t *testing.T, m *mood, cs clients, why classed) {
		l, a := cs.c.Mutex(t.Name()+" warm"), adaptertest.Owner()
		require.NoError(t, l.LockContext(a))
		require.NoError(t, l.UnlockContext(a))
		f(t, m, cs, why)
	})
}

// inMoodsOf runs f for errors that a server answers the requests of a method with, or all requests.
func inMoodsOf(t *testing.T, method string, ttl time.Duration,
	f func(t *testing.T, m *mood, c clients, why classed)) {
	s := lendServer(t)
	direct := connect(t, s.addr)
	rival := open(t, direct)
	for _, why := range errorsOf() {
		t.Run(rpctypes.ErrorDesc(why.err), func(t *testing.T) {
			t.Parallel()
			if errors.Is(why.err, rpctypes.ErrGRPCInvalidAuthToken) {
				why.class = classes.Unclear // etcd's client gets another token, and asks until its context ends
			}
			m := &mood{only: method}
			client, err := dialWith([]grpc.DialOption{
				grpc.WithChainUnaryInterceptor(m.intercept), grpc.WithChainStreamInterceptor(m.keepAlive),
			}, s.addr)
			require.NoError(t, err)
			t.Cleanup(func() { client.Close() })
			c := open(t, client, etcdlock.WithTTL(ttl), etcdlock.WithLeaseOptions(lease.WithPoll(50*time.Millisecond)))
			t.Cleanup(func() { m.Refuse(nil) })
			f(t, m, clients{c, rival, direct}, why)
		})
	}
}

func TestAFirstRequestFollowsTheClassOfAnError(t *testing.T) {
	inEachMood(t, time.Minute, first)
}

func first(t *testing.T, m *mood, cs clients, why classed) {
	want, l, a := reactions[why.class], cs.c.Mutex(t.Name()), adaptertest.Owner()
	m.Refuse(why.err)
	got := adaptertest.Start(l, a)
	if want.firstGoesOn {
		m.Refuses(t, 2)
		m.Refuse(nil)
		require.NoError(t, adaptertest.Result(t, got))
		require.NoError(t, l.UnlockContext(a))
		return
	}
	err := adaptertest.Result(t, got)
	require.ErrorContains(t, err, rpctypes.ErrorDesc(why.err))
	require.ErrorIs(t, err, want.is)
	require.Equal(t, why.class == classes.Connection, errors.Is(err, lease.ErrLogin))
	m.Refuse(nil)
}

func TestTheBeginningOfASessionFollowsTheClassOfAnError(t *testing.T) {
	t.Parallel()
	inMoodsOf(t, "/LeaseGrant", time.Minute, first)
}

// The session of a waiter was revoked, and another session cannot begin for a while.
func TestTheNextSessionOfAWaiterFollowsTheClassOfAnError(t *testing.T) {
	t.Parallel()
	inMoodsOf(t, "/LeaseGrant", time.Minute, func(t *testing.T, m *mood, cs clients, why classed) {
		name, a, b := t.Name(), adaptertest.Owner(), adaptertest.Owner()
		holder, l := cs.rival.Mutex(name), cs.c.Mutex(name)
		adaptertest.Hold(t, holder, a)
		got := adaptertest.Start(l, b)
		dir := cs.c.Prefix(name) + "/"
		queued(t, cs.direct, dir, 2)
		m.Refuse(why.err)
		keys, err := cs.direct.Get(background, dir,
			clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortDescend))
		require.NoError(t, err)
		_, err = cs.direct.Revoke(background, clientv3.LeaseID(keys.Kvs[0].Lease))
		require.NoError(t, err)
		if !reactions[why.class].waitGoesOn {
			require.ErrorContains(t, adaptertest.Result(t, got), rpctypes.ErrorDesc(why.err))
			m.Refuse(nil)
			require.NoError(t, holder.UnlockContext(a))
			return
		}
		m.Refuses(t, 2)
		m.Refuse(nil)
		queued(t, cs.direct, dir, 2)
		require.NoError(t, holder.UnlockContext(a))
		require.NoError(t, adaptertest.Result(t, got))
		require.NoError(t, l.UnlockContext(b))
	})
}

func TestNoErrorOfAKeepAliveIsALoss(t *testing.T) {
	t.Parallel()
	inMoodsOf(t, "/LeaseKeepAlive", 6*time.Second, renew)
}

func TestAWaitFollowsTheClassOfAnError(t *testing.T) {
	inEachMood(t, time.Minute, func(t *testing.T, m *mood, cs clients, why classed) {
		if why.class == etcdlock.Expired {
			return // a server that says so has deleted the keys: TestAWaiterWithoutItsPlaceBeginsAnew
		}
		name, a, b := t.Name(), adaptertest.Owner(), adaptertest.Owner()
		holder, l := cs.rival.Mutex(name), cs.c.Mutex(name)
		adaptertest.Hold(t, holder, a)
		got := adaptertest.Start(l, b)
		queued(t, cs.direct, cs.c.Prefix(name)+"/", 2)
		m.Asks(t, 4)
		m.Refuse(why.err)
		if !reactions[why.class].waitGoesOn {
			require.ErrorContains(t, adaptertest.Result(t, got), rpctypes.ErrorDesc(why.err))
			m.Refuse(nil)
			require.NoError(t, holder.UnlockContext(a))
			return
		}
		m.Refuses(t, 2)
		m.Refuse(nil)
		require.NoError(t, holder.UnlockContext(a))
		require.NoError(t, adaptertest.Result(t, got))
		require.NoError(t, l.UnlockContext(b))
	})
}

func TestNoErrorOfARenewalIsALoss(t *testing.T) { inEachMood(t, 6*time.Second, renew) }

func renew(t *testing.T, m *mood, cs clients, why classed) {
	l, a := cs.c.Mutex(t.Name()), adaptertest.Owner()
	h := adaptertest.Hold(t, l, a)
	before, _ := h.Deadline()
	m.Refuse(why.err)
	m.Refuses(t, 1)
	m.Refuse(nil)
	require.Eventually(t, func() bool { now, _ := h.Deadline(); return now.After(before) }, long, time.Millisecond)
	require.NoError(t, h.Err())
	require.NoError(t, l.UnlockContext(a))
}

func TestAReleaseFollowsTheClassOfAnError(t *testing.T) {
	inEachMood(t, time.Minute, func(t *testing.T, m *mood, cs clients, why classed) {
		l, a := cs.c.Mutex(t.Name()), adaptertest.Owner()
		adaptertest.Hold(t, l, a)
		m.Refuse(why.err)
		got := make(chan error, 1)
		go func() { got <- l.UnlockContext(a) }()
		if reactions[why.class].releaseGoesOn {
			m.Refuses(t, 2)
			m.Refuse(nil)
			require.NoError(t, adaptertest.Result(t, got))
		} else {
			err := adaptertest.Result(t, got)
			require.ErrorIs(t, err, locks.ErrLost)
			require.ErrorContains(t, err, rpctypes.ErrorDesc(why.err))
			m.Refuse(nil)
		}
		queued(t, cs.direct, cs.c.Prefix(t.Name())+"/", 0) // the lease lasts a minute
	})
}

func TestEveryRefusalHasOneReasonAndOneEntry(t *testing.T) {
	t.Parallel()
	reason := regexp.MustCompile(`^[^.\n]{8,90}$`)
	seen := make(map[string]bool)
	for _, r := range etcdlock.Refusals {
		text := rpctypes.ErrorDesc(r.Err)
		require.False(t, seen[text], text)
		seen[text] = true
		require.Regexp(t, reason, r.Why, text)
		require.Equal(t, r.Class, etcdlock.ClassOf(r.Err), text)
		require.Equal(t, r.Class, etcdlock.ClassOf(rpctypes.Error(r.Err)), text)
	}
}

// alarm has a cluster sound or end an alarm.
func alarm(t *testing.T, c *clientv3.Client, kind etcdserverpb.AlarmType, do etcdserverpb.AlarmRequest_AlarmAction) {
	t.Helper()
	_, err := etcdserverpb.NewMaintenanceClient(c.ActiveConnection()).Alarm(background,
		&etcdserverpb.AlarmRequest{Action: do, Alarm: kind})
	require.NoError(t, err)
}

func TestHoldsAndWaitersOutlastAnAlarm(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]etcdserverpb.AlarmType{
		"no space": etcdserverpb.AlarmType_NOSPACE, "corrupt": etcdserverpb.AlarmType_CORRUPT,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServer(t)
			direct := connect(t, s.addr)
			c, rival, a, b := open(t, connect(t, s.addr)), open(t, direct), adaptertest.Owner(), adaptertest.Owner()
			l := rival.Mutex("it")
			h := adaptertest.Hold(t, c.Mutex("it"), a)
			waiter := adaptertest.Start(l, b)
			queued(t, direct, "it/", 2)
			alarm(t, direct, kind, etcdserverpb.AlarmRequest_ACTIVATE)
			first := adaptertest.Start(c.Mutex("other"), adaptertest.Owner())
			time.Sleep(300 * time.Millisecond)
			select {
			case err := <-first:
				require.Fail(t, "does not wait", "%v", err)
			case err := <-waiter:
				require.Fail(t, "does not wait", "%v", err)
			default:
			}
			require.NoError(t, h.Err())
			alarm(t, direct, kind, etcdserverpb.AlarmRequest_DEACTIVATE)
			require.NoError(t, adaptertest.Result(t, first))
			require.NoError(t, c.Mutex("it").UnlockContext(a))
			require.NoError(t, adaptertest.Result(t, waiter))
			require.NoError(t, l.UnlockContext(b))
		})
	}
}

func TestAReplacedPasswordCostsAReleaseItsOwnTime(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	root := connect(t, s.addr)
	for _, user := range []string{"root", "app"} {
		_, err := root.UserAdd(background, user, "first")
		require.NoError(t, err)
		_, err = root.UserGrantRole(background, user, "root")
		require.NoError(t, err)
	}
	_, err := root.AuthEnable(background)
	require.NoError(t, err)
	dial := func(user string) *clientv3.Client {
		c, err := dialAs(s.addr, user, "first")
		require.NoError(t, err)
		t.Cleanup(func() { c.Close() })
		return c
	}
	admin := dial("root")
	c, rival, a, b := open(t, dial("app"), etcdlock.WithLeaseOptions(lease.WithPoll(50*time.Millisecond))),
		open(t, admin), adaptertest.Owner(), adaptertest.Owner()
	password := func(now string) {
		_, err := admin.UserChangePassword(background, "app", now)
		require.NoError(t, err)
	}
	adaptertest.Hold(t, c.Mutex("mine"), a)
	adaptertest.Hold(t, rival.Mutex("theirs"), b)
	waiter := adaptertest.Start(c.Mutex("theirs"), a)
	queued(t, admin, "theirs/", 2)
	time.Sleep(300 * time.Millisecond) // it asks several times

	password("second")
	err = c.Mutex("mine").UnlockContext(a)
	require.ErrorIs(t, err, locks.ErrLost)
	require.ErrorIs(t, err, lease.ErrLogin)
	_, err = c.Mutex("new").TryLockContext(adaptertest.Owner())
	require.ErrorIs(t, err, lease.ErrLogin)
	require.NoError(t, rival.Mutex("theirs").UnlockContext(b))
	password("first")
	require.NoError(t, adaptertest.Result(t, waiter))
	queued(t, admin, "mine/", 0)
	require.NoError(t, c.Mutex("theirs").UnlockContext(a))
}

func TestAnErrorThatIsNotListedHasTheClassOfItsCode(t *testing.T) {
	t.Parallel()
	for class, errs := range map[classes.Class][]error{
		classes.Request: {
			rpctypes.ErrGRPCPermissionDenied, rpctypes.ErrGRPCEmptyKey, rpctypes.ErrGRPCTooManyOps,
			rpctypes.ErrGRPCRequestTooLarge, rpctypes.ErrGRPCLeaseTTLTooLarge, rpctypes.ErrGRPCCompacted,
			rpctypes.ErrGRPCClusterIDMismatch, rpctypes.ErrGRPCMemberNotFound, rpctypes.ErrGRPCRoleNotFound,
		},
		classes.Moment:     {rpctypes.ErrGRPCNoSpace, rpctypes.ErrGRPCRequestTooManyRequests},
		classes.Connection: {rpctypes.ErrGRPCInvalidAuthToken},
		classes.Unclear:    {rpctypes.ErrGRPCCanceled, rpctypes.ErrGRPCDeadlineExceeded, rpctypes.ErrGRPCWatchCanceled},
	} {
		for _, err := range errs {
			require.Equal(t, class, etcdlock.ClassOf(err), err)
			require.Equal(t, class, etcdlock.ClassOf(rpctypes.Error(err)), err)
		}
	}
}

func TestEachKindFollowsTheClassOfAnError(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	rival := open(t, connect(t, s.addr))
	adaptertest.TestKinds(t, []adaptertest.Outage[error]{
		{Answer: rpctypes.ErrGRPCNoSpace, Class: classes.Moment},
		{Answer: rpctypes.ErrGRPCAuthFailed, Class: classes.Connection},
		{Answer: rpctypes.ErrGRPCPermissionDenied, Class: classes.Request},
	}, func(t *testing.T) (*adaptertest.Refuser[error], []adaptertest.Kind) {
		m := new(mood)
		client, err := dialWith([]grpc.DialOption{grpc.WithChainUnaryInterceptor(m.intercept)}, s.addr)
		require.NoError(t, err)
		t.Cleanup(func() { client.Close() })
		c := open(t, client, etcdlock.WithTTL(time.Hour), etcdlock.WithLeaseOptions(lease.WithPoll(50*time.Millisecond)))
		warm, a := c.Mutex(t.Name()), adaptertest.Owner()
		require.NoError(t, warm.LockContext(a))
		require.NoError(t, warm.UnlockContext(a))
		of := func(lock func(c *etcdlock.Client, name string) *lease.Mutex, c *etcdlock.Client) func(string) adaptertest.Lock {
			return func(name string) adaptertest.Lock { return lock(c, name) }
		}
		read := func(c *etcdlock.Client, name string) *lease.Mutex { return c.RWMutex(name).ReadMutex() }
		write := func(c *etcdlock.Client, name string) *lease.Mutex { return c.RWMutex(name).WriteMutex() }
		permit := func(c *etcdlock.Client, name string) *lease.Mutex { return c.Semaphore(name, 1).Locker(1) }
		return &m.Refuser, []adaptertest.Kind{
			{Name: "read", Lock: of(read, c), Rival: of(write, rival)},
			{Name: "write", Lock: of(write, c), Rival: of(read, rival)},
			{Name: "semaphore", Lock: of(permit, c), Rival: of(permit, rival)},
		}
	})
}
