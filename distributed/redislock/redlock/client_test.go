package redlock_test

import (
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/suite"
	"github.com/jucgo/locks/distributed/redislock/redlock"
	"github.com/jucgo/locks/internal/test/testbed"
	"github.com/jucgo/locks/lockstest"
)

const members = 5

// masters are independent servers.
type masters []*server

func startMasters(tb testing.TB) masters {
	tb.Helper()
	m := make(masters, members)
	for i := range m {
		m[i] = startServer(tb)
	}
	return m
}

func (m masters) addrs() []string {
	addrs := make([]string, len(m))
	for i, s := range m {
		addrs[i] = s.Addr
	}
	return addrs
}

// clients returns clients of the servers, which are closed with the test.
func clients(tb testing.TB, addrs []string) []redis.UniversalClient {
	tb.Helper()
	cs := make([]redis.UniversalClient, len(addrs))
	for i, addr := range addrs {
		c := redis.NewClient(&redis.Options{
			Addr: addr, DialTimeout: hang, DialerRetries: 1, ReadTimeout: hang,
			ContextTimeoutEnabled: true, DisableIdentity: true,
		})
		tb.Cleanup(func() { c.Close() })
		cs[i] = c
	}
	return cs
}

// openMajority returns the locks on the servers of addrs. They are closed with the test.
func openMajority(tb testing.TB, addrs []string, opts ...redislock.Option) *redlock.Client {
	tb.Helper()
	// The timeout is long enough for a machine that has other work, too.
	opts = append([]redislock.Option{redlock.WithNodeTimeout(5 * time.Second)}, opts...)
	m, err := redlock.New(clients(tb, addrs), opts...)
	require.NoError(tb, err)
	tb.Cleanup(func() { adaptertest.Close(tb, m) })
	return m
}

// has returns on which of the servers the lock exists.
func has(tb testing.TB, addrs []string, name string) (nodes []int) {
	tb.Helper()
	for i, addr := range addrs {
		c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1, DisableIdentity: true})
		if c.Exists(background, name).Val() == 1 {
			nodes = append(nodes, i)
		}
		c.Close()
	}
	return nodes
}

func conformMajority(t *testing.T, addrs func(tb testing.TB) []string) {
	all := make(map[locks.TryLocker][]string)
	lockstest.TestTryLocker(t, lockstest.Config{
		New: func(tb testing.TB) locks.TryLocker {
			a := addrs(tb)
			for _, c := range clients(tb, a) {
				require.NoError(tb, c.FlushAll(background).Err())
			}
			l := openMajority(tb, a, term(testbed.ConformanceLease(tb))).Mutex("it")
			all[l] = a
			return l
		},
		Owned:       true,
		Reentrant:   true,
		Leased:      true,
		SpuriousTry: true,
		FIFO:        true,
		Lose: func(l locks.TryLocker) {
			for _, addr := range all[l] {
				c := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
				c.Del(background, "it")
				c.Close()
			}
		},
		Waiting: func(l locks.TryLocker) int { return l.(*lease.Mutex).QueueLength() },
		Rounds:  30,
		Settle:  10 * time.Millisecond,
	})
}

func TestRedlockConformsOnMiniredis(t *testing.T) {
	conformMajority(t, func(tb testing.TB) (addrs []string) {
		for range members {
			addrs = append(addrs, miniredis.RunT(tb).Addr())
		}
		return addrs
	})
}

func TestRedlockConformsOnRedis(t *testing.T) {
	m := startMasters(t)
	conformMajority(t, func(testing.TB) []string { return m.addrs() })
}

func TestRedlockRefusesWhatCannotWork(t *testing.T) {
	c := connect(t, "127.0.0.1:1")
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	t.Cleanup(func() { ring.Close() })
	for name, cs := range map[string][]redis.UniversalClient{
		"no servers": nil, "nil": {nil}, "one twice": {c, c}, "a ring": {ring},
	} {
		_, err := redlock.New(cs)
		require.Error(t, err, name)
	}
	for _, opt := range []redislock.Option{
		redlock.WithNodeTimeout(-1), redislock.WithTTL(0), redislock.WithPubSub(9),
		redlock.WithReplicas(1, time.Second),
	} {
		_, err := redlock.New([]redis.UniversalClient{c}, opt)
		require.Error(t, err)
	}
}

