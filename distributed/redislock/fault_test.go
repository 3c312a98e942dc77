package redislock_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
)

const short = 900 * time.Millisecond // a lease

var background = context.Background()

func as(o locks.Owner) context.Context { return locks.WithOwner(background, o) }

func someone() context.Context { return as(locks.NewOwner()) }

func hold(tb testing.TB, l *redislock.Lock, ctx context.Context) locks.Hold {
	tb.Helper()
	require.NoError(tb, l.LockContext(ctx))
	h, err := l.Hold(ctx)
	require.NoError(tb, err)
	return h
}

// overlap has a holder meet with trouble, and returns by how much later it was told of its loss than a rival
// got the lock.
func overlap(t *testing.T, s *server, p *proxy, phase time.Duration, trouble func()) time.Duration {
	t.Helper()
	l := open(t, connect(t, p.addr()), term(short)).Lock("it")
	rival := open(t, connect(t, s.addr), term(short)).Lock("it")
	a, b := someone(), someone()
	h := hold(t, l, a)
	time.Sleep(phase)
	granted := make(chan time.Time, 1)
	go func() {
		if assert.NoError(t, rival.LockContext(b)) {
			granted <- time.Now()
		}
	}()
	trouble()
	<-h.Lost()
	told := time.Now()
	require.ErrorIs(t, h.Err(), locks.ErrLost)
	at := <-granted
	p.heal()
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
	require.NoError(t, rival.UnlockContext(b))
	return told.Sub(at)
}

func TestALossIsToldBeforeARivalGetsTheLockInEveryPhaseOfAPartition(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	troubles := map[string]func(p *proxy){
		"both directions": func(p *proxy) { p.cut() },
		"replies only":    func(p *proxy) { p.set(func(p *proxy) { p.down = true }) },
	}
	for name, trouble := range troubles {
		for phase := range 5 {
			t.Run(name, func(t *testing.T) {
				p := startProxy(t, s.addr)
				by := overlap(t, s, p, time.Duration(phase)*short/15, func() { trouble(p) })
				require.LessOrEqual(t, by, time.Duration(0), "phase %d", phase)
			})
		}
	}
}

func TestAHoldIsLostWhileTheServerIsPausedAndStaysLost(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l := open(t, connect(t, s.addr), term(short)).Lock("it")
	rival := open(t, connect(t, s.addr), term(short)).Lock("it")
	a, b := someone(), someone()
	h := hold(t, l, a)
	deadline, _ := h.Deadline()
	s.pause(t)
	<-h.Lost()
	require.Less(t, time.Since(deadline), short, "told by the deadline, which may have been moved once")
	time.Sleep(2 * short)
	require.ErrorIs(t, h.Err(), locks.ErrLost)
	s.resume(t)
	require.Eventually(t, func() bool { ok, _ := rival.TryLockContext(b); return ok }, 5*time.Second, 10*time.Millisecond)
	require.ErrorIs(t, h.Err(), locks.ErrLost)
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
	require.NoError(t, rival.UnlockContext(b))
}

func TestAPartitionThatEndsInTimeLosesNothing(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := startProxy(t, s.addr)
	direct := connect(t, s.addr)
	l := open(t, connect(t, p.addr()), term(3*short)).Lock("it")
	a := someone()
	h := hold(t, l, a)
	for range 2 {
		p.cut()
		time.Sleep(short)
		p.heal()
		time.Sleep(short)
	}
	require.NoError(t, h.Err())
	ttl := direct.PTTL(background, "it").Val()
	require.Greater(t, ttl, short)
	require.NoError(t, l.UnlockContext(a))
}

func TestALostReplyOfAnAcquisitionLeavesOneHold(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			p := startProxy(t, s.addr)
			direct := connect(t, s.addr)
			// This client repeats requests by default, as many do.
			client := redis.NewClient(&redis.Options{Addr: p.addr(), ReadTimeout: 200 * time.Millisecond, DisableIdentity: true})
			t.Cleanup(func() { client.Close() })
			l := kind.lock(open(t, client), name)
			a := someone()
			require.NoError(t, l.LockContext(a)) // so that the scripts are known to the server
			require.NoError(t, l.UnlockContext(a))
			requests := commands(t, direct, "evalsha") + commands(t, direct, "eval")
			p.dropReply("eval")
			h := hold(t, l, a)
			require.Equal(t, 1, p.drops())
			require.NoError(t, h.Err())
			require.Equal(t, requests+2, commands(t, direct, "evalsha")+commands(t, direct, "eval"), "one to take it, one to ask who has it")
			if name != "simple" {
				count := direct.HVals(background, name).Val()
				require.Equal(t, []string{"1"}, count)
			}
			require.NoError(t, l.UnlockContext(a))
			require.Zero(t, direct.Exists(background, name).Val())
		})
	}
}

