package redislock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/testbed"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
)

// What goes wrong, and the test that makes it so, on a real server. T numbers are those of the catalogue of faults that all
// adapters are held against.
//
//	 1  the server is paused            TestAHoldIsLostWhileTheServerIsPausedAndStaysLost
//	 2  the holder is paused            TestAHolderThatWasPausedSeesItsLossFirst
//	 3  the network is cut              TestALossIsToldBeforeARivalGetsTheLockInEveryPhaseOfAPartition
//	 4  in one direction                the same
//	 5  for less than the lease         TestAPartitionThatEndsInTimeLosesNothing
//	 6  no reply to an acquisition      TestALostReplyOfAnAcquisitionLeavesOneHold
//	 7  and the caller has gone         TestACancelledAcquisitionWhoseReplyIsLostReturnsAtOnceAndIsUndone
//	 8  no reply to a release           TestALostReplyOfAReleaseIsNoError
//	 9  slow replies to renewals        TestSlowRepliesKeepTheHold
//	10  waiters give up                 TestWaitersCancelledAtRandomLeaveNothingBehind
//	11  subscriptions are cut           TestWaitersGoOnAfterTheirSubscriptionsWereCut, TestAReleaseDuringACutOfTheSubscriptionIsNotMissed
//	12  messages do not come            TestWithoutMessagesWaitersAskInTurn
//	13  messages without a reason       TestMessagesWithoutAReasonGrantNothing
//	14  the holder dies                 TestTheLockOfAProcessThatDiedIsFreeWhenItsLeaseIsOver
//	15  the head of the queue dies      TestAFairWaiterWhoseProcessDiedIsPassedInTime, TestAJavaWaiterIsToldWhenTheOneBeforeItIsDead
//	16  parts of the queue are lost     TestTheFairQueueHealsWhenPartsOfItAreLost
//	17  the lock is taken away          TestAHolderWhoseLockWasTakenAwayFindsOutAndLeavesItsSuccessorAlone, TestForceUnlock...
//	21  the server's clock is set       TestAServerWhoseClockIsSet...
//	22  clocks of clients are wrong     TestTheQueueDoesNotDependOnTheClocksOfItsWaiters
//	23  flushes                         TestAFlushIsALossAndForgottenScriptsAreNone
//	24  other data under the name       TestNothingElseIsOverwritten, TestAFairLockRefusesWhatIsSomethingElse, TestWrongNames...,
//	                                    TestAStateThatNoClientLeaves..., TestAHoldToWhichSomebodyAddsWhatNoClientLeaves...
//	40  no time to run                  TestAHolderWithoutTimeToRunKeepsItsHoldOrKnowsThatItIsLost
//	41  more than one hold              TestHoldsOfOneOwnerAreCounted
//	42  the client is closed            TestCloseEndsHoldsAndWaiters, TestCloseDoesNotWaitForAServerThatIsGone
//
// All at once are in TestHistoriesOfClientsInTroubleAreThoseOfOneLock and TestTicketsAreSoldOnceByProcessesInTrouble.

const (
	short = 1500 * time.Millisecond // a lease
	long  = 3 * short               // one that is not lost because the machine is busy
	hasty = short / 6               // for a reply
	soon  = 20 * time.Second        // on the busiest of machines, and long before anybody asks who does so rarely
)

// rarely has those who wait rely on messages, and on the time to live that they were told.
var rarely = redislock.WithLease(lease.WithPoll(time.Minute))

var background = context.Background()

func as(o locks.Owner) context.Context { return locks.WithOwner(background, o) }

func someone() context.Context { return as(locks.NewOwner()) }

// renewed waits until h, which is renewed, has been so once more.
func renewed(tb testing.TB, h locks.Hold) {
	tb.Helper()
	before, _ := h.Deadline()
	require.Eventually(tb, func() bool {
		after, _ := h.Deadline()
		return after.After(before)
	}, soon, 5*time.Millisecond)
	require.NoError(tb, h.Err())
}

