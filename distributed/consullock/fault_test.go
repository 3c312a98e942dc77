package consullock_test

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/consullock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestAKilledProcessFreesItsLockByLease(t *testing.T) {
	t.Parallel()
	addr := startServer(t)
	child := testbed.Child(t, "hold", addr, "3s")
	token, err := strconv.ParseUint(child.Line(), 10, 64)
	require.NoError(t, err)
	child.Kill()
	began := time.Now()
	h := adaptertest.Hold(t, open(t, connect(t, addr)).Mutex("it"), adaptertest.Owner())
	t.Logf("free after %v", time.Since(began))
	// Consul keeps the lock for twice the TTL after the last renewal, which may be a while ago.
	require.Greater(t, time.Since(began), 3*time.Second)
	require.Greater(t, h.Token(), token)
}

func TestADestroyedSessionIsALossAtOnce(t *testing.T) {
	t.Parallel()
	addr := startServer(t)
	direct := connect(t, addr)
	l, ctx := open(t, connect(t, addr), term(10*time.Minute), consullock.WithLockDelay(0)).Mutex("it"), adaptertest.Owner()
	h := adaptertest.Hold(t, l, ctx)
	_, err := direct.Session().Destroy(pairOf(t, direct, consullock.DefaultPrefix+"it").Session, nil)
	require.NoError(t, err)
	adaptertest.AwaitLoss(t, h) // the next renewal would be after 200 s
	require.ErrorIs(t, h.Err(), consullock.ErrSessionExpired)
	require.ErrorIs(t, l.UnlockContext(ctx), locks.ErrLost)
	next := adaptertest.Hold(t, l, ctx)
	require.Greater(t, next.Token(), h.Token(), "in another session")
	require.NoError(t, l.UnlockContext(ctx))
}

func TestAnIdleSessionEndsAndIsBegunAnew(t *testing.T) {
	t.Parallel()
	addr := startServer(t)
	direct := connect(t, addr)
	l, ctx := open(t, connect(t, addr), term(3*time.Second)).Mutex("it"), adaptertest.Owner()
	last := adaptertest.Patiently(t, l, ctx).Token()
	require.NoError(t, l.UnlockContext(ctx))
	require.Eventually(t, func() bool {
		all, _, err := direct.Session().List(nil)
		return err == nil && len(all) == 0
	}, long, 20*time.Millisecond)
	require.Greater(t, adaptertest.Hold(t, l, ctx).Token(), last)
	require.NoError(t, l.UnlockContext(ctx))
}

func TestADeletedKeyIsALossAndAFreeLock(t *testing.T) {
	t.Parallel()
	addr := startServer(t)
	direct := connect(t, addr)
	l, ctx := open(t, connect(t, addr), term(2*time.Second)).Mutex("it"), adaptertest.Owner()
	h := adaptertest.Patiently(t, l, ctx)
	_, err := direct.KV().Delete(consullock.DefaultPrefix+"it", nil)
	require.NoError(t, err)
	other, rival := open(t, connect(t, addr)).Mutex("it"), adaptertest.Owner()
	g := adaptertest.Hold(t, other, rival)
	require.Greater(t, g.Token(), h.Token())
	adaptertest.AwaitLoss(t, h)
	require.ErrorIs(t, l.UnlockContext(ctx), locks.ErrLost)
	require.True(t, pairOf(t, direct, consullock.DefaultPrefix+"it").Session != "", "the successor keeps it")
	require.NoError(t, other.UnlockContext(rival))
}

func TestAnOverwrittenKeyIsALossAndStaysTaken(t *testing.T) {
	t.Parallel()
	addr := startServer(t)
	direct := connect(t, addr)
	c, ctx := open(t, connect(t, addr), term(9*time.Second)), adaptertest.Owner()
	l, kept := c.Mutex("it"), c.Mutex("kept")
	h := adaptertest.Hold(t, l, ctx)
	adaptertest.Hold(t, kept, ctx) // so the session goes on
	over := &api.KVPair{Key: c.Key("it"), Flags: api.LockFlagValue, Value: []byte("something else")}
	_, err := direct.KV().Put(over, nil)
	require.NoError(t, err)
	adaptertest.AwaitLoss(t, h)
	require.ErrorIs(t, l.UnlockContext(ctx), locks.ErrLost)
	other, rival := open(t, connect(t, addr)).Mutex("it"), adaptertest.Owner()
	require.False(t, adaptertest.Try(t, other, rival), "a write leaves the key to its session")
	ok, err := other.ForceUnlock(background)
	require.NoError(t, err)
	require.True(t, ok)
	require.True(t, adaptertest.Try(t, other, rival))
	require.NoError(t, other.UnlockContext(rival))
	require.NoError(t, kept.UnlockContext(ctx))
}