// commands returns how many commands of a name a server has carried out.
func commands(t *testing.T, c *redis.Client, name string) (n int) {
	t.Helper()
	for line := range strings.Lines(c.Info(background, "commandstats").Val()) {
		if rest, ok := strings.CutPrefix(line, "cmdstat_"+name+":calls="); ok {
			for _, d := range rest {
				if d < '0' || d > '9' {
					break
				}
				n = 10*n + int(d-'0')
			}
		}
	}
	return n
}

func TestACancelledAcquisitionWhoseReplyIsLostReturnsAtOnceAndIsUndone(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := startProxy(t, s.addr)
	direct := connect(t, s.addr)
	l := open(t, connect(t, p.addr())).Lock("it")
	a := someone()
	hold(t, l, a)
	require.NoError(t, l.UnlockContext(a))
	p.dropReply("eval")
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(a)
	var cancelled time.Time
	time.AfterFunc(50*time.Millisecond, func() { cancelled = time.Now(); cancel(gone) })
	err := l.LockContext(ctx)
	require.Less(t, time.Since(cancelled), 50*time.Millisecond)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, gone)
	require.EqualValues(t, 1, direct.Exists(background, "it").Val(), "the request has got there")
	require.Eventually(t, func() bool { return direct.Exists(background, "it").Val() == 0 }, 2*time.Second, 5*time.Millisecond)
}

func TestALostReplyOfAReleaseIsNoError(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := startProxy(t, s.addr)
	l := open(t, connect(t, p.addr())).Lock("it")
	a := someone()
	hold(t, l, a)
	p.dropReply("eval")
	require.NoError(t, l.UnlockContext(a))
	require.Equal(t, 1, p.drops())
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
}

func TestSlowRepliesKeepTheHold(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := startProxy(t, s.addr)
	client := redis.NewClient(&redis.Options{Addr: p.addr(), DisableIdentity: true})
	t.Cleanup(func() { client.Close() })
	l := open(t, client, term(2*time.Second)).Lock("it")
	p.set(func(p *proxy) { p.delay = 50 * time.Millisecond })
	var wg sync.WaitGroup
	for range 6 { // a new connection takes two replies
		wg.Go(func() { client.Ping(background) })
	}
	wg.Wait()
	p.heal()
	a := someone()
	h := hold(t, l, a)
	p.set(func(p *proxy) { p.delay = time.Second })
	time.Sleep(5 * time.Second)
	require.NoError(t, h.Err())
	p.heal()
	require.NoError(t, l.UnlockContext(a))
}

func TestWaitersCancelledAtRandomLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.addr)
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			holder := kind.lock(open(t, connect(t, s.addr)), name)
			a := someone()
			hold(t, holder, a)
			// A client each, since of one client one goroutine at a time waits for the server.
			var wg sync.WaitGroup
			for range 10 {
				l := kind.lock(open(t, connect(t, s.addr)), name)
				for range 10 {
					wg.Go(func() {
						ctx, cancel := context.WithTimeout(someone(), time.Duration(rand.Int64N(int64(300*time.Millisecond))))
						defer cancel()
						assert.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
					})
				}
			}
			wg.Wait()
			require.Eventually(t, func() bool {
				for _, n := range subscriptions(direct) {
					if strings.Contains(n, name) {
						return false
					}
				}
				return true
			}, 5*time.Second, 10*time.Millisecond, "subscriptions are left")
			require.NoError(t, holder.UnlockContext(a))
			require.NoError(t, holder.LockContext(a))
			require.NoError(t, holder.UnlockContext(a))
			for _, key := range direct.Keys(background, "*"+name+"*").Val() {
				require.Contains(t, key, "token", "a key is left")
			}
		})
	}
}

func subscriptions(c *redis.Client) []string { return c.PubSubChannels(background, "*").Val() }

func TestWaitersGoOnAfterTheirSubscriptionsWereCut(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.addr)
	holder := open(t, connect(t, s.addr)).Lock("it")
	a := someone()
	hold(t, holder, a)
	const n = 10
	var wg sync.WaitGroup
	for range n {
		l := open(t, connect(t, s.addr)).Lock("it")
		for range 5 {
			wg.Go(func() {
				b := someone()
				if assert.NoError(t, l.LockContext(b)) {
					assert.NoError(t, l.UnlockContext(b))
				}
			})
		}
	}
	heard := func() bool {
		return direct.PubSubNumSub(background, "redisson_lock__channel:{it}").Val()["redisson_lock__channel:{it}"] == n
	}
	require.Eventually(t, heard, 5*time.Second, 5*time.Millisecond)
	require.NoError(t, direct.ClientKillByFilter(background, "TYPE", "pubsub").Err())
	require.Eventually(t, heard, 5*time.Second, 5*time.Millisecond, "subscribed again")
	began := time.Now()
	require.NoError(t, holder.UnlockContext(a))
	wg.Wait()
	require.Less(t, time.Since(began), lease.DefaultPoll)
}