func hold(tb testing.TB, l *redislock.Lock, ctx context.Context) locks.Hold {
	tb.Helper()
	require.NoError(tb, l.LockContext(ctx))
	h, err := l.Hold(ctx)
	require.NoError(tb, err)
	return h
}

// patiently takes l, and tries again if the server could not be reached.
func patiently(tb testing.TB, l *redislock.Lock, ctx context.Context) locks.Hold {
	tb.Helper()
	require.Eventually(tb, func() bool { return l.LockContext(ctx) == nil }, 20*time.Second, 10*time.Millisecond)
	h, err := l.Hold(ctx)
	require.NoError(tb, err)
	return h
}

// overlap has a holder meet with trouble, and returns by how much later its hold was valid than a rival had the lock:
// never more than nothing, whatever the machine is busy with. It is valid at a time if that is before it was asked.
func overlap(t *testing.T, s *server, p *testbed.Proxy, phase time.Duration, trouble func()) time.Duration {
	t.Helper()
	// The margin is large so that the channel is closed in time as well.
	opts := redislock.WithLease(lease.WithLease(short), lease.WithMargin(short/3))
	l := open(t, connectFor(t, p.Addr(), hasty), opts).Lock(t.Name())
	rival := open(t, connect(t, s.addr)).Lock(t.Name())
	a, b := someone(), someone()
	h := patiently(t, l, a)
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
		require.Less(t, time.Since(began), time.Minute, "it is not lost")
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

func TestALossIsToldBeforeARivalGetsTheLockInEveryPhaseOfAPartition(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	troubles := map[string]func(p *testbed.Proxy){
		"both directions": (*testbed.Proxy).Cut,
		"replies only":    (*testbed.Proxy).CutReplies,
	}
	for name, trouble := range troubles {
		for phase := range 5 {
			t.Run(fmt.Sprint(name, " in phase ", phase), func(t *testing.T) {
				t.Parallel()
				p := testbed.NewProxy(t, s.addr)
				by := overlap(t, s, p, time.Duration(phase)*short/15, func() { trouble(p) })
				require.LessOrEqual(t, by, time.Duration(0))
			})
		}
	}
}

func TestAHoldIsLostWhileTheServerIsPausedAndStaysLost(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l := open(t, connectFor(t, s.addr, hasty), term(short)).Lock("it")
	rival := open(t, connectFor(t, s.addr, hasty)).Lock("it")
	a, b := someone(), someone()
	h := patiently(t, l, a)
	s.Pause()
	<-h.Lost()
	deadline, _ := h.Deadline()
	require.False(t, time.Now().Before(deadline))
	require.ErrorIs(t, h.Err(), locks.ErrLost)
	time.Sleep(2 * short)
	s.Resume()
	require.Eventually(t, func() bool { ok, _ := rival.TryLockContext(b); return ok }, 20*time.Second, 10*time.Millisecond)
	require.ErrorIs(t, h.Err(), locks.ErrLost, "no renewal brings it back")
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
	require.NoError(t, rival.UnlockContext(b))
}

func TestAPartitionThatEndsInTimeLosesNothing(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := testbed.NewProxy(t, s.addr)
	direct := connect(t, s.addr)
	l := open(t, connectFor(t, p.Addr(), 2*hasty), term(2*long)).Lock("it")
	a := someone()
	h := patiently(t, l, a)
	for range 2 {
		p.Cut()
		time.Sleep(short)
		p.Heal()
		before, _ := h.Deadline()
		require.Eventually(t, func() bool {
			after, _ := h.Deadline()
			return after.After(before.Add(short / 2))
		}, 20*time.Second, 10*time.Millisecond, "it is renewed")
	}
	require.NoError(t, h.Err())
	require.Greater(t, direct.PTTL(background, "it").Val(), long)
	require.NoError(t, l.UnlockContext(a))
}

func TestALostReplyOfAnAcquisitionLeavesOneHold(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	for name, kind := range allKinds {
		t.Run(name, func(t *testing.T) {
			p := testbed.NewProxy(t, s.addr)
			direct := connect(t, s.addr)
			// This client repeats requests by default, as many do.
			client := redis.NewClient(&redis.Options{Addr: p.Addr(), ReadTimeout: time.Second, DisableIdentity: true})
			t.Cleanup(func() { client.Close() })
			l := kind(open(t, client, rarely), name).(*redislock.Lock)
			a := someone()
			require.NoError(t, l.LockContext(a)) // so that the scripts are known to the server
			require.NoError(t, l.UnlockContext(a))
			requests := commands(t, direct, "evalsha") + commands(t, direct, "eval")
			p.DropReply("eval", 1)
			h := hold(t, l, a)
			require.Equal(t, 1, p.Drops())
			require.NoError(t, h.Err())
			require.Equal(t, requests+2, commands(t, direct, "evalsha")+commands(t, direct, "eval"), "one to take it, one to ask who has it")
			heldOnce(t, direct, name)
			require.NoError(t, l.UnlockContext(a))
			require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
			onlyTokens(t, direct, name)

			// One that waits, and gets no reply when it has the lock.
			rival, b := anyKind[against(name)](open(t, connect(t, s.addr)), name).(*redislock.Lock), someone()
			hold(t, rival, b)
			got := make(chan error, 1)
			go func() { got <- l.LockContext(a) }()
			quiet(t, direct)
			p.DropReply("eval", 1)
			require.NoError(t, rival.UnlockContext(b))
			require.NoError(t, <-got)
			require.Equal(t, 2, p.Drops())
			heldOnce(t, direct, name)
			require.False(t, try(t, rival, b))
			require.NoError(t, l.UnlockContext(a))
			onlyTokens(t, direct, name)
		})
	}
}

// heldOnce checks that the lock called name, of whatever kind, has one hold, and nobody waits.
func heldOnce(t *testing.T, direct *redis.Client, name string) {
	t.Helper()
	require.Eventually(t, func() bool { return direct.Exists(background, "redisson_lock_queue:{"+name+"}").Val() == 0 },
		soon, time.Millisecond)
	holds := direct.Keys(background, "{"+name+"}:*:rwlock_timeout:*").Val()
	if name == "read" {
		require.Len(t, holds, 1)
	} else {
		require.Empty(t, holds)
	}
	if name == "simple" {
		require.EqualValues(t, 1, direct.Exists(background, name).Val())
		return
	}
	state := direct.HGetAll(background, name).Val()
	delete(state, "mode")
	require.Len(t, state, 1)
	for _, count := range state {
		require.Equal(t, "1", count)
	}
}

// onlyTokens waits until nothing is left of the lock called name but its counter.
func onlyTokens(t *testing.T, direct *redis.Client, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		for _, key := range direct.Keys(background, "*"+name+"*").Val() {
			if !strings.HasPrefix(key, "redisson_lock_token:") {
				return false
			}
		}
		return true
	}, soon, time.Millisecond)
}

