package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/etcdlock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/internal/test/testbed"
)

const (
	short = time.Second  // a lease
	long  = testbed.Hang // only a hang takes longer
)

var background = context.Background()

func as(o locks.Owner) context.Context { return locks.WithOwner(background, o) }

// keys returns the keys that begin with prefix, the oldest first.
func keys(tb testing.TB, c *clientv3.Client, prefix string) []string {
	tb.Helper()
	resp, err := c.Get(background, prefix, clientv3.WithPrefix(),
		clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	require.NoError(tb, err)
	list := []string{}
	for _, kv := range resp.Kvs {
		list = append(list, string(kv.Key))
	}
	return list
}

// queued waits until n keys begin with prefix.
func queued(tb testing.TB, c *clientv3.Client, prefix string, n int) {
	tb.Helper()
	require.Eventually(tb, func() bool { return len(keys(tb, c, prefix)) == n }, long, time.Millisecond)
}

// leaseOf returns the lease that a key has.
func leaseOf(tb testing.TB, c *clientv3.Client, key string) clientv3.LeaseID {
	tb.Helper()
	resp, err := c.Get(background, key)
	require.NoError(tb, err)
	require.Len(tb, resp.Kvs, 1)
	return clientv3.LeaseID(resp.Kvs[0].Lease)
}

// overlap has a holder meet with trouble, and returns by how much later it was told of its loss
// than a rival got the lock.
func overlap(t *testing.T, s *server, p *leasetest.Proxy, d, phase time.Duration,
	before func(locks.Hold), trouble func()) time.Duration {
	t.Helper()
	// The margin leaves time for the holder to run on a busy machine.
	margin := etcdlock.WithLeaseOptions(lease.WithMargin(d / 3))
	l := open(t, connect(t, p.Addr()), term(d), margin).Mutex("it")
	rival := open(t, connect(t, s.addr)).Mutex("it")
	a, b := adaptertest.Owner(), adaptertest.Owner()
	h := adaptertest.Patiently(t, l, a)
	if before != nil {
		before(h)
	}
	time.Sleep(phase) // the phase of the renewals is what is varied
	granted := make(chan time.Time, 1)
	go func() {
		defer close(granted) // if LockContext fails, the test does not wait in vain
		if assert.NoError(t, rival.LockContext(b)) {
			granted <- time.Now()
		}
	}()
	trouble()
	<-h.Lost()
	told := time.Now()
	require.ErrorIs(t, h.Err(), locks.ErrLost)
	at := <-granted
	p.Heal()
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
	require.NoError(t, rival.UnlockContext(b))
	return told.Sub(at)
}

func TestAPartitionedHolderLearnsOfItsLossFirst(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(p *leasetest.Proxy){
		"both directions": (*leasetest.Proxy).Cut,
		"replies only":    (*leasetest.Proxy).CutReplies,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := lendServer(t)
			for phase := range 5 {
				p := leasetest.NewProxy(t, s.addr)
				by := overlap(t, s, p, 3*short, time.Duration(phase)*short/5, nil, func() { trouble(p) })
				require.LessOrEqual(t, by, time.Duration(0), "phase %d", phase)
			}
		})
	}
}

func TestAnExtendedHoldLearnsOfLossInTime(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	p := leasetest.NewProxy(t, s.addr)
	by := overlap(t, s, p, 15*short, 0, func(h locks.Hold) {
		time.Sleep(4 * short) // it is renewed after five
		require.NoError(t, h.Extend(background, 15*short))
		p.Cut()
		time.Sleep(6 * short) // without the extension it would be over now
		require.NoError(t, h.Err())
	}, func() {})
	require.LessOrEqual(t, by, time.Duration(0))
}

