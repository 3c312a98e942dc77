package redislock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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

const (
	waitingList    = "locks_waiting:{it}"
	waitingChannel = "redisson_lock__channel:{it}"
)

// inList waits until n waiters are in the list, and returns their names.
func inList(tb testing.TB, direct *redis.Client, n int) (all []string) {
	tb.Helper()
	require.Eventually(tb, func() bool {
		all = direct.LRange(background, waitingList, 0, -1).Val()
		return len(all) == n
	}, hang, time.Millisecond)
	return all
}

// begin has the owner of ctx take l, and returns the outcome.
func begin(l *lease.Mutex, ctx context.Context) <-chan error {
	got := make(chan error, 1)
	go func() { got <- l.LockContext(ctx) }()
	return got
}

// within returns the result of got.
func within(tb testing.TB, got <-chan error) error {
	tb.Helper()
	select {
	case err := <-got:
		return err
	case <-time.After(hang):
		tb.Fatal("it still waits")
		return nil
	}
}

// channelOf returns the channel of the client of a waiter in the list.
func channelOf(waiter string) string {
	return waitingList + ":" + waiter[:strings.LastIndexByte(waiter, ':')]
}

// held returns a lock called it that is held by another client, and how to release that.
func held(t *testing.T, addr string) (release func()) {
	holder, a := open(t, connect(t, addr)).Mutex("it"), someone()
	hold(t, holder, a)
	return func() { require.NoError(t, holder.UnlockContext(a)) }
}

func TestAReleaseTellsOnlyTheFirstToAsk(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		holder, c := open(t, connect(t, addr)), open(t, connect(t, addr), rarely)
		for _, lock := range []func(c *redislock.Client) *lease.Mutex{
			func(c *redislock.Client) *lease.Mutex { return c.Mutex("it") },
			func(c *redislock.Client) *lease.Mutex { return c.FencedMutex("it") },
		} {
			heard := suite.Listen(t, direct, "it")
			a, b := someone(), someone()
			hold(t, lock(holder), a)
			got := begin(lock(c), b)
			waiter := inList(t, direct, 1)[0]
			require.Regexp(t, `^[0-9a-f-]{36}:\d+$`, waiter)
			ttl := direct.PTTL(background, waitingList).Val()
			require.Positive(t, ttl)
			require.LessOrEqual(t, ttl, time.Minute)
			require.NoError(t, lock(holder).UnlockContext(a))
			require.NoError(t, within(t, got))
			require.Zero(t, direct.Exists(background, waitingList).Val())
			require.Eventually(t, func() bool { return len(heard()) == 2 }, hang, time.Millisecond)
			require.Equal(t, []string{channelOf(waiter) + " " + waiter, waitingChannel + " 00"}, heard())
			require.NoError(t, lock(c).UnlockContext(b))
			require.Eventually(t, func() bool { return len(heard()) == 3 }, hang, time.Millisecond)
			require.Equal(t, waitingChannel+" 0", heard()[2], "no waiter of ours")
		}
	})
}

// crowd puts so many names in front of the list that the time of the waiters behind them is not
// over in this test.
func crowd(direct *redis.Client) { direct.RPush(background, waitingList, gone...) }

var gone = slices.Repeat([]any{"gone:1"}, 300)

// listening returns how many clients subscribe to Redisson's channel.
func listening(direct *redis.Client) int64 {
	return direct.PubSubNumSub(background, waitingChannel).Val()[waitingChannel]
}

func TestAQueuedWaiterHearsItsClientsChannelOnly(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		release := held(t, addr)
		crowd(direct)
		l, b := open(t, connect(t, addr), rarely).Mutex("it"), someone()
		got := begin(l, b)
		waiter := inList(t, direct, len(gone)+1)[len(gone)]
		require.Zero(t, listening(direct))
		require.EqualValues(t, 1, direct.PubSubNumSub(background, channelOf(waiter)).Val()[channelOf(waiter)])
		release()
		require.NoError(t, within(t, got))
		require.Zero(t, listening(direct))
		require.NoError(t, l.UnlockContext(b))
	})
}