// quiet waits until one who waits has subscribed, and asked for the last time.
func quiet(t *testing.T, direct *redis.Client) {
	t.Helper()
	require.Eventually(t, func() bool { return len(subscriptions(direct)) > 0 }, soon, time.Millisecond)
	asked := -1
	require.Eventually(t, func() bool {
		before := asked
		asked = commands(t, direct, "evalsha") + commands(t, direct, "eval")
		return asked == before
	}, soon, 100*time.Millisecond)
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
	for name, kind := range anyKind {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := testbed.NewProxy(t, s.addr)
			direct := connect(t, s.addr)
			const patience = 20 * time.Second // of the client with its connection
			l := kind(open(t, connectFor(t, p.Addr(), patience)), name).(*redislock.Lock)
			a := someone()
			hold(t, l, a)
			require.NoError(t, l.UnlockContext(a))
			p.DropReply("eval", 1)
			gone := errors.New("gone")
			ctx, cancel := context.WithCancelCause(a)
			got := make(chan error, 1)
			go func() { got <- l.LockContext(ctx) }()
			require.Eventually(t, func() bool { return direct.Exists(background, name).Val() == 1 }, 10*time.Second, time.Millisecond)
			cancelled := time.Now()
			cancel(gone)
			err := <-got
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, gone)
			require.Eventually(t, func() bool { return direct.Exists(background, name).Val() == 0 }, 10*time.Second, time.Millisecond)
			require.Less(t, time.Since(cancelled), patience/2, "without the reply")
			p.Reset()
			require.True(t, try(t, l, someone()))
		})
	}
}

