package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// Times of the tests.
const (
	Short = 1500 * time.Millisecond // a lease
	Long  = 8 * Short               // one that is not lost because the machine is busy
	Hasty = Short / 6               // for a reply
	Hang  = testbed.Hang
)

// Lasting is a lease that no test outlasts. A waiter that relies on its end hangs.
const Lasting = 6 * Hang

// Rarely makes waiters rely on messages, and on the time to live of the lock.
var Rarely = redislock.WithLeaseOptions(lease.WithPoll(Lasting))

// Unhurried keeps a client from failing because the machine is busy.
var Unhurried = []redislock.Option{redislock.WithLeaseOptions(adaptertest.Patient), Term(Lasting)}

// Brief is for a test after which there is nobody to release a lock.
var Brief = redislock.WithLeaseOptions(lease.WithReleaseTimeout(time.Second))

// Background is a context that never ends.
var Background = context.Background()

// As returns a context of o.
func As(o locks.Owner) context.Context { return locks.WithOwner(Background, o) }

// Someone returns a context of a new owner.
func Someone() context.Context { return As(locks.NewOwner()) }

// Hold takes l as the owner of ctx.
func Hold(tb testing.TB, l locks.Leased, ctx context.Context) locks.Hold {
	tb.Helper()
	require.NoError(tb, l.LockContext(ctx))
	h, err := l.Hold(ctx)
	require.NoError(tb, err)
	return h
}

// Renewed waits for the next renewal of h.
func Renewed(tb testing.TB, h locks.Hold) {
	tb.Helper()
	before, _ := h.Deadline()
	require.Eventually(tb, func() bool {
		after, _ := h.Deadline()
		return after.After(before)
	}, Hang, 5*time.Millisecond)
	require.NoError(tb, h.Err())
}

// partitioned is the lease of a holder whose connection is cut.
const partitioned = 4 * Short

// overlap runs trouble while a holder has the lock. It returns for how long the hold was valid
// after a rival had the lock. That time must never be positive, however busy the machine is: a hold
// that says it is valid was valid when it was asked.
func overlap(t *testing.T, on Driver, s *Server, p *leasetest.Proxy, phase time.Duration,
	trouble func()) time.Duration {
	t.Helper()
	// The margin is large so that the channel is closed in time as well.
	margin := redislock.WithLeaseOptions(lease.WithMargin(partitioned / 3))
	l := on.Server(t, p.Addr(), partitioned/6, redislock.WithTTL(partitioned), margin).Mutex(t.Name())
	rival := on.Open(t, s.Addr).Mutex(t.Name())
	a, b := Someone(), Someone()
	h := adaptertest.Patiently(t, l, a)
	began := time.Now()
	granted := make(chan time.Time, 1)
	told := make(chan bool, 1)
	go func() {
		defer close(granted)
		if assert.NoError(t, rival.LockContext(b)) {
			granted <- time.Now()
			select {
			case <-h.Lost():
				told <- true
			default:
				told <- false
			}
		}
	}()
	time.Sleep(phase)
	trouble()
	var valid time.Time
	for at := time.Now(); h.Err() == nil; at = time.Now() {
		valid = at
		require.Less(t, time.Since(began), Hang, "it is not lost")
		time.Sleep(time.Millisecond)
	}
	require.ErrorIs(t, h.Err(), locks.ErrLost)
	at, ok := <-granted
	require.True(t, ok)
	require.True(t, <-told, "Lost is not closed though a rival has the lock")
	p.Heal()
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
	require.NoError(t, rival.UnlockContext(b))
	return valid.Sub(at)
}

func ALossIsToldBeforeARivalGetsTheLockInEveryPhaseOfAPartition(t *testing.T, on Driver) {
	t.Parallel()
	s := StartServer(t)
	troubles := map[string]func(p *leasetest.Proxy){
		"both directions": (*leasetest.Proxy).Cut,
		"replies only":    (*leasetest.Proxy).CutReplies,
	}
	for name, trouble := range troubles {
		for phase := range 5 {
			t.Run(fmt.Sprint(name, " in phase ", phase), func(t *testing.T) {
				t.Parallel()
				p := leasetest.NewProxy(t, s.Addr)
				by := overlap(t, on, s, p, time.Duration(phase)*partitioned/15, func() { trouble(p) })
				require.LessOrEqual(t, by, time.Duration(0))
			})
		}
	}
}

