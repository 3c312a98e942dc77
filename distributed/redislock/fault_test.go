package redislock_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

// These faults have a test on a real server. The numbers come from the catalogue of faults for all
// adapters.
//
//	 1  the server is paused        TestAHoldLostDuringAPauseStaysLost
//	 2  the holder is paused        TestAPausedHolderSeesItsLossFirst
//	 3  the network is cut          TestAPartitionsLossPrecedesTheNextHolder
//	 4  in one direction            the same
//	 5  for less than the lease     TestAPartitionThatEndsInTimeLosesNothing
//	 6  no reply to an acquisition  TestALostAcquisitionReplyLeavesOneHold
//	 7  and the caller has gone     TestACancelledAcquisitionWithoutReply...
//	 8  no reply to a release       TestALostReleaseReplyIsNoError
//	 9  slow replies to renewals    TestSlowRepliesKeepTheHold
//	10  waiters give up             TestWaitersCancelledAtRandomLeaveNothingBehind
//	11  subscriptions are cut       TestWaitersGoOnAfterTheirSubscriptionsWereCut,
//	                                TestACutSubscriptionMissesNoRelease
//	12  messages do not come        TestWithoutMessagesWaitersAskInTurn
//	13  messages without a reason   TestMessagesWithoutAReasonGrantNothing
//	14  the holder dies             TestALeaseFreesADeadHoldersLock
//	15  the head of the queue dies  TestAKilledFairWaiterIsSkippedInTime,
//	                                TestAJavaWaiterLearnsOfADeadPredecessor
//	16  the queue is damaged        TestTheFairQueueSurvivesLostParts
//	17  the lock is taken away      TestAHolderWithoutItsLock...,
//	                                TestForceUnlock...
//	21  the server's clock is set   TestAServerClockSetBack...,
//	                                TestARenewalNoticesAServerClock...
//	22  clients' clocks are wrong   TestTheQueueIsIndependentOfItsWaitersClocks
//	23  flushes                     TestAFlushLosesHoldsForgottenScriptsDoNot
//	24  other data under the name   TestNothingElseIsOverwritten, TestWrongNames...,
//	                                TestAFairLockRefusesWhatIsSomethingElse,
//	                                TestAnImpossibleState...,
//	                                TestAHoldWithForeignFields...
//	    waiters are dead, ...       waiting_test.go
//	40  no time to run              TestAStarvedHolderHoldsOrKnowsItsLoss
//	41  more than one hold          TestHoldsOfOneOwnerAreCounted
//	42  the client is closed        TestCloseEndsHoldsAndWaiters,
//	                                TestCloseDoesNotWaitForAGoneServer
//
// All at once are in TestReadWriteHistoriesInTroubleFitOneLock and
// TestTicketsAreSoldOnceByProcessesInTrouble.

func TestAHoldLostDuringAPauseStaysLost(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l := open(t, connectFor(t, s.Addr, hasty), term(short)).Mutex("it")
	rival := open(t, connectFor(t, s.Addr, hasty)).Mutex("it")
	a, b := someone(), someone()
	h := patiently(t, l, a)
	s.Pause()
	<-h.Lost()
	deadline, _ := h.Deadline()
	require.False(t, time.Now().Before(deadline))
	require.ErrorIs(t, h.Err(), locks.ErrLost)
	time.Sleep(2 * short)
	s.Resume()
	require.Eventually(t, func() bool { ok, _ := rival.TryLockContext(b); return ok }, hang,
		10*time.Millisecond)
	require.ErrorIs(t, h.Err(), locks.ErrLost, "no renewal brings it back")
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
	require.NoError(t, rival.UnlockContext(b))
}

func TestAPartitionThatEndsInTimeLosesNothing(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := leasetest.NewProxy(t, s.Addr)
	direct := connect(t, s.Addr)
	l := open(t, connectFor(t, p.Addr(), 2*hasty), term(2*long)).Mutex("it")
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
		}, hang, 10*time.Millisecond, "it is renewed")
	}
	require.NoError(t, h.Err())
	require.Greater(t, direct.PTTL(background, "it").Val(), long)
	require.NoError(t, l.UnlockContext(a))
}