func TestALostReplyOfAReleaseIsNoError(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := testbed.NewProxy(t, s.addr)
	l := open(t, connect(t, p.Addr())).Lock("it")
	a := someone()
	hold(t, l, a)
	p.DropReply("eval", 1)
	require.NoError(t, l.UnlockContext(a))
	require.Equal(t, 1, p.Drops())
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
}

func TestSlowRepliesKeepTheHold(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := testbed.NewProxy(t, s.addr)
	direct := connect(t, s.addr)
	client := redis.NewClient(&redis.Options{Addr: p.Addr(), DisableIdentity: true})
	t.Cleanup(func() { client.Close() })
	const term = 10 * time.Second
	l := open(t, client, redislock.WithLease(lease.WithLease(term))).Lock("it")
	p.Delay(50 * time.Millisecond)
	var wg sync.WaitGroup
	for range 6 { // a new connection takes two replies
		wg.Go(func() { client.Ping(background) })
	}
	wg.Wait()
	p.Heal()
	a := someone()
	h := hold(t, l, a)
	before := commands(t, direct, "evalsha") + commands(t, direct, "eval")
	p.Delay(term * 45 / 100)
	time.Sleep(term * 6 / 5)
	require.NoError(t, h.Err())
	renewals := commands(t, direct, "evalsha") + commands(t, direct, "eval") - before
	require.GreaterOrEqual(t, renewals, 2)
	require.LessOrEqual(t, renewals, 5, "they do not pile up")
	p.Heal()
	require.NoError(t, l.UnlockContext(a))
}

func TestWaitersCancelledAtRandomLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.addr)
	for name, kind := range allKinds {
		t.Run(name, func(t *testing.T) {
			holder := anyKind[against(name)](open(t, connect(t, s.addr)), name).(*redislock.Lock)
			a := someone()
			hold(t, holder, a)
			// Many clients, since of one client one goroutine at a time waits for the server.
			var wg sync.WaitGroup
			for range 40 {
				l := kind(open(t, connect(t, s.addr)), name)
				for range 25 {
					wg.Go(func() {
						ctx, cancel := context.WithTimeout(someone(), time.Duration(rand.Int64N(int64(time.Second))))
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
			}, 20*time.Second, 10*time.Millisecond, "subscriptions are left")
			require.NoError(t, holder.UnlockContext(a))
			require.NoError(t, holder.LockContext(a))
			require.NoError(t, holder.UnlockContext(a))
			onlyTokens(t, direct, name)
		})
	}
}

func subscriptions(c *redis.Client) []string { return c.PubSubChannels(background, "*").Val() }

func TestWaitersGoOnAfterTheirSubscriptionsWereCut(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.addr)
	holder := open(t, connect(t, s.addr), rarely).Lock("it")
	a := someone()
	hold(t, holder, a)
	const n = 10
	var wg sync.WaitGroup
	for range n {
		l := open(t, connect(t, s.addr), rarely).Lock("it")
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
	require.Eventually(t, heard, 20*time.Second, 5*time.Millisecond)
	require.NoError(t, direct.ClientKillByFilter(background, "TYPE", "pubsub").Err())
	require.Eventually(t, heard, 20*time.Second, 5*time.Millisecond, "subscribed again")
	began := time.Now()
	require.NoError(t, holder.UnlockContext(a))
	wg.Wait()
	require.Less(t, time.Since(began), soon)
}

func TestAReleaseDuringACutOfTheSubscriptionIsNotMissed(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.addr)
	holder, l := open(t, connect(t, s.addr), rarely).Lock("it"), open(t, connect(t, s.addr), rarely).Lock("it")
	a, b := someone(), someone()
	hold(t, holder, a)
	got := make(chan error, 1)
	go func() { got <- l.LockContext(b) }()
	require.Eventually(t, func() bool { return len(subscriptions(direct)) == 1 }, 20*time.Second, 5*time.Millisecond)
	// Nobody hears of this.
	pipe := direct.TxPipeline()
	pipe.ClientKillByFilter(background, "TYPE", "pubsub")
	pipe.Del(background, "it")
	_, err := pipe.Exec(background)
	require.NoError(t, err)
	select {
	case err := <-got:
		require.NoError(t, err)
	case <-time.After(soon):
		t.Fatal("it relied on its subscription")
	}
	require.NoError(t, l.UnlockContext(b))
	require.ErrorIs(t, holder.UnlockContext(a), locks.ErrLost)
}