func ALostAcquisitionReplyLeavesOneHold(t *testing.T, on Driver) {
	t.Parallel()
	for name, kind := range AllKinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := StartServer(t)
			p := leasetest.NewProxy(t, s.Addr)
			direct := Connect(t, s.Addr)
			// A renewal would count as a request.
			l := kind(on.Open(t, p.Addr(), Rarely), name).(*lease.Mutex)
			a := Someone()
			require.NoError(t, l.LockContext(a)) // so that the scripts are known to the server
			require.NoError(t, l.UnlockContext(a))
			requests := Commands(t, direct, "evalsha") + Commands(t, direct, "eval")
			p.ResetReply(on.Eval, 1)
			h := Hold(t, l, a)
			require.Equal(t, 1, p.Drops())
			require.NoError(t, h.Err())
			require.Equal(t, requests+2, Commands(t, direct, "evalsha")+Commands(t, direct, "eval"),
				"one to take it, one to ask who has it")
			HeldOnce(t, direct, name)
			require.NoError(t, l.UnlockContext(a))
			require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
			OnlyTokens(t, direct, name)

			// A waiter gets no reply when it has the lock.
			rival, b := AnyKind[Against(name)](on.Open(t, s.Addr), name).(*lease.Mutex), Someone()
			Hold(t, rival, b)
			got := make(chan error, 1)
			go func() { got <- l.LockContext(a) }()
			quiet(t, direct)
			p.ResetReply(on.Eval, 1)
			require.NoError(t, rival.UnlockContext(b))
			require.NoError(t, <-got)
			require.Equal(t, 2, p.Drops())
			HeldOnce(t, direct, name)
			require.False(t, Try(t, rival, b))
			require.NoError(t, l.UnlockContext(a))
			OnlyTokens(t, direct, name)
		})
	}
}

// HeldOnce checks that the lock called name, of any kind, has one hold and no waiters.
func HeldOnce(t *testing.T, direct *redis.Client, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		return direct.Exists(Background,
			"redisson_lock_queue:{"+name+"}").Val() == 0
	},
		Hang, time.Millisecond)
	holds := direct.Keys(Background, "{"+name+"}:*:rwlock_timeout:*").Val()
	if name == "read" {
		require.Len(t, holds, 1)
	} else {
		require.Empty(t, holds)
	}
	if name == "simple" {
		require.EqualValues(t, 1, direct.Exists(Background, name).Val())
		return
	}
	state := direct.HGetAll(Background, name).Val()
	delete(state, "mode")
	require.Len(t, state, 1)
	for _, count := range state {
		require.Equal(t, "1", count)
	}
}

// OnlyTokens waits until nothing is left of the lock called name but its counter.
func OnlyTokens(t *testing.T, direct *redis.Client, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, key := range direct.Keys(Background, "*"+name+"*").Val() {
			if !strings.HasPrefix(key, "redisson_lock_token:") {
				return false
			}
		}
		return true
	}, Hang, time.Millisecond)
}

// quiet waits until a waiter has subscribed and has sent its last request.
func quiet(t *testing.T, direct *redis.Client) {
	t.Helper()
	require.Eventually(t, func() bool { return len(Subscriptions(direct)) > 0 }, Hang, time.Millisecond)
	asked := -1
	require.Eventually(t, func() bool {
		before := asked
		asked = Commands(t, direct, "evalsha") + Commands(t, direct, "eval")
		return asked == before
	}, Hang, 100*time.Millisecond)
}