func TestARefusedWaiterListensToRedissonAtOnce(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		direct.HSet(background, "it", "6ba7b810-9dad-41d1-80b4-00c04fd430c8:1", 1)
		direct.PExpire(background, "it", long)
		crowd(direct)
		l, b := open(t, connect(t, addr), rarely).Mutex("it"), someone()
		got := begin(l, b)
		require.Eventually(t, func() bool { return listening(direct) == 1 }, hang, time.Millisecond)
		pipe := direct.TxPipeline()
		pipe.Del(background, "it")
		pipe.Publish(background, waitingChannel, "0")
		_, err := pipe.Exec(background)
		require.NoError(t, err)
		require.NoError(t, within(t, got))
		require.NoError(t, l.UnlockContext(b))
	})
}

func TestAnOverdueWaiterListensToRedisson(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		release := held(t, addr)
		l, b := open(t, connect(t, addr), rarely).Mutex("it"), someone()
		got := begin(l, b)
		require.Eventually(t, func() bool { return listening(direct) == 1 }, hang, time.Millisecond)
		require.Len(t, inList(t, direct, 1), 1)
		release()
		require.NoError(t, within(t, got))
		require.NoError(t, l.UnlockContext(b))
	})
}

func TestSeveralProcessesWaitersAcquireInOrder(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		release := held(t, addr)
		crowd(direct)
		const n = 5
		waiters, order := []string{}, []string{}
		var wg sync.WaitGroup
		for i := range n {
			c, b := open(t, connect(t, addr), rarely), someone()
			wg.Go(func() {
				if assert.NoError(t, c.Mutex("it").LockContext(b)) {
					order = append(order, direct.HKeys(background, "it").Val()...)
					assert.NoError(t, c.Mutex("it").UnlockContext(b))
				}
			})
			all := inList(t, direct, len(gone)+i+1)[len(gone):]
			require.Equal(t, waiters, all[:len(waiters):len(waiters)], "an earlier waiter keeps its place")
			waiters = append([]string(nil), all...)
			// A release passes over a waiter without a subscription.
			channel := channelOf(all[i])
			require.Eventually(t, func() bool {
				return direct.PubSubNumSub(background, channel).Val()[channel] == 1
			}, hang, time.Millisecond)
		}
		release()
		wg.Wait()
		require.Equal(t, waiters, order)
		require.Zero(t, direct.Exists(background, waitingList).Val())
	})
}

func TestAReleasePassesWaitersWhoseProcessesAreGone(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	release := held(t, s.Addr)
	got := begin(open(t, connect(t, s.Addr), rarely).Mutex("it"), someone())
	alive := inList(t, direct, 1)[0]
	heard := suite.Listen(t, direct, "redisson") // and not the clients' channels, whose subscribers count
	direct.LPush(background, waitingList, "gone:3", "gone:2", "", "gone")
	release()
	require.NoError(t, within(t, got))
	require.Eventually(t, func() bool { return len(heard()) == 1 }, hang, time.Millisecond)
	require.Equal(t, waitingChannel+" 00", heard()[0], alive)
	require.Zero(t, direct.Exists(background, waitingList).Val())
}

func TestTheNextWaiterReplacesAnUnreachableFirst(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	p := leasetest.NewProxy(t, s.Addr)
	release := held(t, s.Addr)
	ctx, cancel := context.WithCancel(someone())
	first := begin(open(t, connect(t, p.Addr()), rarely).Mutex("it"), ctx)
	inList(t, direct, 1)
	l, b := open(t, connect(t, s.Addr), rarely).Mutex("it"), someone()
	got := begin(l, b)
	inList(t, direct, 2)
	p.Cut()
	release()
	require.NoError(t, within(t, got))
	p.Heal()
	cancel()
	require.ErrorIs(t, within(t, first), context.Canceled)
	require.NoError(t, l.UnlockContext(b))
}