func TestRedlockIsAPlainLockOnAMajority(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	l := openMajority(t, m.addrs()).Mutex("it")
	a, began := someone(), time.Now()
	h := hold(t, l, a)
	require.Zero(t, h.Token())
	require.Eventually(t, func() bool { return len(has(t, m.addrs(), "it")) == members }, hang, 10*time.Millisecond)
	owners := make(map[string]bool)
	for _, addr := range m.addrs() {
		c := patient(t, addr)
		for owner, count := range c.HGetAll(background, "it").Val() {
			owners[owner] = true
			require.Equal(t, "1", count)
		}
		ttl := c.PTTL(background, "it").Val()
		require.Greater(t, ttl+time.Since(began), 29*time.Second)
		require.LessOrEqual(t, ttl, 30*time.Second+302*time.Millisecond)
		ok, err := open(t, c).Mutex("it").TryLockContext(someone())
		require.NoError(t, err)
		require.False(t, ok, "it excludes the lock of one server")
	}
	require.Len(t, owners, 1)
	require.NoError(t, l.UnlockContext(a))
	require.Eventually(t, func() bool { return len(has(t, m.addrs(), "it")) == 0 }, hang, 10*time.Millisecond)
	hold(t, l, a)
	for owner := range patient(t, m[0].Addr).HGetAll(background, "it").Val() {
		require.NotContains(t, owners, owner, "each acquisition has its own")
	}
	require.NoError(t, l.UnlockContext(a))
}

func TestOnlyAMajorityHeldByOthersMatters(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	l := openMajority(t, m.addrs()).Mutex("it")
	var others []*lease.Mutex
	for _, s := range m[:3] {
		others = append(others, open(t, patient(t, s.Addr)).Mutex("it"))
	}
	a, b := someone(), someone()
	for _, o := range others[:2] {
		hold(t, o, b)
	}
	hold(t, l, a)
	require.NoError(t, l.UnlockContext(a))
	require.Eventually(t, func() bool { return slices.Equal(has(t, m.addrs(), "it"), []int{0, 1}) }, hang,
		10*time.Millisecond)
	hold(t, others[2], b)
	ok, err := l.TryLockContext(a)
	require.NoError(t, err)
	require.False(t, ok)
	require.Equal(t, []int{0, 1, 2}, has(t, m.addrs(), "it"), "what it got is given back before it says no")
	got := make(chan error, 1)
	go func() { got <- l.LockContext(a) }()
	time.Sleep(50 * time.Millisecond)
	require.Empty(t, got)
	require.NoError(t, others[0].UnlockContext(b))
	require.NoError(t, <-got)
	require.NoError(t, l.UnlockContext(a))
	for _, o := range others[1:] {
		require.NoError(t, o.UnlockContext(b))
	}
}

func TestAHoldSurvivesTheLossOfAMinority(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	const term2 = 12 * time.Second
	c := openMajority(t, m.addrs(), term(term2))
	l := c.Mutex("it")
	a := someone()
	h := hold(t, l, a)
	m[0].Kill()
	m[1].Pause()
	defer m[1].Resume()
	first, _ := h.Deadline()
	renewed := func() bool { d, _ := h.Deadline(); return d.Sub(first) > term2 }
	require.Eventually(t, renewed, hang, 20*time.Millisecond)
	require.NoError(t, h.Err())
	ok, err := openMajority(t, m.addrs()).Mutex("it").TryLockContext(someone())
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, l.UnlockContext(a))
	hold(t, c.Mutex("other"), a) // with three of five
	require.NoError(t, c.Mutex("other").UnlockContext(a))
}

func TestAHoldIsLostWithTheMajority(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	c := openMajority(t, m.addrs(), term(3*short))
	l := c.Mutex("it")
	a := someone()
	h := hold(t, l, a)
	for _, s := range m[:3] {
		s.Kill()
	}
	for end := time.Now().Add(10 * time.Second); ; { // a last renewal may have been answered before
		deadline, _ := h.Deadline()
		if !time.Now().Before(deadline) {
			break
		}
		require.True(t, time.Now().Before(end), "it is renewed by a minority")
		time.Sleep(time.Until(deadline))
	}
	require.ErrorIs(t, h.Err(), locks.ErrLost)
	select {
	case <-h.Lost():
	case <-time.After(hang):
		t.Fatal("not told")
	}
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
	ok, err := c.Mutex("other").TryLockContext(a)
	require.Error(t, err)
	require.ErrorContains(t, err, "of 5 servers answered")
	require.False(t, ok)
	require.Eventually(t, func() bool { return len(has(t, m.addrs(), "other")) == 0 }, hang,
		10*time.Millisecond,
		"what it got is given back")
}