// Commands returns how many Commands of a name a server has carried out.
func Commands(t *testing.T, c *redis.Client, name string) (n int) {
	t.Helper()
	for line := range strings.Lines(c.Info(Background, "commandstats").Val()) {
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

func ACancelledAcquisitionWhoseReplyIsLostReturnsAtOnceAndIsUndone(t *testing.T, on Driver) {
	t.Parallel()
	s := StartServer(t)
	for name, kind := range AnyKind {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := leasetest.NewProxy(t, s.Addr)
			direct := Connect(t, s.Addr)
			const patience = 2 * Hang // of the client with its connection
			l := kind(on.Server(t, p.Addr(), patience), name).(*lease.Mutex)
			a := Someone()
			Hold(t, l, a)
			require.NoError(t, l.UnlockContext(a))
			p.DropReply(on.Eval, 1)
			gone := errors.New("gone")
			ctx, cancel := context.WithCancelCause(a)
			got := make(chan error, 1)
			go func() { got <- l.LockContext(ctx) }()
			require.Eventually(t, func() bool { return direct.Exists(Background, name).Val() == 1 }, Hang,
				time.Millisecond)
			cancelled := time.Now()
			cancel(gone)
			err := <-got
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, gone)
			require.Eventually(t, func() bool { return direct.Exists(Background, name).Val() == 0 }, Hang,
				time.Millisecond)
			require.Less(t, time.Since(cancelled), patience/2, "without the reply")
			p.Reset()
			adaptertest.Patiently(t, l, Someone()) // a connection that is closed may not be known to be
		})
	}
}

func ALostReleaseReplyIsNoError(t *testing.T, on Driver) {
	t.Parallel()
	s := StartServer(t)
	p := leasetest.NewProxy(t, s.Addr)
	l := on.Open(t, p.Addr()).Mutex("it")
	a := Someone()
	Hold(t, l, a)
	p.ResetReply(on.Eval, 1)
	require.NoError(t, l.UnlockContext(a))
	require.Equal(t, 1, p.Drops())
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
}

// Keys returns all keys, except what clients tell of themselves. That expires with them.
func Keys(c *redis.Client) []string {
	return slices.DeleteFunc(c.Keys(Background, "*").Val(), func(key string) bool {
		return strings.HasPrefix(key, "locks_client:")
	})
}

// Subscriptions returns the classic channels with subscribers, except the channels of clients. A
// client subscribes to its own channel together with the channel of the lock.
func Subscriptions(c *redis.Client) []string { return shared(c.PubSubChannels(Background, "*").Val()) }

// ShardSubscriptions is Subscriptions for sharded channels.
func ShardSubscriptions(c *redis.Client) []string {
	return shared(c.PubSubShardChannels(Background, "*").Val())
}

func shared(channels []string) []string {
	return slices.DeleteFunc(channels, func(c string) bool {
		return strings.HasPrefix(c, "locks_waiting") || strings.HasPrefix(c, "locks_client:")
	})
}

func WaitersGoOnAfterTheirSubscriptionsWereCut(t *testing.T, on Driver) {
	t.Parallel()
	s := StartServer(t)
	direct := Connect(t, s.Addr)
	holder := on.Open(t, s.Addr, Rarely).Mutex("it")
	a := Someone()
	Hold(t, holder, a)
	const n = 10
	var wg sync.WaitGroup
	for range n {
		l := on.Open(t, s.Addr, Rarely).Mutex("it")
		for range 5 {
			wg.Go(func() {
				b := Someone()
				if assert.NoError(t, l.LockContext(b)) {
					assert.NoError(t, l.UnlockContext(b))
				}
			})
		}
	}
	heard := func() bool {
		return direct.PubSubNumSub(Background, "redisson_lock__channel:{it}").Val()["redisson_lock__channel:{it}"] == n
	}
	require.Eventually(t, heard, Hang, 5*time.Millisecond)
	require.NoError(t, direct.ClientKillByFilter(Background, "TYPE", "pubsub").Err())
	require.Eventually(t, heard, Hang, 5*time.Millisecond, "subscribed again")
	began := time.Now()
	require.NoError(t, holder.UnlockContext(a))
	wg.Wait()
	require.Less(t, time.Since(began), Hang)
}