func TestAReleaseDuringACutOfTheSubscriptionIsNotMissed(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.addr)
	holder, l := open(t, connect(t, s.addr)).Lock("it"), open(t, connect(t, s.addr)).Lock("it")
	a, b := someone(), someone()
	hold(t, holder, a)
	got := make(chan error, 1)
	go func() { got <- l.LockContext(b) }()
	require.Eventually(t, func() bool { return len(subscriptions(direct)) == 1 }, 5*time.Second, 5*time.Millisecond)
	// Nobody hears of this.
	pipe := direct.TxPipeline()
	pipe.ClientKillByFilter(background, "TYPE", "pubsub")
	pipe.Del(background, "it")
	_, err := pipe.Exec(background)
	require.NoError(t, err)
	select {
	case err := <-got:
		require.NoError(t, err)
	case <-time.After(2 * time.Second):
		t.Fatal("it relied on its subscription")
	}
	require.NoError(t, l.UnlockContext(b))
	require.ErrorIs(t, holder.UnlockContext(a), locks.ErrLost)
}

func TestWithoutMessagesWaitersAskInTurn(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := startProxy(t, s.addr)
	p.set(func(p *proxy) {
		p.match = func(reply []byte) bool { return bytes.Contains(reply, []byte("\r\nmessage\r\n")) }
	})
	poll := redislock.WithLease(lease.WithPoll(300 * time.Millisecond))
	holder, l := open(t, connect(t, s.addr)).Lock("it"), open(t, connect(t, p.addr()), poll).Lock("it")
	a, b := someone(), someone()
	hold(t, holder, a)
	got := make(chan error, 1)
	go func() { got <- l.LockContext(b) }()
	time.Sleep(100 * time.Millisecond)
	began := time.Now()
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, <-got)
	require.Less(t, time.Since(began), 600*time.Millisecond)
	require.NoError(t, l.UnlockContext(b))
}

func TestMessagesWithoutAReasonGrantNothing(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.addr)
	holder, l := open(t, connect(t, s.addr)).Lock("it"), open(t, connect(t, s.addr)).Lock("it")
	a, b := someone(), someone()
	hold(t, holder, a)
	got := make(chan error, 1)
	go func() { got <- l.LockContext(b) }()
	require.Eventually(t, func() bool { return len(subscriptions(direct)) == 1 }, 5*time.Second, 5*time.Millisecond)
	asked := -1
	require.Eventually(t, func() bool { // it asks once more when it has subscribed
		before := asked
		asked = commands(t, direct, "evalsha") + commands(t, direct, "eval")
		return asked == before
	}, 5*time.Second, 100*time.Millisecond)
	for range 100 {
		require.NoError(t, direct.Publish(background, "redisson_lock__channel:{it}", "garbage \x00").Err())
	}
	time.Sleep(50 * time.Millisecond)
	require.Equal(t, asked, commands(t, direct, "evalsha")+commands(t, direct, "eval"), "nobody asks because of garbage")
	for i := range 100 {
		require.NoError(t, direct.Publish(background, "redisson_lock__channel:{it}", i%2).Err())
	}
	select {
	case err := <-got:
		t.Fatalf("granted: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, <-got)
	require.NoError(t, l.UnlockContext(b))
}

func TestAHolderWhoseLockWasTakenAwayFindsOutAndLeavesItsSuccessorAlone(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.addr)
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			l, rival := kind.lock(open(t, connect(t, s.addr), term(short)), name), kind.lock(open(t, connect(t, s.addr)), name)
			a, b := someone(), someone()
			h := hold(t, l, a)
			direct.Del(background, name)
			hold(t, rival, b)
			select {
			case <-h.Lost():
			case <-time.After(short):
				t.Fatal("the renewal did not tell")
			}
			require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
			require.EqualValues(t, 1, direct.Exists(background, name).Val())
			require.NoError(t, rival.UnlockContext(b))
			require.Zero(t, direct.Exists(background, name).Val())
		})
	}
}