func TestAHoldTheMajorityDeniesIsLost(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	const term2 = 15 * time.Second
	l := openMajority(t, m.addrs(), term(term2)).Mutex("it")
	a := someone()
	h := hold(t, l, a)
	require.Eventually(t, func() bool { return len(has(t, m.addrs(), "it")) == members }, hang, 10*time.Millisecond)
	for _, s := range m[:3] {
		patient(t, s.Addr).Del(background, "it")
	}
	m[4].Kill() // so that there is an error as well
	select {
	case <-h.Lost():
	case <-time.After(2 * term2 / 3):
		t.Fatal("the next renewal did not tell")
	}
	require.Eventually(t, func() bool { return len(has(t, m.addrs(), "it")) == 0 }, term2/3-time.Second,
		10*time.Millisecond,
		"the rest is given back, and not left until it is over")
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
}

func TestADenialIsToldBesideADoubtfulHold(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	c := openMajority(t, m.addrs(), term(15*time.Second))
	denied, doubtful := c.Mutex("denied"), c.Mutex("doubtful")
	a := someone()
	h, d := hold(t, denied, a), hold(t, doubtful, a)
	require.Eventually(t, func() bool {
		return len(has(t, m.addrs(), "denied")) == members && len(has(t, m.addrs(), "doubtful")) == members
	}, hang, 10*time.Millisecond)
	for i, s := range m[:3] {
		direct := patient(t, s.Addr)
		direct.Del(background, "denied")
		if i == 2 {
			direct.Del(background, "doubtful")
		}
	}
	m[3].Kill()
	m[4].Kill()
	select {
	case <-h.Lost():
	case <-time.After(12 * time.Second): // before its deadline
		t.Fatal("the next renewal did not tell")
	}
	require.NoError(t, d.Err())
	require.ErrorIs(t, denied.UnlockContext(a), locks.ErrLost)
	<-d.Lost()
	require.ErrorIs(t, doubtful.UnlockContext(a), locks.ErrLost)
}

func TestAForgetfulServerIsRefilledOnlyOnDemand(t *testing.T) {
	t.Parallel()
	for name, restored := range map[string]bool{"by default": false, "with the option": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := startMasters(t)
			const term2 = 6 * time.Second
			opts := []redislock.Option{term(term2)}
			if restored {
				opts = append(opts, redlock.WithRestore())
			}
			l := openMajority(t, m.addrs(), opts...).Mutex("it")
			a := someone()
			h := hold(t, l, a)
			require.Eventually(t, func() bool { return len(has(t, m.addrs(), "it")) == members }, hang,
				10*time.Millisecond)
			m[2].Kill()
			m[2].Restart(t)
			first, _ := h.Deadline()
			back := func() bool { return slices.Contains(has(t, m.addrs(), "it"), 2) }
			renewed := func() bool { d, _ := h.Deadline(); return d.Sub(first) > term2 }
			if restored {
				require.Eventually(t, back, hang, 20*time.Millisecond)
			} else {
				require.Eventually(t, renewed, hang, 20*time.Millisecond)
				require.False(t, back())
			}
			require.NoError(t, h.Err())
			require.NoError(t, l.UnlockContext(a))
			require.Eventually(t, func() bool { return len(has(t, m.addrs(), "it")) == 0 }, hang, 10*time.Millisecond)
		})
	}
}

// startBehindProxy starts servers. Addrs is where clients connect: the last server is behind p.
func startBehindProxy(t *testing.T) (m masters, addrs []string, p *leasetest.Proxy) {
	m = startMasters(t)
	addrs = m.addrs()
	p = leasetest.NewProxy(t, addrs[4])
	addrs[4] = p.Addr()
	return m, addrs, p
}