func TestAWaiterToldTooLateIsNextAgain(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		release := held(t, addr)
		ctx, cancel := context.WithCancel(someone())
		var all []<-chan error
		for i := range 3 {
			all = append(all, begin(open(t, connect(t, addr), rarely).Mutex("it"), ctx))
			inList(t, direct, i+1)
		}
		before := inList(t, direct, 3)
		require.EqualValues(t, 1, direct.Publish(background, channelOf(before[1]), before[1]).Val())
		require.Eventually(t, func() bool { return direct.LIndex(background, waitingList, 0).Val() == before[1] },
			hang, time.Millisecond)
		require.Len(t, inList(t, direct, 3), 3, "it has one place")
		cancel()
		for _, got := range all {
			require.ErrorIs(t, within(t, got), context.Canceled)
		}
		inList(t, direct, 0)
		release()
	})
}

func TestAForcedUnlockWakesALeavingWaiter(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		holder, l := open(t, connect(t, addr)).Mutex("it"), open(t, connect(t, addr), rarely).Mutex("it")
		a, b := someone(), someone()
		hold(t, holder, a)
		got := begin(l, b)
		inList(t, direct, 1)
		ok, err := holder.ForceUnlock(background)
		require.NoError(t, err)
		require.True(t, ok)
		require.NoError(t, within(t, got))
		require.Zero(t, direct.Exists(background, waitingList).Val())
		require.NoError(t, l.UnlockContext(b))
		require.ErrorIs(t, holder.UnlockContext(a), locks.ErrLost)
	})
}

func TestACancelledWaiterTellsTheNext(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		held(t, addr)
		ctx, cancel := context.WithCancel(someone())
		first := begin(open(t, connect(t, addr), rarely).Mutex("it"), ctx)
		waiter := inList(t, direct, 1)[0]
		l, b := open(t, connect(t, addr), rarely).Mutex("it"), someone()
		second := begin(l, b)
		inList(t, direct, 2)
		// As if the first waiter had been told, and no other waiter.
		pipe := direct.TxPipeline()
		pipe.Del(background, "it")
		pipe.LRem(background, waitingList, 0, waiter)
		_, err := pipe.Exec(background)
		require.NoError(t, err)
		cancel()
		require.ErrorIs(t, within(t, first), context.Canceled)
		require.NoError(t, within(t, second))
		require.NoError(t, l.UnlockContext(b))
	})
}

func TestAWaiterThatGivesUpLeavesTheList(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		release := held(t, addr)
		l := open(t, connect(t, addr), rarely).Mutex("it")
		for range 20 {
			ctx, cancel := context.WithTimeout(someone(), rand.N(20*time.Millisecond))
			require.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
			cancel()
		}
		inList(t, direct, 0)
		release()
	})
}

func TestAClosedClientLeavesTheList(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		release := held(t, addr)
		c := open(t, connect(t, addr), rarely)
		got := begin(c.Mutex("it"), someone())
		inList(t, direct, 1)
		require.NoError(t, c.Close(background))
		require.Zero(t, direct.Exists(background, waitingList).Val())
		require.ErrorIs(t, within(t, got), locks.ErrClosed)
		release()
	})
}

func TestAWinnersLostReplyEndsItsSubscriptions(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	p := leasetest.NewProxy(t, s.Addr)
	release := held(t, s.Addr)
	l, b := open(t, connectFor(t, p.Addr(), 12*hasty), rarely).Mutex("it"), someone()
	got := begin(l, b)
	inList(t, direct, 1)
	release()
	require.NoError(t, within(t, got))
	require.NoError(t, l.UnlockContext(b))
	p.DropReply("eval", 1)
	require.NoError(t, within(t, begin(l, b)), "it hears of the lock already when it asks")
	require.Equal(t, 1, p.Drops())
	require.NoError(t, l.UnlockContext(b))
	require.Eventually(t, func() bool { return len(subscriptions(direct)) == 0 }, hang, 10*time.Millisecond)
}

// lingering returns a client without waiters that is still subscribed, and the name of its last
// waiter.
func lingering(t *testing.T, direct *redis.Client, addr string) (c *redislock.Client, waiter string) {
	release := held(t, addr)
	c = open(t, connect(t, addr), rarely)
	b := someone()
	got := begin(c.Mutex("it"), b)
	waiter = inList(t, direct, 1)[0]
	release()
	require.NoError(t, within(t, got))
	require.NoError(t, c.Mutex("it").UnlockContext(b))
	return c, waiter
}

