package natslock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestAKilledProcessFreesItsLockByLease(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	js := connect(t, s.Addr())
	bucket := create(t, js, 1)
	child := testbed.Child(t, "hold", s.Addr(), bucket, "2s")
	require.Equal(t, "1", child.Line())
	child.Kill()
	rival := open(t, js, bucket).Mutex("it")
	began := time.Now()
	h := adaptertest.Hold(t, rival, adaptertest.Owner())
	require.GreaterOrEqual(t, time.Since(began), 2*time.Second, "a lease from when the rival saw the document")
	require.EqualValues(t, 2, h.Token())
}

// A Get of the library may be answered by any replica.
func TestAReadIsNeverAFollowersOldState(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	routes := make(map[[2]int]*leasetest.Proxy)
	servers := testbed.StartNATS(t, testbed.NATSCluster{
		Version: version, Servers: 3,
		Route: func(from, to int, addr string) string {
			p := leasetest.NewProxy(t, addr)
			mu.Lock()
			defer mu.Unlock()
			routes[[2]int{from, to}] = p
			return p.Addr()
		},
	})
	any := connect(t, strings.Join(addrs(servers), ","))
	bucket := create(t, any, 3)
	leads := leader(t, any, bucket, servers)
	follower := 0
	if servers[follower] == leads {
		follower = 1
	}
	js := connect(t, leads.Addr(), nats.IgnoreDiscoveredServers())
	behind := connect(t, servers[follower].Addr(), nats.IgnoreDiscoveredServers())
	l, ctx := open(t, js, bucket).Mutex("it"), adaptertest.Owner()
	lonely := connectFor(t, servers[follower].Addr(), brief, nats.IgnoreDiscoveredServers())
	there := open(t, lonely, bucket).Mutex("it")
	kv, err := behind.KeyValue(background, bucket)
	require.NoError(t, err)
	adaptertest.Hold(t, l, ctx)
	require.NoError(t, l.UnlockContext(ctx))
	isolate := func(f func(p *leasetest.Proxy)) {
		for ends, p := range routes {
			if ends[0] == follower || ends[1] == follower {
				f(p)
			}
		}
	}
	get := func() (e jetstream.KeyValueEntry) {
		isolate((*leasetest.Proxy).Cut)
		ctx, cancel := context.WithTimeout(background, brief/2)
		defer cancel()
		e, err = kv.Get(ctx, "it")
		return e
	}
	before := get()
	for end := time.Now().Add(long); err != nil; before = get() { // it begins to answer a little later
		require.False(t, time.Now().After(end), "no answer from the follower: %v", err)
		isolate((*leasetest.Proxy).Heal)
		isolate((*leasetest.Proxy).Reset)
	}
	h := adaptertest.Hold(t, l, ctx)
	require.EqualValues(t, 2, h.Token())

	old, err := kv.Get(background, "it")
	require.NoError(t, err)
	require.Equal(t, before.Revision(), old.Revision(), "the follower answers with its old state")
	_, err = there.Inspect(adaptertest.Owner())
	require.ErrorIs(t, err, lease.ErrUnavailable)

	isolate((*leasetest.Proxy).Heal)
	isolate((*leasetest.Proxy).Reset)
	require.Eventually(t, func() bool {
		info, err := there.Inspect(adaptertest.Owner())
		return err == nil && info.Held
	}, long, 50*time.Millisecond)
	require.NoError(t, l.UnlockContext(ctx))
}