func TestALockDelayKeepsALostLock(t *testing.T) {
	t.Parallel()
	addr := startServer(t)
	direct := connect(t, addr)
	l, ctx := open(t, connect(t, addr), consullock.WithLockDelay(1500*time.Millisecond)).Mutex("it"), adaptertest.Owner()
	h := adaptertest.Hold(t, l, ctx)
	began := time.Now()
	_, err := direct.Session().Destroy(pairOf(t, direct, consullock.DefaultPrefix+"it").Session, nil)
	require.NoError(t, err)
	adaptertest.AwaitLoss(t, h)
	other, rival := open(t, connect(t, addr)).Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, other, rival)
	require.GreaterOrEqual(t, time.Since(began), 1400*time.Millisecond)
	require.NoError(t, other.UnlockContext(rival))
	require.ErrorIs(t, l.UnlockContext(ctx), locks.ErrLost)
	require.True(t, adaptertest.Try(t, l, ctx), "a release has no delay")
	require.NoError(t, l.UnlockContext(ctx))
}

// lostReply lets the agent carry out the first transaction with the verb, and loses the reply.
func lostReply(t *testing.T, addr string, verb api.KVOp) (*api.Client, *atomic.Int64) {
	var sent atomic.Int64
	return connectThrough(t, addr, func(r *http.Request, next trips) (*http.Response, error) {
		lost := asks(t, r, verb) && sent.Add(1) == 1
		resp, err := next(r)
		if lost && err == nil {
			resp.Body.Close()
			return nil, errors.New("the reply is lost")
		}
		return resp, err
	}), &sent
}

func TestALostReplyToAnAcquisitionLeavesOneHold(t *testing.T) {
	t.Parallel()
	addr := startServer(t)
	client, sent := lostReply(t, addr, api.KVLock)
	l, ctx := open(t, client).Mutex("it"), adaptertest.Owner()
	h := adaptertest.Hold(t, l, ctx)
	require.EqualValues(t, 1, sent.Load())
	require.Equal(t, pairOf(t, client, consullock.DefaultPrefix+"it").ModifyIndex, h.Token())
	require.NoError(t, l.UnlockContext(ctx))
}

func TestALostReleaseReplyIsNoError(t *testing.T) {
	t.Parallel()
	addr := startServer(t)
	client, sent := lostReply(t, addr, api.KVUnlock)
	l, ctx := open(t, client).Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, l, ctx)
	require.NoError(t, l.UnlockContext(ctx))
	require.EqualValues(t, 2, sent.Load())
	require.Empty(t, pairOf(t, client, consullock.DefaultPrefix+"it").Session)
}

// The request without an answer stays in the network until the lock is free again.
func TestALateAcquisitionIsRefused(t *testing.T) {
	t.Parallel()
	addr := startServer(t)
	var late *http.Request
	var send trips
	client := connectThrough(t, addr, func(r *http.Request, next trips) (*http.Response, error) {
		if asks(t, r, api.KVLock) && late == nil {
			late, send = r, next
			return nil, errors.New("no answer")
		}
		return next(r)
	})
	c, ctx := open(t, client), adaptertest.Owner()
	l := c.Mutex("it")
	ok, err := l.TryLockContext(ctx)
	require.ErrorContains(t, err, "no answer")
	require.False(t, ok)
	resp, err := send(late.WithContext(background))
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, http.StatusConflict, resp.StatusCode)
	require.Empty(t, pairOf(t, client, c.Key("it")).Session)
	require.True(t, adaptertest.Try(t, l, ctx))
	require.NoError(t, l.UnlockContext(ctx))
}

// requestsOf returns a client, and a function that returns the requests that the client has sent
// since the last call. Requests that wait for a change are not among them.
func requestsOf(t *testing.T, addr string) (*api.Client, func() []string) {
	var mu sync.Mutex
	var sent []string
	client := connectThrough(t, addr, func(r *http.Request, next trips) (*http.Response, error) {
		mu.Lock()
		if r.URL.Query().Get("wait") == "" {
			what, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/"), "/")
			sent = append(sent, r.Method+" "+what)
		}
		mu.Unlock()
		return next(r)
	})
	return client, func() []string {
		mu.Lock()
		defer mu.Unlock()
		all := sent
		sent = nil
		return all
	}
}