func TestAnExtendedHoldIsRenewedAfterTheExtension(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	l, a := open(t, connect(t, s.addr), term(12*short)).Mutex("it"), adaptertest.Owner()
	h := adaptertest.Hold(t, l, a)
	for _, d := range []time.Duration{time.Hour, 8 * short} { // it is renewed after four
		require.NoError(t, h.Extend(a, d))
		deadline, _ := h.Deadline()
		require.LessOrEqual(t, time.Until(deadline), min(d, 12*short), "no longer than the session")
	}
	time.Sleep(13 * short)
	require.NoError(t, h.Err())
	require.NoError(t, l.UnlockContext(a))
	require.Empty(t, keys(t, connect(t, s.addr), "it/"))
}

func TestASessionIsReusedUnlessMostlyOver(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	l, a := open(t, connect(t, s.addr), term(9*short)).Mutex("it"), adaptertest.Owner()
	used := func() (key string, id clientv3.LeaseID) {
		adaptertest.Hold(t, l, a)
		defer func() { require.NoError(t, l.UnlockContext(a)) }()
		key = keys(t, direct, "it/")[0]
		return key, leaseOf(t, direct, key)
	}
	key, first := used()
	again, second := used()
	require.Equal(t, first, second)
	require.Equal(t, key, again, "reads of the queue pass deleted keys")
	time.Sleep(5 * short)
	_, third := used()
	require.NotEqual(t, first, third)
}

func TestAHoldLostInAPauseStaysLost(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l := open(t, connect(t, s.addr), term(3*short)).Mutex("it")
	rival := open(t, connect(t, s.addr)).Mutex("it")
	a, b := adaptertest.Owner(), adaptertest.Owner()
	h := adaptertest.Patiently(t, l, a)
	s.Pause()
	adaptertest.AwaitLoss(t, h)
	deadline, _ := h.Deadline()
	require.False(t, time.Now().Before(deadline))
	time.Sleep(2 * short)
	s.Resume()
	require.Eventually(t, func() bool { ok, _ := rival.TryLockContext(b); return ok }, long, 10*time.Millisecond)
	require.ErrorIs(t, h.Err(), locks.ErrLost)
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
	require.NoError(t, rival.UnlockContext(b))
}

func TestAPausedHolderFirstLearnsOfItsLoss(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	child := testbed.Child(t, "hold", s.addr)
	token, err := strconv.ParseUint(child.Line(), 10, 64)
	require.NoError(t, err)
	child.Say("")
	require.Equal(t, "false", child.Line())
	child.Pause()
	rival, b := open(t, connect(t, s.addr)).Mutex("it"), adaptertest.Owner()
	h := adaptertest.Hold(t, rival, b)
	require.Greater(t, h.Token(), token, "the resource refuses the smaller one")
	child.Say("") // it is there when the process goes on
	child.Resume()
	require.Equal(t, "true", child.Line())
	require.NoError(t, rival.UnlockContext(b))
}

func TestAKilledProcessFreesItsLockByLease(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	child := testbed.Child(t, "hold", s.addr)
	child.Line()
	rival, b := open(t, connect(t, s.addr)).Mutex("it"), adaptertest.Owner()
	got := adaptertest.Start(rival, b)
	queued(t, connect(t, s.addr), "it/", 2)
	child.Kill()
	require.NoError(t, adaptertest.Result(t, got))
	require.NoError(t, rival.UnlockContext(b))
}

func TestAPartitionThatEndsInTimeLosesNothing(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	p := leasetest.NewProxy(t, s.addr)
	l, a := open(t, connect(t, p.Addr()), term(6*short)).Mutex("it"), adaptertest.Owner()
	h := adaptertest.Hold(t, l, a)
	for range 2 {
		p.Refuse()
		time.Sleep(short)
		p.Heal()
		before, _ := h.Deadline()
		require.Eventually(t, func() bool { d, _ := h.Deadline(); return d.After(before) }, long, 10*time.Millisecond)
	}
	require.NoError(t, h.Err())
	require.NoError(t, l.UnlockContext(a))
}