func TestSlowRepliesKeepTheHold(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := leasetest.NewProxy(t, s.Addr)
	direct := connect(t, s.Addr)
	client := redis.NewClient(&redis.Options{Addr: p.Addr(), DisableIdentity: true, ReadTimeout: time.Minute})
	t.Cleanup(func() { client.Close() })
	const term = 20 * time.Second
	l := open(t, client, redislock.WithTTL(term)).Mutex("it")
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

func TestAHolderWithoutItsLockSparesItsSuccessor(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			l, rival := kind(open(t, connect(t, s.Addr), term(short)), name), kind(open(t, connect(t, s.Addr)), name)
			a, b := someone(), someone()
			h := patiently(t, l, a)
			direct.Del(background, name)
			hold(t, rival, b)
			select {
			case <-h.Lost():
			case <-time.After(hang):
				t.Fatal("the renewal did not tell")
			}
			require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
			require.EqualValues(t, 1, direct.Exists(background, name).Val())
			require.NoError(t, rival.UnlockContext(b))
			require.Zero(t, direct.Exists(background, name).Val())
		})
	}
}

func TestHoldsOfOneOwnerAreCounted(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	l := open(t, connect(t, s.Addr)).Mutex("it")
	rival := open(t, connect(t, s.Addr)).Mutex("it")
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
	direct := connect(t, s.Addr)
	c := open(t, connect(t, s.Addr))
	holder := open(t, connect(t, s.Addr)).Mutex("other")
	a := someone()
	hold(t, holder, a)
	h := hold(t, c.Mutex("it"), someone())
	hold(t, c.FencedMutex("fenced"), someone())
	hold(t, c.SimpleMutex("simple"), someone())
	var wg sync.WaitGroup
	for _, name := range []string{"it", "other"} {
		for range 3 {
			wg.Go(func() { assert.ErrorIs(t, c.Mutex(name).LockContext(someone()), locks.ErrClosed) })
		}
	}
	require.Eventually(t,
		func() bool { return c.Mutex("it").QueueLength() == 3 && c.Mutex("other").QueueLength() == 2 },
		hang, time.Millisecond)
	require.NoError(t, c.Close(background))
	wg.Wait()
	require.ErrorIs(t, h.Err(), locks.ErrLost)
	require.ErrorIs(t, c.Mutex("it").LockContext(someone()), locks.ErrClosed)
	require.ErrorIs(t, c.SimpleMutex("it").LockContext(someone()), locks.ErrClosed)
	require.Zero(t, direct.Exists(background, "it", "fenced", "simple").Val())
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, c.Close(background), "again")
}

func TestCloseDoesNotWaitForAGoneServer(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := leasetest.NewProxy(t, s.Addr)
	c, err := redislock.New(connect(t, p.Addr()))
	require.NoError(t, err)
	hold(t, c.Mutex("it"), someone())
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

func TestAnImpossibleStateIsForeignAndStays(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	c := open(t, connect(t, s.Addr), redislock.WithLeaseOptions(lease.WithPoll(20*time.Millisecond)))
	for kind, lock := range suite.AllKinds {
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
					l, a := lock(c, name).(*lease.Mutex), someone()
					if kind == "read" && mode == "read" { // one more reader
						require.True(t, try(t, l, a))
						require.NoError(t, l.UnlockContext(a))
						suite.OnlyTokens(t, direct, name)
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
					suite.OnlyTokens(t, direct, name)
				})
			}
		}
	}
}

func TestAHoldWithForeignFieldsIsReleased(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	c := open(t, connect(t, s.Addr), term(lease.DefaultLease))
	for kind, lock := range suite.AllKinds {
		if kind == "simple" {
			continue
		}
		for odd, fields := range oddities {
			t.Run(kind+" "+odd, func(t *testing.T) {
				name := kind + odd
				l, a := lock(c, name).(*lease.Mutex), someone()
				h := hold(t, l, a)
				require.NoError(t, direct.HSet(background, name, fields).Err())
				require.NoError(t, h.Extend(background, time.Minute))
				require.False(t, try(t, anyKind[suite.Against(kind)](c, name).(*lease.Mutex), someone()))
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
				suite.OnlyTokens(t, direct, name)
			})
		}
	}
}