func TestAFlushIsALossAndForgottenScriptsAreNone(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.addr)
	l := open(t, connect(t, s.addr), term(short)).FencedLocker("it")
	a := someone()
	h := hold(t, l, a)
	for range 10 {
		require.NoError(t, direct.ScriptFlush(background).Err())
		time.Sleep(short / 10)
	}
	require.NoError(t, h.Err())
	require.NoError(t, direct.ScriptFlush(background).Err())
	require.NoError(t, l.UnlockContext(a))
	require.NoError(t, direct.ScriptFlush(background).Err())
	token := h.Token()
	h = hold(t, l, a)
	require.Equal(t, token+1, h.Token(), "taken once")
	direct.FlushAll(background)
	select {
	case <-h.Lost():
	case <-time.After(short):
		t.Fatal("the renewal did not tell")
	}
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
}

func TestNothingElseIsOverwritten(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.addr)
	c := open(t, connect(t, s.addr), redislock.WithLease(lease.WithPoll(100*time.Millisecond)))
	direct.Set(background, "string", "data", 0)
	direct.RPush(background, "list", "data")
	direct.HSet(background, "hash", "field", "data")
	direct.HSet(background, "rw", "mode", "read", "somebody", 1)
	direct.Set(background, "{counted}", "x", 0)
	direct.Set(background, "redisson_lock_token:{counted}", "x", 0)
	for _, l := range []*redislock.Lock{
		c.Lock("string"), c.Lock("list"), c.Lock("rw"), c.FencedLocker("string"), c.FencedLocker("counted"),
		c.SimpleLocker("list"), c.SimpleLocker("hash"),
	} {
		began := time.Now()
		ok, err := l.TryLockContext(someone())
		require.False(t, ok)
		require.ErrorIs(t, err, locks.ErrForeign, l.String())
		require.ErrorIs(t, l.LockContext(someone()), locks.ErrForeign)
		require.Less(t, time.Since(began), time.Second, "at once")
	}
	require.Zero(t, direct.Exists(background, "counted").Val(), "not taken without a token")

	// Without a time to live they are somebody's, for as long as they are there.
	for _, l := range []*redislock.Lock{c.Lock("hash"), c.SimpleLocker("string")} {
		ok, err := l.TryLockContext(someone())
		require.NoError(t, err)
		require.False(t, ok)
		got := make(chan error, 1)
		a := someone()
		go func() { got <- l.LockContext(a) }()
		time.Sleep(50 * time.Millisecond)
		require.EqualValues(t, 1, direct.Exists(background, l.Name()).Val())
		direct.Del(background, l.Name()) // without a word
		select {
		case err := <-got:
			require.NoError(t, err)
		case <-time.After(2 * time.Second):
			t.Fatal("it waits for ever")
		}
		require.NoError(t, l.UnlockContext(a))
	}
}

func TestHoldsOfOneOwnerAreCounted(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l := open(t, connect(t, s.addr)).Lock("it")
	rival := open(t, connect(t, s.addr)).Lock("it")
	a := someone()
	hold(t, l, a)
	hold(t, l, a)
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, l.UnlockContext(a)) })
	wg.Wait()
	ok, err := rival.TryLockContext(someone())
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, l.UnlockContext(a))
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
	b := someone()
	hold(t, rival, b)
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
	require.NoError(t, rival.UnlockContext(b))
}

func TestCloseEndsHoldsAndWaiters(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.addr)
	c := open(t, connect(t, s.addr))
	holder := open(t, connect(t, s.addr)).Lock("other")
	a := someone()
	hold(t, holder, a)
	h := hold(t, c.Lock("it"), someone())
	hold(t, c.FencedLocker("fenced"), someone())
	hold(t, c.SimpleLocker("simple"), someone())
	var wg sync.WaitGroup
	for _, name := range []string{"it", "other"} {
		for range 3 {
			wg.Go(func() { assert.ErrorIs(t, c.Lock(name).LockContext(someone()), locks.ErrClosed) })
		}
	}
	time.Sleep(50 * time.Millisecond)
	require.NoError(t, c.Close(background))
	wg.Wait()
	require.ErrorIs(t, h.Err(), locks.ErrLost)
	require.ErrorIs(t, c.Lock("it").LockContext(someone()), locks.ErrClosed)
	require.ErrorIs(t, c.SimpleLocker("it").LockContext(someone()), locks.ErrClosed)
	require.Zero(t, direct.Exists(background, "it", "fenced", "simple").Val())
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, c.Close(background), "again")
}

func TestCloseDoesNotWaitForAServerThatIsGone(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := startProxy(t, s.addr)
	c, err := redislock.New(connect(t, p.addr()))
	require.NoError(t, err)
	hold(t, c.Lock("it"), someone())
	p.cut()
	ctx, cancel := context.WithTimeout(background, 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	require.Error(t, c.Close(ctx))
	require.Less(t, time.Since(began), time.Second)
}