func TestHoldsAndWaitsSurviveTheLeadersDeath(t *testing.T) {
	t.Parallel()
	servers := startCluster(t)
	all := strings.Join(addrs(servers), ",")
	js := connect(t, all)
	bucket := create(t, js, 3)
	first, a := open(t, js, bucket).Mutex("it"), adaptertest.Owner()
	h := adaptertest.Hold(t, first, a)
	began := time.Now()

	var inside atomic.Int32
	var mu sync.Mutex
	var tokens []uint64
	var wg sync.WaitGroup
	for range 4 {
		l := open(t, connectFor(t, all, brief), bucket).Mutex("it")
		wg.Go(func() {
			for range 3 {
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
	leads := leader(t, js, bucket, servers)
	leads.Kill()
	leader(t, js, bucket, servers)
	t.Logf("another leader after %v", time.Since(began))
	require.NoError(t, h.Err())
	inside.Add(1)
	require.EqualValues(t, 1, inside.Load())
	inside.Add(-1)
	require.NoError(t, first.UnlockContext(a))
	wg.Wait()
	seen := make(map[uint64]bool)
	for _, token := range tokens {
		require.False(t, seen[token], "token %d twice", token)
		seen[token] = true
	}
	leads.Start()
	leads.Ready()
	require.NoError(t, first.LockContext(a))
	require.NoError(t, first.UnlockContext(a))
}

func TestTicketsAreSoldOnceWhileLeadersFail(t *testing.T) {
	t.Parallel()
	servers := startCluster(t)
	all := strings.Join(addrs(servers), ",")
	js := connect(t, all)
	bucket := create(t, js, 3)
	var turn int
	testbed.Tickets{
		Role: "buy", Args: []string{all, bucket}, Buyers: 60, Processes: 3,
		Trouble: func() {
			time.Sleep(300 * time.Millisecond)
			if turn++; turn > 2 {
				return
			}
			leads := leader(t, js, bucket, servers)
			if turn == 1 {
				leads.Kill()
				leader(t, js, bucket, servers)
				leads.Start()
				leads.Ready()
				return
			}
			leads.Pause()
			for leader(t, js, bucket, servers) == leads { // until another one leads
			}
			leads.Resume() // it may believe that it still leads, and answers what came meanwhile
		},
	}.Run(t)
	require.Positive(t, turn)
}

func TestHoldsAndWaitsSurviveTheDeathOfAllServers(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			servers := testbed.StartNATS(t, testbed.NATSCluster{Version: version, Servers: n})
			all := strings.Join(addrs(servers), ",")
			js := connect(t, all)
			bucket := create(t, js, n)
			l, a, b := open(t, js, bucket).Mutex("it"), adaptertest.Owner(), adaptertest.Owner()
			h := adaptertest.Hold(t, l, a)
			m := open(t, connect(t, all), bucket).Mutex("it")
			waiting := adaptertest.Start(m, b)
			consumers(t, js, bucket, 1)
			for _, s := range servers {
				s.Kill()
			}
			for _, s := range servers {
				s.Start()
			}
			for _, s := range servers {
				s.Ready()
			}
			require.NoError(t, h.Err())
			require.NoError(t, l.UnlockContext(a))
			require.NoError(t, adaptertest.Result(t, waiting))
			next, err := m.Hold(b)
			require.NoError(t, err)
			require.EqualValues(t, 2, next.Token())
			require.NoError(t, m.UnlockContext(b))
		})
	}
}

func TestALostReplyToAWriteLeavesOneHold(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr())
	bucket := create(t, direct, 1)
	p := leasetest.NewProxy(t, s.Addr())
	// It soon notices a connection that has become deaf.
	l, a := open(t, connect(t, p.Addr(), nats.PingInterval(brief/2)), bucket).Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, l, a)
	require.NoError(t, l.UnlockContext(a))
	p.DropReply("$KV."+bucket+".it", 1)
	for l.LockContext(a) != nil {
	}
	require.Equal(t, 1, p.Drops())
	h, err := l.Hold(a)
	require.NoError(t, err)
	require.NoError(t, h.Err())
	p.DropReply("$KV."+bucket+".it", 1)
	require.NoError(t, l.UnlockContext(a))
	require.Equal(t, 2, p.Drops())
	b := adaptertest.Owner()
	m := open(t, direct, bucket).Mutex("it")
	adaptertest.Hold(t, m, b)
	require.NoError(t, m.UnlockContext(b))
}

func TestAWriteIsSentUntilThereIsALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l, a := openFake(t, &way{f: f}).Mutex("it"), adaptertest.Owner()
		adaptertest.Hold(t, l, a)
		require.NoError(t, l.UnlockContext(a))
		before := f.sent()
		f.set(func() { f.leaderless = true })
		began := time.Now()
		time.AfterFunc(time.Second, func() { f.set(func() { f.leaderless = false }) })
		adaptertest.Hold(t, l, a)
		require.GreaterOrEqual(t, f.sent(), before+50)
		require.Less(t, time.Since(began), time.Second+50*time.Millisecond, "no question delays a write")
		require.NoError(t, l.UnlockContext(a))
	})
}