func TestWithoutMessagesWaitersAskInTurn(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := testbed.NewProxy(t, s.addr)
	p.Swallow(func(reply []byte) bool { return bytes.Contains(reply, []byte("\r\nmessage\r\n")) })
	direct := connect(t, s.addr)
	poll := redislock.WithLease(lease.WithPoll(300 * time.Millisecond))
	holder, l := open(t, connect(t, s.addr)).Lock("it"), open(t, connect(t, p.Addr()), poll).Lock("it")
	a, b := someone(), someone()
	hold(t, holder, a)
	got := make(chan error, 1)
	go func() { got <- l.LockContext(b) }()
	require.Eventually(t, func() bool { return len(subscriptions(direct)) == 1 }, 20*time.Second, 5*time.Millisecond)
	began := time.Now()
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, <-got)
	require.Less(t, time.Since(began), soon)
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
	quiet(t, direct) // it asks once more when it has subscribed
	asked := commands(t, direct, "evalsha") + commands(t, direct, "eval")
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
			case <-time.After(20 * time.Second):
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
	l := open(t, connect(t, s.addr), term(long)).FencedLocker("it")
	a := someone()
	h := hold(t, l, a)
	for range 10 {
		require.NoError(t, direct.ScriptFlush(background).Err())
		time.Sleep(long / 25)
	}
	renewed(t, h)
	require.NoError(t, direct.ScriptFlush(background).Err())
	require.NoError(t, l.UnlockContext(a))
	require.NoError(t, direct.ScriptFlush(background).Err())
	token := h.Token()
	h = hold(t, l, a)
	require.Equal(t, token+1, h.Token(), "taken once")
	direct.FlushAll(background)
	select {
	case <-h.Lost():
	case <-time.After(20 * time.Second):
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
		require.Less(t, time.Since(began), 5*time.Second, "at once")
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
		case <-time.After(20 * time.Second):
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
	require.Eventually(t, func() bool { return c.Lock("it").QueueLength() == 3 && c.Lock("other").QueueLength() == 2 },
		20*time.Second, time.Millisecond)
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
	p := testbed.NewProxy(t, s.addr)
	c, err := redislock.New(connect(t, p.Addr()))
	require.NoError(t, err)
	hold(t, c.Lock("it"), someone())
	p.Cut()
	ctx, cancel := context.WithTimeout(background, 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	require.Error(t, c.Close(ctx))
	require.Less(t, time.Since(began), lease.DefaultReleaseTimeout)
}

// oddities are fields of a hash that no client leaves in a lock.
var oddities = map[string][]string{
	"a negative count":    {"somebody:1", "-3"},
	"a count of nothing":  {"somebody:1", "0"},
	"no number":           {"somebody:1", "many"},
	"an empty count":      {"somebody:1", ""},
	"a count without end": {"somebody:1", "1e300"},
	"an infinite count":   {"somebody:1", "inf"},
	"a field of no owner": {"somebody:1", "1", "color", "red"},
	"two owners":          {"somebody:1", "1", "somebody:2", "1"},
	"a nameless owner":    {"", "1"},
}

func TestAStateThatNoClientLeavesIsSomebodyElsesAndStaysAsItIs(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.addr)
	c := open(t, connect(t, s.addr), redislock.WithLease(lease.WithPoll(20*time.Millisecond)))
	for kind, lock := range allKinds {
		modes := []string{""}
		switch kind {
		case "simple": // which is no hash
			continue
		case "read", "write":
			modes = []string{"", "read", "write", "strange"}
		}
		for _, mode := range modes {
			for odd, fields := range oddities {
				t.Run(strings.TrimSpace(kind+" "+odd+" "+mode), func(t *testing.T) {
					name := kind + odd + mode
					if mode != "" {
						fields = append([]string{"mode", mode}, fields...)
					}
					require.NoError(t, direct.HSet(background, name, fields).Err())
					before := direct.HGetAll(background, name).Val()
					l, a := lock(c, name).(*redislock.Lock), someone()
					if kind == "read" && mode == "read" { // one reader more; those whose holds have expired do not matter
						require.True(t, try(t, l, a))
						require.NoError(t, l.UnlockContext(a))
						onlyTokens(t, direct, name)
						return
					}
					ok, err := l.TryLockContext(a)
					require.False(t, ok)
					if err != nil || kind == "read" && mode == "" || kind == "write" && mode == "" {
						require.ErrorIs(t, err, locks.ErrForeign)
					}
					require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
					ctx, cancel := context.WithTimeout(a, 100*time.Millisecond) // in which it asks more than once
					defer cancel()
					require.Error(t, l.LockContext(ctx))
					require.Equal(t, before, direct.HGetAll(background, name).Val())
					require.EqualValues(t, -1, direct.PTTL(background, name).Val())
					if forced, err := l.ForceUnlock(background); !forced {
						if err != nil {
							require.ErrorIs(t, err, locks.ErrForeign)
						}
						require.Equal(t, before, direct.HGetAll(background, name).Val())
						require.NoError(t, direct.Del(background, name).Err())
					}
					require.NoError(t, l.LockContext(a))
					require.NoError(t, l.UnlockContext(a))
					onlyTokens(t, direct, name)
				})
			}
		}
	}
}