func AReleaseDuringACutOfTheSubscriptionIsNotMissed(t *testing.T, on Driver) {
	t.Parallel()
	s := StartServer(t)
	direct := Connect(t, s.Addr)
	holder, l := on.Open(t, s.Addr, Rarely).Mutex("it"), on.Open(t, s.Addr, Rarely).Mutex("it")
	a, b := Someone(), Someone()
	Hold(t, holder, a)
	got := make(chan error, 1)
	go func() { got <- l.LockContext(b) }()
	require.Eventually(t, func() bool { return len(Subscriptions(direct)) == 1 }, Hang, 5*time.Millisecond)
	// This sends no message.
	pipe := direct.TxPipeline()
	pipe.ClientKillByFilter(Background, "TYPE", "pubsub")
	pipe.Del(Background, "it")
	_, err := pipe.Exec(Background)
	require.NoError(t, err)
	select {
	case err := <-got:
		require.NoError(t, err)
	case <-time.After(Hang):
		t.Fatal("it relied on its subscription")
	}
	require.NoError(t, l.UnlockContext(b))
	require.ErrorIs(t, holder.UnlockContext(a), locks.ErrLost)
}

func WithoutMessagesWaitersAskInTurn(t *testing.T, on Driver) {
	t.Parallel()
	s := StartServer(t)
	p := leasetest.NewProxy(t, s.Addr)
	p.Swallow(func(reply []byte) bool { return bytes.Contains(reply, []byte("\r\nmessage\r\n")) })
	direct := Connect(t, s.Addr)
	poll := redislock.WithLeaseOptions(lease.WithPoll(300 * time.Millisecond))
	holder, l := on.Open(t, s.Addr).Mutex("it"), on.Open(t, p.Addr(), poll).Mutex("it")
	a, b := Someone(), Someone()
	Hold(t, holder, a)
	got := make(chan error, 1)
	go func() { got <- l.LockContext(b) }()
	require.Eventually(t, func() bool { return len(Subscriptions(direct)) == 1 }, Hang, 5*time.Millisecond)
	began := time.Now()
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, <-got)
	require.Less(t, time.Since(began), Hang)
	require.NoError(t, l.UnlockContext(b))
}