func TestAPairIsThreeRequestsAfterTheFirst(t *testing.T) {
	t.Parallel()
	client, requests := requestsOf(t, startServer(t))
	l, ctx := open(t, client, term(10*time.Minute)).Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, l, ctx)
	require.NoError(t, l.UnlockContext(ctx))
	require.Equal(t, []string{"GET kv", "PUT txn", "PUT session", "PUT txn", "PUT txn"}, requests(), "the first time")
	adaptertest.Hold(t, l, ctx)
	require.NoError(t, l.UnlockContext(ctx))
	require.Equal(t, []string{"GET kv", "PUT txn", "PUT txn"}, requests())
}

func TestARenewalIsTwoRequests(t *testing.T) {
	t.Parallel()
	client, requests := requestsOf(t, startServer(t))
	l, ctx := open(t, client, term(6*time.Second)).Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, l, ctx)
	requests()
	var renewal []string
	require.Eventually(t, func() bool {
		renewal = append(renewal, requests()...)
		return len(renewal) >= 2
	}, long, 10*time.Millisecond)
	require.Equal(t, []string{"PUT session", "PUT txn"}, renewal)
	require.NoError(t, l.UnlockContext(ctx))
}

// leader returns the server that leads. It asks a server other than not.
func leader(tb testing.TB, servers []*testbed.Consul, not *testbed.Consul) *testbed.Consul {
	tb.Helper()
	var found *testbed.Consul
	require.Eventually(tb, func() bool {
		for _, asked := range servers {
			if asked == not {
				continue
			}
			ctx, cancel := context.WithTimeout(background, time.Second)
			q := (&api.QueryOptions{}).WithContext(ctx)
			raft, err := connect(tb, asked.Addr()).Operator().RaftGetConfiguration(q)
			cancel()
			if err != nil {
				continue
			}
			for _, s := range raft.Servers {
				for _, server := range servers {
					if s.Leader && s.Node == server.Name() && server != not {
						found = server
					}
				}
			}
		}
		return found != nil
	}, long, 20*time.Millisecond)
	return found
}

func TestHoldsAndWaitsSurviveTheLeadersDeath(t *testing.T) {
	t.Parallel()
	servers := startCluster(t)
	leads := leader(t, servers, nil)
	var others []string
	for _, s := range servers {
		if s != leads {
			others = append(others, s.Addr())
		}
	}
	first, a := open(t, connect(t, others[0]), term(time.Minute)).Mutex("it"), adaptertest.Owner()
	h := adaptertest.Hold(t, first, a)
	var inside atomic.Int32
	var mu sync.Mutex
	seen := make(map[uint64]bool)
	var wg sync.WaitGroup
	for i := range 4 {
		l := open(t, connect(t, others[i%2]), term(time.Minute)).Mutex("it")
		wg.Go(func() {
			for range 3 {
				ctx := adaptertest.Owner()
				for l.LockContext(ctx) != nil { // the first request of all may come into an election
					time.Sleep(10 * time.Millisecond)
				}
				g, err := l.Hold(ctx)
				if assert.NoError(t, err) {
					mu.Lock()
					assert.False(t, seen[g.Token()], "token %d twice", g.Token())
					assert.Greater(t, g.Token(), h.Token())
					seen[g.Token()] = true
					mu.Unlock()
				}
				assert.EqualValues(t, 1, inside.Add(1))
				time.Sleep(time.Millisecond)
				inside.Add(-1)
				assert.NoError(t, l.UnlockContext(ctx))
			}
		})
	}
	began := time.Now()
	leads.Kill()
	leader(t, servers, leads)
	t.Logf("another leader after %v", time.Since(began))
	require.NoError(t, h.Err())
	inside.Add(1)
	require.EqualValues(t, 1, inside.Load())
	inside.Add(-1)
	require.NoError(t, first.UnlockContext(a))
	wg.Wait()
	leads.Start()
	leads.Ready()
	require.NoError(t, first.LockContext(a))
	require.NoError(t, first.UnlockContext(a))
}

func TestHoldsSurviveTheDeathOfAllServers(t *testing.T) {
	t.Parallel()
	servers := startCluster(t)
	l, ctx := open(t, connect(t, servers[0].Addr()), term(time.Minute)).Mutex("it"), adaptertest.Owner()
	h := adaptertest.Hold(t, l, ctx)
	for _, s := range servers {
		s.Kill()
	}
	for _, s := range servers {
		s.Start()
	}
	for _, s := range servers {
		s.Ready()
	}
	other, rival := open(t, connect(t, servers[1].Addr())).Mutex("it"), adaptertest.Owner()
	require.False(t, adaptertest.Try(t, other, rival))
	require.NoError(t, h.Err())
	require.NoError(t, l.UnlockContext(ctx))
	g := adaptertest.Hold(t, other, rival)
	require.Greater(t, g.Token(), h.Token())
	require.NoError(t, other.UnlockContext(rival))
}