func TestASlowServerDoesNotMakeRedlockSlow(t *testing.T) {
	t.Parallel()
	_, addrs, p := startBehindProxy(t)
	const limit = 2 * time.Second
	c := openMajority(t, addrs, redlock.WithNodeTimeout(limit))
	l := c.Mutex("it")
	a := someone()
	hold(t, l, a)
	require.NoError(t, l.UnlockContext(a))
	p.Delay(2 * limit)
	began := time.Now()
	for range 10 {
		hold(t, l, a)
		require.NoError(t, l.UnlockContext(a))
	}
	require.Less(t, time.Since(began), 10*limit, "a majority is enough, each time")
}

// A majority needs the slow server: the client waits for it, for the node timeout. Then it takes
// its votes back, for the release timeout. All servers answer again by then.
func TestServersThatAnswerAgainHaveNoVoteLeft(t *testing.T) {
	t.Parallel()
	m, addrs, p := startBehindProxy(t)
	const limit = 4 * time.Second
	c := openMajority(t, addrs, redlock.WithNodeTimeout(limit),
		redislock.WithLeaseOptions(lease.WithTTL(suite.Lasting), adaptertest.Patient))
	l := c.Mutex("it")
	a := someone()
	hold(t, l, a) // connects
	require.NoError(t, l.UnlockContext(a))
	require.Eventually(t, func() bool { return len(has(t, m.addrs(), "it")) == 0 }, hang, 20*time.Millisecond)
	p.Delay(2 * limit)
	m[0].Pause()
	m[1].Pause()
	began := time.Now()
	ok, err := l.TryLockContext(a)
	m[0].Resume()
	m[1].Resume()
	p.Heal()
	p.Reset() // a reply that is late already stays late, and a new connection waits for one
	require.Error(t, err)
	require.False(t, ok)
	require.Less(t, time.Since(began), hang)
	require.Eventually(t, func() bool { return len(has(t, m.addrs(), "it")) == 0 }, hang, 20*time.Millisecond)
	// The client does not know that a request without a reply cannot come again.
	require.ErrorContains(t, c.Close(background), "close: acquisitions in doubt: 1; ")
}

func TestAServerThatAnswersTooLateKeepsNothing(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	const limit = 4 * time.Second
	c := openMajority(t, m.addrs(), redlock.WithNodeTimeout(limit))
	a := someone()
	l := c.Mutex("it")
	hold(t, l, a) // so that there is a connection to each server, for the next request
	require.NoError(t, l.UnlockContext(a))
	require.Eventually(t, func() bool { return len(has(t, m.addrs(), "it")) == 0 }, hang, 20*time.Millisecond)
	m[3].Pause()
	hold(t, l, a)
	require.NoError(t, l.UnlockContext(a))
	time.Sleep(limit + 500*time.Millisecond) // the client gives up the request, and sends a deletion
	m[3].Resume()
	require.Eventually(t, func() bool { return len(has(t, m.addrs(), "it")) == 0 }, hang, 20*time.Millisecond)
	// Nor does it get anything when requests that it has read late are through.
	require.Never(t, func() bool { return len(has(t, m.addrs(), "it")) > 0 }, 300*time.Millisecond,
		30*time.Millisecond)
}