func MessagesWithoutAReasonGrantNothing(t *testing.T, on Driver) {
	t.Parallel()
	s := StartServer(t)
	direct := Connect(t, s.Addr)
	// Nothing is renewed, and no waiter asks in turn: each request comes from a woken waiter.
	calm := []redislock.Option{redislock.WithTTL(time.Hour), redislock.WithLeaseOptions(lease.WithPoll(time.Hour))}
	holder, l := on.Open(t, s.Addr, calm...).Mutex("it"), on.Open(t, s.Addr, calm...).Mutex("it")
	a, b := Someone(), Someone()
	Hold(t, holder, a)
	got := make(chan error, 1)
	go func() { got <- l.LockContext(b) }()
	require.Eventually(t, func() bool { return len(Subscriptions(direct)) == 1 }, Hang, 5*time.Millisecond)
	asked := func() int { return Commands(t, direct, "evalsha") + Commands(t, direct, "eval") }
	require.Eventually(t, func() bool { // it asks once more when it has subscribed, sooner or later
		before := asked()
		for range 100 {
			require.NoError(t, direct.Publish(Background, "redisson_lock__channel:{it}", "garbage \x00").Err())
		}
		time.Sleep(50 * time.Millisecond)
		return asked() == before
	}, Hang, 10*time.Millisecond, "it asks because of garbage")
	for i := range 100 {
		require.NoError(t, direct.Publish(Background, "redisson_lock__channel:{it}", i%2).Err())
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

func AFlushLosesHoldsForgottenScriptsDoNot(t *testing.T, on Driver) {
	t.Parallel()
	s := StartServer(t)
	direct := Connect(t, s.Addr)
	l := on.Open(t, s.Addr, Term(Long)).FencedMutex("it")
	a := Someone()
	h := Hold(t, l, a)
	for range 10 {
		require.NoError(t, direct.ScriptFlush(Background).Err())
		time.Sleep(Long / 25)
	}
	Renewed(t, h)
	require.NoError(t, direct.ScriptFlush(Background).Err())
	require.NoError(t, l.UnlockContext(a))
	require.NoError(t, direct.ScriptFlush(Background).Err())
	token, counted := h.Token(), Commands(t, direct, "getset")
	h = Hold(t, l, a)
	require.Greater(t, h.Token(), token)
	require.Equal(t, counted+1, Commands(t, direct, "getset"), "taken once")
	direct.FlushAll(Background)
	select {
	case <-h.Lost():
	case <-time.After(Hang):
		t.Fatal("the renewal did not tell")
	}
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
}

func NothingElseIsOverwritten(t *testing.T, on Driver) {
	t.Parallel()
	s := StartServer(t)
	direct := Connect(t, s.Addr)
	c := on.Open(t, s.Addr, redislock.WithLeaseOptions(lease.WithPoll(100*time.Millisecond)))
	direct.Set(Background, "string", "data", 0)
	direct.RPush(Background, "list", "data")
	direct.HSet(Background, "hash", "field", "data")
	direct.HSet(Background, "rw", "mode", "read", "somebody", 1)
	direct.Set(Background, "{counted}", "x", 0)
	direct.Set(Background, "redisson_lock_token:{counted}", "x", 0)
	for _, l := range []*lease.Mutex{
		c.Mutex("string"), c.Mutex("list"), c.Mutex("hash"), c.Mutex("rw"),
		c.FencedMutex("string"), c.FencedMutex("counted"),
		c.SimpleMutex("list"), c.SimpleMutex("hash"),
	} {
		began := time.Now()
		ok, err := l.TryLockContext(Someone())
		require.False(t, ok)
		require.ErrorIs(t, err, locks.ErrForeign, l.String())
		require.ErrorIs(t, l.LockContext(Someone()), locks.ErrForeign)
		require.Less(t, time.Since(began), Hang, "at once")
	}
	require.Zero(t, direct.Exists(Background, "counted").Val(), "not taken without a token")

	// Any string is a simple lock. Without a time to live it is held for as long as it exists.
	for _, l := range []*lease.Mutex{c.SimpleMutex("string")} {
		ok, err := l.TryLockContext(Someone())
		require.NoError(t, err)
		require.False(t, ok)
		got := make(chan error, 1)
		a := Someone()
		go func() { got <- l.LockContext(a) }()
		time.Sleep(50 * time.Millisecond)
		require.EqualValues(t, 1, direct.Exists(Background, l.Name()).Val())
		direct.Del(Background, l.Name()) // without a word
		select {
		case err := <-got:
			require.NoError(t, err)
		case <-time.After(Hang):
			t.Fatal("it waits for ever")
		}
		require.NoError(t, l.UnlockContext(a))
	}
}

func WaitersCancelledAtRandomLeaveNothingBehind(t *testing.T, on Driver) {
	t.Parallel()
	s := StartServer(t)
	direct := Connect(t, s.Addr)
	for name, kind := range AllKinds {
		t.Run(name, func(t *testing.T) {
			holder := AnyKind[Against(name)](on.Open(t, s.Addr), name).(*lease.Mutex)
			a := Someone()
			Hold(t, holder, a)
			// The test needs many clients, since only one goroutine of a client at a time waits for
			// the server.
			var wg sync.WaitGroup
			for range 40 {
				l := kind(on.Open(t, s.Addr), name) // all ask at once
				for range 25 {
					wg.Go(func() {
						ctx, cancel := context.WithTimeout(Someone(), time.Duration(rand.Int64N(int64(time.Second))))
						defer cancel()
						assert.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
					})
				}
			}
			wg.Wait()
			require.Eventually(t, func() bool {
				for _, n := range Subscriptions(direct) {
					if strings.Contains(n, name) {
						return false
					}
				}
				return true
			}, Hang, 10*time.Millisecond, "subscriptions are left")
			require.NoError(t, holder.UnlockContext(a))
			require.NoError(t, holder.LockContext(a))
			require.NoError(t, holder.UnlockContext(a))
			OnlyTokens(t, direct, name)
		})
	}
}