// A gRPC client that was refused for ten seconds waits for four and more before it connects again.
// That would be too late.
func TestAHoldSurvivesBrieflyRefusedConnections(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	p := leasetest.NewProxy(t, s.addr)
	a := adaptertest.Owner()
	var ls []*lease.Mutex
	var holds []locks.Hold
	for i := range 4 { // each client waits for a random time
		ls = append(ls, open(t, connect(t, p.Addr()), term(16*short)).Mutex(fmt.Sprint("it", i)))
		holds = append(holds, adaptertest.Hold(t, ls[i], a))
	}
	for _, h := range holds { // their times begin together, however long it took to connect
		require.NoError(t, h.Extend(a, 16*short))
	}
	time.Sleep(3 * short / 2)
	p.Refuse()
	time.Sleep(10 * short)
	p.Heal()
	for i, h := range holds {
		require.Eventually(t, func() bool {
			end, _ := h.Deadline()
			return time.Until(end) > 10*short || h.Err() != nil
		}, long, time.Millisecond)
		require.NoError(t, h.Err())
		require.NoError(t, ls[i].UnlockContext(a))
	}
}

// dropReply has the reply to the next request that names the lock get lost, and its connection
// break.
func dropReply(p *leasetest.Proxy, name string) {
	drops := p.Drops()
	p.DropReply(name+"/", 1)
	go func() {
		for stop := time.Now().Add(long); p.Drops() == drops && time.Now().Before(stop); {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(50 * time.Millisecond) // for the request to get there
		p.Reset()
	}()
}

func TestALostAcquisitionReplyLeavesOneHold(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	for name, take := range map[string]func(l *lease.Mutex, ctx context.Context) error{
		"lock": (*lease.Mutex).LockContext,
		"try": func(l *lease.Mutex, ctx context.Context) error {
			ok, err := l.TryLockContext(ctx)
			if err == nil && !ok {
				err = errors.New("refused")
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := leasetest.NewProxy(t, s.addr)
			l, a := open(t, connect(t, p.Addr())).Mutex(name), adaptertest.Owner()
			adaptertest.Hold(t, l, a) // so that there is a lease
			require.NoError(t, l.UnlockContext(a))
			dropReply(p, name)
			require.NoError(t, take(l, a))
			require.Equal(t, 1, p.Drops())
			h, err := l.Hold(a)
			require.NoError(t, err)
			require.NoError(t, h.Err())
			require.Len(t, keys(t, direct, name+"/"), 1)
			require.NoError(t, l.UnlockContext(a))
			require.Empty(t, keys(t, direct, name+"/"))
			require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
		})
	}
}

func TestACancelledAcquisitionWithoutReplyIsUndone(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	p := leasetest.NewProxy(t, s.addr)
	direct := connect(t, s.addr)
	l, a := open(t, connect(t, p.Addr()), term(12*long)).Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, l, a)
	require.NoError(t, l.UnlockContext(a))
	p.DropReply("it/", 1)
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(a)
	got := adaptertest.Start(l, ctx)
	queued(t, direct, "it/", 1)
	require.Eventually(t, func() bool { return p.Drops() == 1 }, long, time.Millisecond)
	cancelled := time.Now()
	cancel(gone)
	err := adaptertest.Result(t, got)
	require.Less(t, time.Since(cancelled), long, "it does not wait for the server")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, gone)
	p.Reset()
	queued(t, direct, "it/", 0)
	require.Eventually(t, func() bool {
		leases, err := direct.Leases(background)
		return err == nil && len(leases.Leases) == 0
	}, long, 5*time.Millisecond, "a request that arrives later still shall find no lease")
}

func TestALostReleaseReplyIsNoError(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	p := leasetest.NewProxy(t, s.addr)
	l, a := open(t, connect(t, p.Addr())).Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, l, a)
	dropReply(p, "it")
	require.NoError(t, l.UnlockContext(a))
	require.Equal(t, 1, p.Drops())
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
	require.Empty(t, keys(t, connect(t, s.addr), "it/"))
}

func TestWaitersCancelledAtRandomLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	holder, a := open(t, connect(t, s.addr)).Mutex("it"), adaptertest.Owner()
	rw := open(t, connect(t, s.addr)).RWMutex("it").WriteLocker()
	adaptertest.Hold(t, holder, a)
	require.NoError(t, rw.LockContext(a))
	// Clients of their own, since of one client one goroutine at a time waits for the cluster.
	var wg sync.WaitGroup
	var clients []*etcdlock.Client
	for range 10 {
		c := open(t, connect(t, s.addr))
		clients = append(clients, c)
		both := c.RWMutex("it")
		for _, l := range []locks.TryLocker{c.Mutex("it"), both.ReadLocker(), both.WriteLocker()} {
			for range 34 { // a thousand in all
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(adaptertest.Owner(), time.Duration(rand.Int64N(int64(time.Second))))
					defer cancel()
					assert.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
				})
			}
		}
	}
	wg.Wait()
	for _, c := range clients { // once the requests that were under way are undone
		require.NoError(t, c.Close(background))
	}
	require.Len(t, keys(t, direct, "it"), 2)
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, rw.UnlockContext(a))
	require.Empty(t, keys(t, direct, "it"))
	adaptertest.Hold(t, holder, a)
	require.NoError(t, holder.UnlockContext(a))
}

func TestAWaiterKeepsItsPlaceBeyondALease(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	holder := open(t, connect(t, s.addr), term(10*short)).Mutex("it")
	l := open(t, connect(t, s.addr), term(10*short)).Mutex("it")
	a, b := adaptertest.Owner(), adaptertest.Owner()
	h := adaptertest.Hold(t, holder, a)
	got := adaptertest.Start(l, b)
	queued(t, direct, "it/", 2)
	before := keys(t, direct, "it/")
	time.Sleep(21 * short)
	require.NoError(t, h.Err())
	require.Equal(t, before, keys(t, direct, "it/"))
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, adaptertest.Result(t, got))
	h, err := l.Hold(b)
	require.NoError(t, err)
	deadline, _ := h.Deadline()
	require.LessOrEqual(t, time.Until(deadline), 10*short)
	require.NoError(t, l.UnlockContext(b))
}

func TestAHoldBeginsAtItsPlacesLastRenewal(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	holder, l := open(t, connect(t, s.addr)).Mutex("it"), open(t, connect(t, s.addr), term(30*short)).Mutex("it")
	a, b := adaptertest.Owner(), adaptertest.Owner()
	adaptertest.Hold(t, holder, a)
	got := adaptertest.Start(l, b)
	queued(t, connect(t, s.addr), "it/", 2)
	since := time.Now()
	time.Sleep(2 * short) // less than a third of the lease
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, adaptertest.Result(t, got))
	h, err := l.Hold(b)
	require.NoError(t, err)
	deadline, _ := h.Deadline()
	require.True(t, deadline.Before(since.Add(30*short)), "the server's may be over then")
	require.NoError(t, l.UnlockContext(b))
}

func TestAHolderLearnsOfRemovedKeyOrLease(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	for name, take := range map[string]func(key string) error{
		"key":   func(key string) error { _, err := direct.Delete(background, key); return err },
		"lease": func(key string) error { _, err := direct.Revoke(background, leaseOf(t, direct, key)); return err },
	} {
		t.Run(name, func(t *testing.T) {
			watchers(t, s, 0) // any more
			l, rival := open(t, connect(t, s.addr), term(6*long)).Mutex(name), open(t, connect(t, s.addr)).Mutex(name)
			a, b := adaptertest.Owner(), adaptertest.Owner()
			h := adaptertest.Hold(t, l, a)
			watchers(t, s, 1)
			require.NoError(t, take(keys(t, direct, name+"/")[0]))
			adaptertest.AwaitLoss(t, h) // the renewals would tell later
			require.ErrorIs(t, h.Err(), etcdlock.ErrSessionExpired)
			g := adaptertest.Hold(t, rival, b)
			require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
			require.NoError(t, g.Err())
			require.Len(t, keys(t, direct, name+"/"), 1)
			require.NoError(t, rival.UnlockContext(b))
			require.Empty(t, keys(t, direct, name+"/"))
		})
	}
}