func TestAClientWithoutWaitersTellsTheNext(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		require.Eventually(t, func() bool { // unless the machine was so busy that the client does not hear any more
			_, waiter := lingering(t, direct, addr)
			next := direct.Subscribe(background, channelOf("next:1"))
			defer next.Close()
			_, err := next.Receive(background)
			require.NoError(t, err)
			direct.RPush(background, waitingList, "next:1")
			if direct.Publish(background, channelOf(waiter), waiter).Val() == 0 {
				direct.Del(background, waitingList)
				return false
			}
			m, err := next.ReceiveMessage(background)
			require.NoError(t, err)
			return assert.Equal(t, "next:1", m.Payload) && assert.Zero(t, direct.Exists(background, waitingList).Val())
		}, 2*hang, time.Millisecond)
	})
}

func TestAWaiterThatComesBackSoonAsksOnce(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	asked := func() int { return commands(t, direct, "evalsha") + commands(t, direct, "eval") }
	require.Eventually(t, func() bool { // unless the machine was so busy that it was not soon
		c, _ := lingering(t, direct, s.Addr)
		release := held(t, s.Addr)
		subscribed, before := commands(t, direct, "subscribe"), asked()
		b := someone()
		got := begin(c.Mutex("it"), b)
		inList(t, direct, 1)
		once := asked() == before+1 && commands(t, direct, "subscribe") == subscribed
		release()
		require.NoError(t, within(t, got))
		require.NoError(t, c.Mutex("it").UnlockContext(b))
		return once
	}, 2*hang, time.Millisecond)
}

func TestSubscriptionsEndSomeTimeAfterTheLastWaiter(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	c, _ := lingering(t, direct, s.Addr)
	require.Eventually(t, func() bool { return len(subscriptions(direct)) == 0 }, hang, 10*time.Millisecond)
	release, b := held(t, s.Addr), someone()
	got := begin(c.Mutex("it"), b)
	inList(t, direct, 1)
	release()
	require.NoError(t, within(t, got), "it begins anew")
	require.NoError(t, c.Mutex("it").UnlockContext(b))
}

func TestALostSubscriptionIsNotReliedUpon(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	c, _ := lingering(t, direct, s.Addr)
	release, b := held(t, s.Addr), someone()
	require.NoError(t, direct.ClientKillByFilter(background, "TYPE", "pubsub").Err())
	got := begin(c.Mutex("it"), b)
	inList(t, direct, 1)
	require.NoError(t, direct.Del(background, waitingList).Err()) // so that it has to hear of the release
	release()
	require.NoError(t, within(t, got))
	require.NoError(t, c.Mutex("it").UnlockContext(b))
}

func TestASpoiledListCostsNoWaiterItsTurn(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		for name, spoil := range map[string]func(){
			"another type": func() { direct.Set(background, waitingList, "x", 0) },
			"deleted":      func() { direct.Del(background, waitingList) },
			"garbage":      func() { direct.LPush(background, waitingList, "", "x", "1:x", ":", "0x5:y") },
			"deleted and dirty": func() {
				direct.Del(background, waitingList)
				direct.RPush(background, waitingList,
					"garbage")
			},
		} {
			spoil()
			release := held(t, addr)
			var wg sync.WaitGroup
			for range 3 {
				l := open(t, connect(t, addr), rarely).Mutex("it")
				wg.Go(func() {
					b := someone()
					assert.NoError(t, l.LockContext(b), name)
					assert.NoError(t, l.UnlockContext(b), name)
				})
			}
			require.Eventually(t, func() bool { return listening(direct) == 3 }, hang, time.Millisecond)
			gone := open(t, connect(t, addr), rarely).Mutex("it")
			ctx, cancel := context.WithTimeout(someone(), 50*time.Millisecond)
			require.ErrorIs(t, gone.LockContext(ctx), context.DeadlineExceeded)
			cancel()
			ok, err := gone.TryLockContext(someone())
			require.NoError(t, err)
			require.False(t, ok)
			spoil()
			release()
			wg.Wait()
			direct.Del(background, waitingList)
			require.Eventually(t, func() bool { return len(subscriptions(direct)) == 0 }, hang, 10*time.Millisecond)
		}
	})
}