func TestAWriteWithoutAConnectionIsNotSentLater(t *testing.T) {
	t.Parallel()
	f := newFake()
	w := &way{f: f, answer: "nats: authorization violation", timeout: brief}
	js := w.connect(t)
	l, a := open(t, js, "locks").Mutex("it"), adaptertest.Owner()
	adaptertest.Hold(t, l, a)
	require.NoError(t, l.UnlockContext(a))
	before := f.sent()
	f.set(func() { f.leaderless = true }) // it writes again and again
	tried := make(chan error, 1)
	go func() {
		_, err := l.TryLockContext(a)
		tried <- err
	}()
	require.Eventually(t, func() bool { return f.sent() > before }, long, time.Millisecond)
	w.Set(adaptertest.Refusing)
	require.Error(t, <-tried)
	before = f.sent()
	w.Set(adaptertest.Good)
	require.Eventually(t, js.Conn().IsConnected, long, time.Millisecond)
	require.NoError(t, js.Conn().Flush())
	require.Equal(t, before, f.sent())
}

func TestAWaiterIsToldOfARelease(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 3} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			servers := testbed.StartNATS(t, testbed.NATSCluster{Version: version, Servers: n})
			js := connect(t, strings.Join(addrs(servers), ","))
			bucket := create(t, js, n)
			// Otherwise it asks after 5 seconds, and at the end of the holder's lease.
			deaf := func(js jetstream.JetStream) *lease.Mutex {
				rarely := caslock.WithPolling(time.Hour, time.Hour)
				return open(t, js, bucket, rarely, caslock.WithTTL(time.Hour)).Mutex("it")
			}
			var c counts
			counted := connect(t, "nats://"+servers[0].Addr(), c.option())
			l, m := deaf(js), deaf(counted)
			a, b := adaptertest.Owner(), adaptertest.Owner()
			adaptertest.Hold(t, l, a)
			waiting := adaptertest.Start(m, b)
			for asked := 0; asked < 2; { // it asks again when the watch is on
				reads, _, _ := c.requests()
				asked += reads
				time.Sleep(time.Millisecond)
			}
			require.NoError(t, l.UnlockContext(a))
			require.NoError(t, adaptertest.Result(t, waiting))
			require.NoError(t, m.UnlockContext(b))
			consumers(t, js, bucket, 0) // the watch leaves none
		})
	}
}

func TestADeletedKeyIsALossAndAFreeLock(t *testing.T) {
	t.Parallel()
	js := connect(t, startServer(t).Addr())
	bucket := create(t, js, 1)
	kv, err := js.KeyValue(background, bucket)
	require.NoError(t, err)
	for name, remove := range map[string]func(key string) error{
		"delete": func(key string) error { return kv.Delete(background, key) },
		"purge":  func(key string) error { return kv.Purge(background, key) },
	} {
		t.Run(name, func(t *testing.T) {
			c, ctx := open(t, js, bucket, caslock.WithTTL(3*time.Second)), adaptertest.Owner()
			l := c.Mutex(name)
			h := adaptertest.Patiently(t, l, ctx)
			require.NoError(t, remove(name))
			info, err := l.Inspect(adaptertest.Owner())
			require.NoError(t, err)
			require.False(t, info.Held)
			all, err := c.Names(ctx, "")
			require.NoError(t, err)
			require.NotContains(t, all, name)
			adaptertest.AwaitLoss(t, h)
			require.ErrorIs(t, l.UnlockContext(ctx), locks.ErrLost)
			require.EqualValues(t, 1, adaptertest.Hold(t, l, ctx).Token(), "tokens begin anew")
			require.NoError(t, l.UnlockContext(ctx))
		})
	}
}