func TestRenewalReportsARemovedKeyWithoutWatch(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	l, a := open(t, connect(t, s.addr), term(9*short)).Mutex("it"), adaptertest.Owner()
	h := adaptertest.Hold(t, l, a)
	direct := connect(t, s.addr)
	_, err := direct.Delete(background, keys(t, direct, "it/")[0]) // before it is watched
	require.NoError(t, err)
	adaptertest.AwaitLoss(t, h)
	deadline, _ := h.Deadline()
	require.True(t, time.Now().Before(deadline), "before its time was over")
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
}

func TestAWaiterSurvivesACompactionOfItsEvents(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	p := leasetest.NewProxy(t, s.addr)
	direct := connect(t, s.addr)
	l := open(t, connect(t, p.Addr()), etcdlock.WithLeaseOptions(lease.WithPoll(time.Hour))).Mutex("it")
	first, second := open(t, connect(t, s.addr)).Mutex("it"), open(t, connect(t, s.addr)).Mutex("it")
	a, b, c := adaptertest.Owner(), adaptertest.Owner(), adaptertest.Owner()
	adaptertest.Hold(t, first, a)
	waits := adaptertest.Start(second, b)
	queued(t, direct, "it/", 2)
	got := adaptertest.Start(l, c)
	queued(t, direct, "it/", 3)
	time.Sleep(200 * time.Millisecond) // it watches by then; if not, this is no test, but no failure either
	p.Refuse()
	require.NoError(t, first.UnlockContext(a))
	require.NoError(t, adaptertest.Result(t, waits))
	require.NoError(t, second.UnlockContext(b)) // it does not hear of that
	resp, err := direct.Put(background, "other", "")
	require.NoError(t, err)
	_, err = direct.Compact(background, resp.Header.Revision)
	require.NoError(t, err)
	p.Heal()
	require.NoError(t, adaptertest.Result(t, got))
	require.NoError(t, l.UnlockContext(c))
}

func TestHoldsAndWaitsSurviveTheLeadersDeath(t *testing.T) {
	t.Parallel()
	members := startCluster(t, "", 3)
	var addrs []string
	for _, m := range members {
		addrs = append(addrs, m.addr)
	}
	first := open(t, connect(t, addrs...), term(8*time.Second)).Mutex("it")
	a := adaptertest.Owner()
	h := adaptertest.Hold(t, first, a)

	var inside atomic.Int32
	var mu sync.Mutex
	var tokens []uint64
	var wg sync.WaitGroup
	for range 4 {
		l := open(t, connect(t, addrs...), term(8*time.Second)).Mutex("it")
		wg.Go(func() {
			for range 5 {
				ctx := adaptertest.Owner()
				for l.LockContext(ctx) != nil { // an election may take longer than a request is waited for
					time.Sleep(10 * time.Millisecond)
				}
				g, err := l.Hold(ctx)
				if assert.NoError(t, err) {
					mu.Lock()
					tokens = append(tokens, g.Token())
					mu.Unlock()
				}
				assert.EqualValues(t, 1, inside.Add(1))
				time.Sleep(time.Millisecond)
				inside.Add(-1)
				err = l.UnlockContext(ctx)
				for ; err != nil && !errors.Is(err, locks.ErrNotHeld); err = l.UnlockContext(ctx) {
					t.Log(err)
				}
			}
		})
	}
	leader := func() *server {
		for _, m := range members {
			status, err := connect(t, m.addr).Status(background, m.addr)
			require.NoError(t, err)
			if status.Leader == status.Header.MemberId {
				return m
			}
		}
		t.Fatal("no leader")
		return nil
	}()
	for _, m := range members {
		if m != leader {
			queued(t, connect(t, m.addr), "it/", 5)
		}
	}
	leader.Kill()
	before, _ := h.Deadline()
	require.Eventually(t, func() bool { d, _ := h.Deadline(); return d.After(before) }, long, 10*time.Millisecond,
		"renewed by the new leader")
	require.NoError(t, h.Err())
	inside.Add(1)
	time.Sleep(100 * time.Millisecond)
	inside.Add(-1)
	require.NoError(t, first.UnlockContext(a))
	wg.Wait()
	require.Len(t, tokens, 20)
	require.IsIncreasing(t, append([]uint64{h.Token()}, tokens...))
}