func TestAHoldToWhichSomebodyAddsWhatNoClientLeavesIsHeldAndGivenBack(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.addr)
	c := open(t, connect(t, s.addr))
	for kind, lock := range allKinds {
		if kind == "simple" {
			continue
		}
		for odd, fields := range oddities {
			t.Run(kind+" "+odd, func(t *testing.T) {
				name := kind + odd
				l, a := lock(c, name).(*redislock.Lock), someone()
				h := hold(t, l, a)
				require.NoError(t, direct.HSet(background, name, fields).Err())
				require.NoError(t, h.Extend(background, time.Minute))
				require.False(t, try(t, anyKind[against(kind)](c, name).(*redislock.Lock), someone()))
				require.NoError(t, l.UnlockContext(a))
				rest := make(map[string]string) // of a read-write lock they are readers whose holds have expired
				if kind != "read" && kind != "write" {
					for i := 0; i < len(fields); i += 2 {
						rest[fields[i]] = fields[i+1]
					}
					require.Greater(t, direct.PTTL(background, name).Val(), time.Duration(0), "it ends")
				}
				require.Equal(t, rest, direct.HGetAll(background, name).Val())
				require.NoError(t, direct.Del(background, name).Err())
				require.NoError(t, l.LockContext(a))
				require.NoError(t, l.UnlockContext(a))
				onlyTokens(t, direct, name)
			})
		}
	}
}