func TestSweepDeletesUnusedLocks(t *testing.T) {
	t.Parallel()
	js := connect(t, startServer(t).Addr())
	bucket := create(t, js, 1)
	c, ctx := open(t, js, bucket), adaptertest.Owner()
	for _, name := range []string{"team/nightly", "ä", "held"} {
		adaptertest.Hold(t, c.Mutex(name), ctx)
	}
	require.NoError(t, c.Mutex("team/nightly").UnlockContext(ctx))
	require.NoError(t, c.Mutex("ä").UnlockContext(ctx))
	all, err := c.Names(ctx, "")
	require.NoError(t, err)
	require.Equal(t, []string{"held", "team/nightly", "ä"}, all)
	swept, err := c.Sweep(ctx, "", 0)
	require.NoError(t, err)
	require.Equal(t, []string{"team/nightly", "ä"}, swept)
	all, err = c.Names(ctx, "")
	require.NoError(t, err)
	require.Equal(t, []string{"held"}, all)
	require.EqualValues(t, 1, adaptertest.Hold(t, c.Mutex("ä"), ctx).Token())
}

func TestASweptSemaphoreBeginsAnew(t *testing.T) {
	t.Parallel()
	js := connect(t, startServer(t).Addr())
	c := open(t, js, create(t, js, 1))
	sem := c.Semaphore("jobs", 3)
	for range 2 {
		p, err := sem.AcquireContext(background, 3)
		require.NoError(t, err)
		require.EqualValues(t, 1, p.Token())
		require.NoError(t, p.ReleaseContext(background))
		swept, err := c.Sweep(background, "", 0)
		require.NoError(t, err)
		require.Equal(t, []string{"jobs.semaphore"}, swept)
	}
}

func TestANameThatIsTooLongIsRefused(t *testing.T) {
	t.Parallel()
	js := connect(t, startServer(t).Addr())
	bucket := create(t, js, 1)
	c, ctx := open(t, js, bucket), adaptertest.Owner()
	longest := c.Mutex(strings.Repeat("x", 1024))
	adaptertest.Hold(t, longest, ctx)
	waiting := adaptertest.Start(open(t, js, bucket).Mutex(longest.Name()), adaptertest.Owner())
	require.NoError(t, longest.UnlockContext(ctx))
	require.NoError(t, adaptertest.Result(t, waiting))
	testbed.Refused(t, c.Mutex(strings.Repeat(" ", 342)), "the name has 1026 bytes as a key, at most 1024 are allowed")
	testbed.Refused(t, c.Mutex(""), "the name is empty")
}

func TestRequestsOfAPairAreCounted(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	bucket := create(t, connect(t, s.Addr()), 1)
	var c counts
	l, ctx := open(t, connect(t, s.Addr(), c.option()), bucket).Mutex("it"), adaptertest.Owner()
	c.requests()
	for _, want := range [][3]int{{1, 2, 1}, {0, 2, 0}, {0, 2, 0}} { // reads, writes, others: the bucket, before a new key
		adaptertest.Hold(t, l, ctx)
		require.NoError(t, l.UnlockContext(ctx))
		reads, writes, others := c.requests()
		require.Equal(t, want, [3]int{reads, writes, others})
	}
	h := adaptertest.Hold(t, l, ctx)
	c.requests()
	require.NoError(t, h.Extend(ctx, time.Minute))
	reads, writes, others := c.requests()
	require.Equal(t, [3]int{0, 1, 0}, [3]int{reads, writes, others})
	rival, other := connect(t, s.Addr()), adaptertest.Owner()
	m := open(t, rival, bucket).Mutex("it")
	waiting := adaptertest.Start(m, other)
	consumers(t, rival, bucket, 1)
	require.NoError(t, l.UnlockContext(ctx))
	require.NoError(t, adaptertest.Result(t, waiting))
	consumers(t, rival, bucket, 0)
	c.requests()

	waiting = adaptertest.Start(l, ctx)
	consumers(t, rival, bucket, 1)
	require.NoError(t, m.UnlockContext(other))
	require.NoError(t, adaptertest.Result(t, waiting))
	consumers(t, rival, bucket, 0)
	reads, writes, others = c.requests()
	require.Equal(t, [2]int{2, 2}, [2]int{writes, others}, "a write in vain; a consumer, and its end")
	require.LessOrEqual(t, reads, 4)
	require.NoError(t, l.UnlockContext(ctx))
}