func TestHoldsOfOneOwnerAreCounted(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	l, rival := open(t, connect(t, s.addr)).Mutex("it"), open(t, connect(t, s.addr)).Mutex("it")
	a, b := adaptertest.Owner(), adaptertest.Owner()
	adaptertest.Hold(t, l, a)
	adaptertest.Hold(t, l, a)
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, l.UnlockContext(a)) })
	wg.Wait()
	require.False(t, adaptertest.Try(t, rival, b))
	require.NoError(t, l.UnlockContext(a))
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
	adaptertest.Hold(t, rival, b)
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
	require.NoError(t, rival.UnlockContext(b))
}

func TestCloseEndsHoldsAndWaiters(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	direct := connect(t, s.addr)
	conn := connect(t, s.addr)
	c := open(t, conn)
	holder, a := open(t, connect(t, s.addr)).Mutex("other"), adaptertest.Owner()
	adaptertest.Hold(t, holder, a)
	h := adaptertest.Hold(t, c.Mutex("it"), adaptertest.Owner())
	require.NoError(t, c.RWMutex("rw").ReadLocker().LockContext(adaptertest.Owner()))
	var waits []<-chan error
	for _, name := range []string{"it", "other"} {
		for range 3 {
			waits = append(waits, adaptertest.Start(c.Mutex(name), adaptertest.Owner()))
		}
	}
	queued(t, direct, "other/", 2)
	require.NoError(t, c.Close(background))
	for _, got := range waits {
		require.ErrorIs(t, adaptertest.Result(t, got), locks.ErrClosed)
	}
	require.ErrorIs(t, h.Err(), locks.ErrLost)
	require.ErrorIs(t, c.Mutex("it").LockContext(adaptertest.Owner()), locks.ErrClosed)
	require.ErrorIs(t, c.RWMutex("rw").WriteLocker().LockContext(adaptertest.Owner()), locks.ErrClosed)
	require.Len(t, keys(t, direct, ""), 1, "the other's")
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, c.Close(background), "again")
	_, err := conn.Get(background, "it")
	require.NoError(t, err, "the client that was given stays open")
}