func TestSplitVotesAreResolved(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	const contenders, rounds = 6, 5
	var wg sync.WaitGroup
	var inside, most int
	var mu sync.Mutex
	for range contenders {
		l := openMajority(t, m.addrs()).Mutex("it")
		wg.Go(func() {
			a := someone()
			for range rounds {
				if !assert.NoError(t, l.LockContext(a)) {
					return
				}
				mu.Lock()
				inside++
				most = max(most, inside)
				mu.Unlock()
				time.Sleep(time.Millisecond)
				mu.Lock()
				inside--
				mu.Unlock()
				assert.NoError(t, l.UnlockContext(a))
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(hang):
		t.Fatal("they keep each other from a majority")
	}
	require.Equal(t, 1, most)
}

func TestWithoutAnyMajorityAClientAsksAgainSoon(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	l := openMajority(t, m.addrs(), suite.Rarely).Mutex("it")
	for _, s := range m[:4] {
		hold(t, open(t, patient(t, s.Addr)).Mutex("it"), someone())
	}
	a := someone()
	got := make(chan error, 1)
	go func() { got <- l.LockContext(a) }()
	direct := patient(t, m[0].Addr)
	require.Eventually(t, func() bool { return len(subscriptions(direct)) == 1 }, hang, 5*time.Millisecond)
	// The votes are deleted without a message, as by contenders that failed.
	for _, s := range m[:4] {
		require.NoError(t, patient(t, s.Addr).Del(background, "it").Err())
	}
	select {
	case err := <-got:
		require.NoError(t, err)
	case <-time.After(hang):
		t.Fatal("it waits to be told")
	}
	require.NoError(t, l.UnlockContext(a))
}

func TestAWaiterHearsReleasesFromAnyServer(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	holder, l := openMajority(t, m.addrs(), term(suite.Lasting)).Mutex("it"), openMajority(t, m.addrs(), suite.Rarely).Mutex("it")
	a, b := someone(), someone()
	m[1].Kill()
	m[4].Kill()
	hold(t, holder, a)
	got := make(chan error, 1)
	go func() { got <- l.LockContext(b) }()
	for _, i := range []int{0, 2, 3} {
		direct := patient(t, m[i].Addr)
		require.Eventually(t, func() bool {
			select {
			case err := <-got:
				t.Errorf("it does not wait: %v", err)
			default:
			}
			return len(subscriptions(direct)) == 1
		}, hang, 5*time.Millisecond, "server %d", i)
	}
	quiesce(t, patient(t, m[0].Addr))
	require.NoError(t, holder.UnlockContext(a))
	select {
	case err := <-got:
		require.NoError(t, err)
	case <-time.After(hang):
		t.Fatal("it has not heard")
	}
	require.NoError(t, l.UnlockContext(b))
}

// quiesce waits until a server has carried out no scripts for two seconds.
func quiesce(t *testing.T, c *redis.Client) {
	t.Helper()
	asked := -1
	require.Eventually(t, func() bool {
		before := asked
		asked = commands(t, c, "evalsha") + commands(t, c, "eval")
		return asked == before
	}, hang, 2*time.Second, "it asks while nobody tells of anything")
}

func TestACancelledMajorityAcquisitionIsUndone(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	var addrs []string
	var proxies []*leasetest.Proxy
	for _, s := range m {
		p := leasetest.NewProxy(t, s.Addr)
		proxies = append(proxies, p)
		addrs = append(addrs, p.Addr())
	}
	const limit = 8 * time.Second
	l := openMajority(t, addrs, redlock.WithNodeTimeout(limit)).Mutex("it")
	a := someone()
	hold(t, l, a)
	require.NoError(t, l.UnlockContext(a))
	require.Eventually(t, func() bool { return len(has(t, m.addrs(), "it")) == 0 }, hang, 10*time.Millisecond)
	for _, p := range proxies {
		p.DropReply("eval", 1)
	}
	ctx, cancel := context.WithCancel(a)
	var cancelled time.Time
	go func() {
		defer cancel()
		for end := time.Now().Add(hang); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if !slices.ContainsFunc(proxies, func(p *leasetest.Proxy) bool { return p.Drops() == 0 }) {
				break
			}
		}
		cancelled = time.Now()
	}()
	require.ErrorIs(t, l.LockContext(ctx), context.Canceled)
	require.Less(t, time.Since(cancelled), limit/2, "it does not wait for the servers")
	require.Eventually(t, func() bool { return len(has(t, m.addrs(), "it")) == 0 }, hang, 10*time.Millisecond)
	hold(t, l, a)
	require.NoError(t, l.UnlockContext(a))
}

func TestSomethingElseOnAMajorityIsForeign(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	l := openMajority(t, m.addrs()).Mutex("it")
	for _, s := range m[:2] {
		patient(t, s.Addr).Set(background, "it", "data", 0)
	}
	a := someone()
	hold(t, l, a) // three are enough
	require.NoError(t, l.UnlockContext(a))
	require.Eventually(t, func() bool { return len(has(t, m.addrs(), "it")) == 2 }, hang, 10*time.Millisecond)
	patient(t, m[2].Addr).Set(background, "it", "data", 0)
	require.ErrorIs(t, l.LockContext(a), locks.ErrForeign)
	for i, s := range m {
		if i < 3 {
			require.Equal(t, "data", patient(t, s.Addr).Get(background, "it").Val())
		}
	}
}

func TestALossPrecedesTheNextHoldersMajority(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	for phase := range 3 {
		var addrs []string
		var proxies []*leasetest.Proxy
		for _, s := range m {
			p := leasetest.NewProxy(t, s.Addr)
			proxies = append(proxies, p)
			addrs = append(addrs, p.Addr())
		}
		// The margin gives the holder time to run on a busy machine.
		limits := []redislock.Option{redislock.WithTTL(3 * short), redislock.WithLeaseOptions(lease.WithMargin(short))}
		l, rival := openMajority(t, addrs, limits...).Mutex("it"), openMajority(t, m.addrs(), limits...).Mutex("it")
		a, b := someone(), someone()
		h := hold(t, l, a)
		time.Sleep(time.Duration(phase) * short / 3)
		granted := make(chan time.Time, 1)
		go func() {
			defer close(granted) // if LockContext fails, the test does not wait in vain
			if assert.NoError(t, rival.LockContext(b)) {
				granted <- time.Now()
			}
		}()
		for _, p := range proxies[:3+phase%2] {
			p.Cut()
		}
		<-h.Lost()
		told := time.Now()
		by := told.Sub(<-granted)
		require.LessOrEqual(t, by, time.Duration(0), "phase %d", phase)
		for _, p := range proxies {
			p.Heal()
		}
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
		require.NoError(t, rival.UnlockContext(b))
	}
}

// buyByMajority buys tickets under a lock of Redlock on the servers of args.
func buyByMajority(args []string) error {
	return testbed.Buy(args, func(args []string) (locks.TryLocker, func(), error) {
		var cs []redis.UniversalClient
		for _, addr := range args {
			cs = append(cs, redis.NewClient(&redis.Options{
				Addr: addr, DialTimeout: 500 * time.Millisecond, DialerRetries: 1, ReadTimeout: 500 * time.Millisecond,
				ContextTimeoutEnabled: true, DisableIdentity: true,
			}))
		}
		m, err := redlock.New(cs, term(20*time.Second), redlock.WithNodeTimeout(300*time.Millisecond),
			redislock.WithLeaseOptions(lease.WithMaxLocalHandoffs(3)))
		if err != nil {
			return nil, nil, err
		}
		return m.Mutex("tickets"), func() {
			m.Close(background)
			for _, c := range cs {
				c.Close()
			}
		}, nil
	})
}

func TestTicketsAreSoldByMajorityWhileServersFail(t *testing.T) {
	m := startMasters(t)
	m[0].Kill() // for good: the server would come back empty
	paused := false
	retries := testbed.Tickets{
		Role:   "buy by majority",
		Args:   m.addrs(),
		Buyers: 120,
		Trouble: func() {
			s := m[1+rand.IntN(members-1)]
			s.Pause()
			paused = true
			time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
			s.Resume()
			time.Sleep(100 * time.Millisecond)
		},
	}.Run(t)
	require.True(t, paused)
	t.Log("retries:", retries)
}

// bothDatabases acquires the lock called it on two databases of some servers together, ten times.
// Two arguments are a host and the number of a database. The others are the ports of the servers.
func bothDatabases(args []string) error {
	var both []locks.TryLocker
	for _, database := range args[:2] {
		host, db, _ := strings.Cut(database, "/")
		number, err := strconv.Atoi(db)
		if err != nil {
			return err
		}
		var cs []redis.UniversalClient
		for _, port := range args[2:] {
			c := redis.NewClient(&redis.Options{Addr: net.JoinHostPort(host, port), DB: number, DisableIdentity: true})
			defer c.Close()
			cs = append(cs, c)
		}
		m, err := redlock.New(cs)
		if err != nil {
			return err
		}
		defer m.Close(background)
		both = append(both, m.Mutex("it"))
	}
	return testbed.LockTogether(background, locks.Multi(both...), 10)
}

// Each process lists the databases and the servers in an order of its own. One of them knows a
// database by another name, which sorts behind the other database.
func TestTwoProcessesAcquireOneNameOfTwoRedlocks(t *testing.T) {
	t.Parallel()
	var ports []string
	for range 3 {
		_, port, err := net.SplitHostPort(startServer(t).Addr)
		require.NoError(t, err)
		ports = append(ports, port)
	}
	start := func(first, second string) *testbed.Process {
		p := testbed.Child(t, "both databases", append([]string{first, second}, ports...)...)
		slices.Reverse(ports)
		return p
	}
	testbed.AcquireTogether(start("127.0.0.1/0", "127.0.0.1/1"), start("127.0.0.1/1", "localhost/0"))
}