func TestAHolderBehindADeadServerLearnsInTime(t *testing.T) {
	t.Parallel()
	servers := startCluster(t)
	leads := leader(t, servers, nil)
	l, ctx := open(t, connect(t, leads.Addr()), term(2*time.Second)).Mutex("it"), adaptertest.Owner()
	h := adaptertest.Patiently(t, l, ctx)
	leads.Pause()
	var lost atomic.Int64
	go func() {
		<-h.Lost()
		lost.Store(time.Now().UnixNano())
	}()
	next := leader(t, servers, leads)
	other, rival := open(t, connect(t, next.Addr())).Mutex("it"), adaptertest.Owner()
	for other.LockContext(rival) != nil { // the first request of all may come into an election
		time.Sleep(10 * time.Millisecond)
	}
	require.Error(t, h.Err())
	g, err := other.Hold(rival)
	require.NoError(t, err)
	require.Greater(t, g.Token(), h.Token())
	leads.Resume() // it may believe that it still leads
	require.NoError(t, other.UnlockContext(rival))
	require.Eventually(t, func() bool { return lost.Load() != 0 }, long, time.Millisecond)
}

// The servers remove a dead server from the cluster, and end the sessions of its clients long
// before their time.
func TestASessionOfADeadServerEndsAfterTheHold(t *testing.T) {
	t.Parallel()
	servers := startCluster(t)
	leads := leader(t, servers, nil)
	dies := servers[0]
	if dies == leads {
		dies = servers[1]
	}
	l, ctx := open(t, connect(t, dies.Addr())).Mutex("it"), adaptertest.Owner()
	h := adaptertest.Hold(t, l, ctx)
	dies.Pause()
	other, rival := open(t, connect(t, leads.Addr())).Mutex("it"), adaptertest.Owner()
	g := adaptertest.Hold(t, other, rival)
	require.ErrorIs(t, h.Err(), locks.ErrLost)
	require.Greater(t, g.Token(), h.Token())
	require.NoError(t, other.UnlockContext(rival))
	dies.Resume()
}

func TestTicketsAreSoldOnceWhileLeadersFail(t *testing.T) {
	t.Parallel()
	servers := startCluster(t)
	leads := leader(t, servers, nil)
	for servers[0] == leads { // the buyers' server goes on
		servers = append(servers[1:], servers[0])
	}
	turn := 0
	testbed.Tickets{
		Role: "buy", Args: []string{servers[0].Addr()}, Buyers: 60, Processes: 3,
		Trouble: func() {
			time.Sleep(300 * time.Millisecond)
			if turn++; turn > 2 {
				return
			}
			leads := leader(t, servers, nil)
			switch {
			case leads == servers[0]:
			case turn == 1:
				leads.Kill()
				leader(t, servers, leads)
				leads.Start()
				leads.Ready()
			default:
				leads.Pause()
				leader(t, servers, leads)
				leads.Resume() // it may believe that it still leads
			}
		},
	}.Run(t)
	require.Positive(t, turn)
}

func TestASecondCloseLeavesReleasesToTheFirst(t *testing.T) {
	t.Parallel()
	addr := startServer(t)
	releasing, goOn := make(chan struct{}), make(chan struct{})
	client := connectThrough(t, addr, func(r *http.Request, next trips) (*http.Response, error) {
		if asks(t, r, api.KVUnlock) {
			close(releasing)
			<-goOn
		}
		return next(r)
	})
	c := open(t, client, term(time.Minute), consullock.WithLockDelay(time.Minute))
	adaptertest.Hold(t, c.Mutex("it"), adaptertest.Owner())
	closed := make(chan error, 1)
	go func() { closed <- c.Close(background) }()
	<-releasing
	require.NoError(t, c.Close(background))
	close(goOn)
	require.NoError(t, adaptertest.Result(t, closed))
	other, rival := open(t, connect(t, addr)).Mutex("it"), adaptertest.Owner()
	require.True(t, adaptertest.Try(t, other, rival), "a release has no delay")
	require.NoError(t, other.UnlockContext(rival))
}

func TestAReadWithoutAnAnswerIsTemporary(t *testing.T) {
	client := connectThrough(t, "127.0.0.1:1", func(*http.Request, trips) (*http.Response, error) {
		return nil, errors.New("the connection ended")
	})
	c := open(t, client)
	_, err := c.Names(background, "")
	require.ErrorIs(t, err, lease.ErrUnavailable)
	_, err = c.Mutex("it").Inspect(background)
	require.ErrorIs(t, err, lease.ErrUnavailable)
}