func TestCloseDoesNotWaitForAGoneServer(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	p := leasetest.NewProxy(t, s.addr)
	c, err := etcdlock.New(connect(t, p.Addr()))
	require.NoError(t, err)
	adaptertest.Hold(t, c.Mutex("it"), adaptertest.Owner())
	p.Cut()
	ctx, cancel := context.WithTimeout(background, 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	require.Error(t, c.Close(ctx))
	require.Less(t, time.Since(began), long)
}

func TestBrokenConnectionsSellNoTicketTwice(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	p := leasetest.NewProxy(t, s.addr)
	testbed.Tickets{
		Role: "buy",
		Args: []string{p.Addr()},
		Trouble: func() {
			p.Reset()
			time.Sleep(300 * time.Millisecond)
		},
	}.Run(t)
}

func TestHoldsWithAFixedTTLEnd(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	c := open(t, connect(t, s.addr))
	rival := open(t, connect(t, s.addr)).Mutex("it")
	l, a := c.Mutex("it", lease.WithFixedTTL(4*short)), adaptertest.Owner()
	adaptertest.Hold(t, l, a)
	time.Sleep(short) // of the lease, which is used again
	require.NoError(t, l.UnlockContext(a))
	began := time.Now()
	h := adaptertest.Hold(t, l, a)
	deadline, _ := h.Deadline()
	require.GreaterOrEqual(t, deadline.Sub(began), 4*short-short/4)
	b := adaptertest.Owner()
	got := adaptertest.Start(rival, b)
	adaptertest.AwaitLoss(t, h)
	require.NoError(t, adaptertest.Result(t, got))
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
	require.NoError(t, rival.UnlockContext(b))
}

func TestManyHoldsAreRenewed(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	c, a := open(t, connect(t, s.addr), term(20*short)), adaptertest.Owner()
	var holds []locks.Hold
	for i := range 150 { // more than are renewed at once
		holds = append(holds, adaptertest.Hold(t, c.Mutex(fmt.Sprint("it", i)), a))
	}
	time.Sleep(21 * short)
	for i, h := range holds {
		require.NoError(t, h.Err(), i)
		deadline, _ := h.Deadline()
		require.Greater(t, time.Until(deadline), short/2, "it is kept alive in time")
		require.NoError(t, c.Mutex(fmt.Sprint("it", i)).UnlockContext(a))
	}
}

func TestAHoldMayBeOfMaximalLength(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	c, a := open(t, connect(t, s.addr), term(math.MaxInt64)), adaptertest.Owner()
	l := c.Mutex("it", lease.WithFixedTTL(math.MaxInt64))
	rival := open(t, connect(t, s.addr)).Mutex("it")
	h := adaptertest.Hold(t, l, a)
	require.NoError(t, h.Extend(a, math.MaxInt64))
	require.False(t, adaptertest.Try(t, rival, adaptertest.Owner()))
	require.NoError(t, h.Err())
	require.NoError(t, l.UnlockContext(a))
	require.True(t, adaptertest.Try(t, rival, a))
	require.NoError(t, rival.UnlockContext(a))
}

func TestALocalWaiterSurvivesALongOutage(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	p := leasetest.NewProxy(t, s.addr)
	l := open(t, connect(t, p.Addr()), term(6*short)).Mutex("it")
	a, b := adaptertest.Owner(), adaptertest.Owner()
	h := adaptertest.Hold(t, l, a)
	got := adaptertest.Start(l, b)
	require.Eventually(t, func() bool { return l.QueueLength() == 1 }, long, time.Millisecond)
	p.Refuse()
	adaptertest.AwaitLoss(t, h)
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost) // so that it is b's turn here
	select {
	case err := <-got:
		require.Fail(t, "waits no longer", "%v", err)
	case <-time.After(8 * short): // a request is given up after three
	}
	p.Heal()
	require.NoError(t, adaptertest.Result(t, got))
	require.NoError(t, l.UnlockContext(b))
}

func TestHoldsAndWaitsSurviveAServersRestart(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l := open(t, connect(t, s.addr), term(long)).Mutex("it")
	waiter := open(t, connect(t, s.addr), term(long)).Mutex("it")
	a, b := adaptertest.Owner(), adaptertest.Owner()
	h := adaptertest.Hold(t, l, a)
	got := adaptertest.Start(waiter, b)
	queued(t, connect(t, s.addr), "it/", 2)
	s.Kill()
	s.Restart()
	require.Eventually(t, func() bool { return h.Extend(a, long) == nil }, long, 10*time.Millisecond)
	select {
	case err := <-got:
		t.Fatalf("granted (%v) while held", err)
	default:
	}
	require.NoError(t, l.UnlockContext(a))
	require.NoError(t, adaptertest.Result(t, got))
	next, err := waiter.Hold(b)
	require.NoError(t, err)
	require.Greater(t, next.Token(), h.Token())
	require.NoError(t, waiter.UnlockContext(b))
}