// wait is one acquisition of a process in trouble, which may give up. It returns whether it had
// the lock.
func wait(t *testing.T, l *lease.Mutex, inside *atomic.Int64) bool {
	b := someone()
	ctx, cancel := context.WithCancel(b)
	defer cancel()
	if rand.IntN(3) == 0 {
		time.AfterFunc(rand.N(20*time.Millisecond), cancel)
	}
	err := l.LockContext(ctx)
	if errors.Is(err, context.Canceled) || !assert.NoError(t, err) {
		return false
	}
	assert.EqualValues(t, 1, inside.Add(1))
	time.Sleep(rand.N(5 * time.Millisecond))
	inside.Add(-1)
	assert.NoError(t, l.UnlockContext(b))
	return true
}

func TestOfWaitersInTroubleNoneIsForgotten(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	const n, each = 8, 40
	var inside atomic.Int64
	var wg sync.WaitGroup
	for i := range n {
		c := open(t, connect(t, s.Addr), rarely)
		l := c.Mutex("it")
		if i%2 == 0 {
			l = c.FencedMutex("it")
		}
		wg.Go(func() {
			for took := 0; took < each; time.Sleep(rand.N(20 * time.Millisecond)) {
				if wait(t, l, &inside) {
					took++
				}
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		wg.Wait()
	}()
	for i := 0; ; i++ {
		select {
		case <-done:
			require.Eventually(t, func() bool {
				for _, waiter := range direct.LRange(background, waitingList, 0, -1).Val() {
					if !strings.HasPrefix(waiter, "stranger") {
						return false
					}
				}
				return true
			}, hang, 10*time.Millisecond, "a waiter that is gone is in the list")
			return
		case <-time.After(rand.N(50 * time.Millisecond)):
		}
		switch i % 4 {
		case 0:
			direct.Del(background, waitingList)
		case 1:
			direct.ClientKillByFilter(background, "TYPE", "pubsub")
		case 2:
			direct.LPush(background, waitingList, "stranger:1")
		case 3:
			direct.LPop(background, waitingList)
		}
	}
}

func TestAJavaWaiterCountsAsOneBesidesOurs(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		java := direct.Subscribe(background, waitingChannel)
		defer java.Close()
		_, err := java.Receive(background)
		require.NoError(t, err)
		// Local turns go on while they together take less time than four round trips, and a round
		// trip takes milliseconds on a busy machine. Without the Java waiter the lock is taken
		// once.
		require.Greater(t, cohort(t, addr, 60, 20*time.Millisecond), 15)
	})
}

func TestAWaiterGrantedTooLateHearsReleasesAgain(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	p := leasetest.NewProxy(t, s.Addr)
	direct := connect(t, s.Addr)
	slow := redis.NewClient(&redis.Options{Addr: p.Addr(), DisableIdentity: true, ReadTimeout: time.Minute})
	t.Cleanup(func() { slow.Close() })
	const term2 = 4 * time.Second
	rival, l := open(t, connect(t, s.Addr), rarely).Mutex("it"), open(t, slow, term(term2), rarely).Mutex("it")
	a, b := someone(), someone()
	hold(t, rival, a)
	got := begin(l, b)
	mine := inList(t, direct, 1)[0]
	p.Delay(2 * term2) // the message, and then the answer
	require.NoError(t, rival.UnlockContext(a))
	require.Eventually(t, func() bool { return direct.HExists(background, "it", mine).Val() }, hang, time.Millisecond)
	hold(t, rival, a) // when the time of that hold is over, and before its answer has come
	p.Heal()
	inList(t, direct, 1)
	time.Sleep(time.Second) // it asks once more, and then relies on messages
	require.Empty(t, got)
	require.NoError(t, rival.UnlockContext(a))
	require.NoError(t, within(t, got))
	require.NoError(t, l.UnlockContext(b))
}
