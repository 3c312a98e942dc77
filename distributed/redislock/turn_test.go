package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/testbed"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

const (
	turnList    = "locks_waiting:{it}"
	turnChannel = "redisson_lock__channel:{it}"
	turnSign    = "locks_lingering:{it}"
)

// inList waits until n are in the list, and returns its elements.
func inList(tb testing.TB, direct *redis.Client, n int) (all []string) {
	tb.Helper()
	require.Eventually(tb, func() bool {
		all = direct.LRange(background, turnList, 0, -1).Val()
		return len(all) == n
	}, soon, time.Millisecond)
	return all
}

// begin has l taken by somebody, and returns the outcome.
func begin(l *redislock.Mutex, ctx context.Context) <-chan error {
	got := make(chan error, 1)
	go func() { got <- l.LockContext(ctx) }()
	return got
}

// within returns what comes of got, soon.
func within(tb testing.TB, got <-chan error) error {
	tb.Helper()
	select {
	case err := <-got:
		return err
	case <-time.After(soon):
		tb.Fatal("it waits still")
		return nil
	}
}

// settle waits until n who wait have subscribed, and asked again, once more than before times in all.
func settle(t *testing.T, direct *redis.Client, n, before int) {
	t.Helper()
	require.Eventually(t, func() bool {
		heard := direct.PubSubNumSub(background, turnChannel).Val()[turnChannel]
		return heard == int64(n) && commands(t, direct, "lpos") >= before+n
	}, soon, time.Millisecond)
}

func numberOf(tb testing.TB, element string) int {
	tb.Helper()
	number, owner, ok := strings.Cut(element, ":")
	require.True(tb, ok)
	require.Regexp(tb, `^[0-9a-f-]{36}:\d+$`, owner)
	n, err := strconv.Atoi(number)
	require.NoError(tb, err)
	require.GreaterOrEqual(tb, n, 2)
	require.LessOrEqual(tb, n, 256)
	return n
}

func TestAReleaseSaysWhoseTurnItIsInAMessageThatIsZero(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		holder, c := open(t, connect(t, addr)), open(t, connect(t, addr), rarely)
		for _, lock := range []func(c *redislock.Client) *redislock.Mutex{
			func(c *redislock.Client) *redislock.Mutex { return c.Mutex("it") },
			func(c *redislock.Client) *redislock.Mutex { return c.FencedMutex("it") },
		} {
			heard := suite.Listen(t, direct, "it")
			a, b := someone(), someone()
			hold(t, lock(holder), a)
			got := begin(lock(c), b)
			element := inList(t, direct, 1)[0]
			ttl := direct.PTTL(background, turnList).Val()
			require.Positive(t, ttl)
			require.LessOrEqual(t, ttl, time.Minute)
			require.NoError(t, lock(holder).UnlockContext(a))
			require.NoError(t, within(t, got))
			require.Zero(t, direct.Exists(background, turnList).Val())
			message := turnChannel + " " + strings.Repeat("0", numberOf(t, element))
			require.Eventually(t, func() bool { return len(heard()) == 1 }, soon, time.Millisecond)
			require.Equal(t, []string{message}, heard())
			require.NoError(t, lock(c).UnlockContext(b))
			require.Eventually(t, func() bool { return len(heard()) == 2 }, soon, time.Millisecond)
			require.Equal(t, turnChannel+" 0", heard()[1], "nobody waits")
		}
	})
}

func TestWaitersOfSeveralProcessesHaveTheirTurnsInOrder(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		holder := open(t, connect(t, addr)).Mutex("it")
		a := someone()
		hold(t, holder, a)
		const n = 5
		elements := []string{}
		var wg sync.WaitGroup
		for i := range n {
			l, b := open(t, connect(t, addr), rarely).Mutex("it"), someone()
			wg.Go(func() {
				assert.NoError(t, l.LockContext(b))
				assert.NoError(t, l.UnlockContext(b))
			})
			all := inList(t, direct, i+1)
			require.Equal(t, elements, all[:len(elements)], "who came before keeps its place")
			elements = append([]string{}, all...)
		}
		heard := suite.Listen(t, direct, "redisson")
		began := time.Now()
		require.NoError(t, holder.UnlockContext(a))
		wg.Wait()
		require.Less(t, time.Since(began), soon)
		require.Eventually(t, func() bool { return len(heard()) > n }, soon, time.Millisecond)
		require.Equal(t, turnChannel+" "+strings.Repeat("0", numberOf(t, elements[0])), heard()[0])
		require.Zero(t, direct.Exists(background, turnList).Val())
	})
}

func TestOthersGoOnWhenItIsTheTurnOfOneThatHasDied(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		holder := open(t, connect(t, addr)).Mutex("it")
		a := someone()
		hold(t, holder, a)
		const n = 3
		var wg sync.WaitGroup
		for i := range n {
			l := open(t, connect(t, addr), rarely).Mutex("it")
			wg.Go(func() {
				b := someone()
				assert.NoError(t, l.LockContext(b))
				assert.NoError(t, l.UnlockContext(b))
			})
			inList(t, direct, i+1)
		}
		for range 3 {
			direct.LPush(background, turnList, "77:somebody")
		}
		began := time.Now()
		require.NoError(t, holder.UnlockContext(a))
		wg.Wait()
		require.Less(t, time.Since(began), soon)
		require.NotContains(t, direct.LRange(background, turnList, 0, -1).Val(), "77:somebody", "each has had its turn")
	})
}

func TestOthersGoOnWhenItIsTheTurnOfOneThatCannotBeReached(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	p := testbed.NewProxy(t, s.Addr)
	holder, l := open(t, connect(t, s.Addr)).Mutex("it"), open(t, connect(t, s.Addr), rarely).Mutex("it")
	a, b := someone(), someone()
	hold(t, holder, a)
	ctx, cancel := context.WithCancel(someone())
	first := begin(open(t, connect(t, p.Addr()), rarely).Mutex("it"), ctx)
	inList(t, direct, 1)
	got := begin(l, b)
	inList(t, direct, 2)
	settle(t, direct, 2, 0)
	p.Cut()
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, within(t, got))
	p.Heal()
	cancel()
	require.ErrorIs(t, within(t, first), context.Canceled)
	require.NoError(t, l.UnlockContext(b))
}

func TestWhoseTurnItWasThoughTheLockIsAnothersIsNext(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		holder := open(t, connect(t, addr)).Mutex("it")
		a := someone()
		hold(t, holder, a)
		ctx, cancel := context.WithCancel(someone())
		var all []<-chan error
		for i := range 3 {
			all = append(all, begin(open(t, connect(t, addr), rarely).Mutex("it"), ctx))
			inList(t, direct, i+1)
		}
		before := inList(t, direct, 3)
		require.Eventually(t, func() bool {
			direct.Publish(background, turnChannel, strings.Repeat("0", numberOf(t, before[1])))
			return direct.LIndex(background, turnList, 0).Val() == before[1]
		}, soon, 100*time.Millisecond)
		require.Len(t, inList(t, direct, 3), 3, "it has one place")
		cancel()
		for _, got := range all {
			require.ErrorIs(t, within(t, got), context.Canceled)
		}
		inList(t, direct, 0)
		require.NoError(t, holder.UnlockContext(a))
	})
}

func TestWhoGetsTheLockOutOfTurnLeavesTheList(t *testing.T) {
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
		require.Zero(t, direct.Exists(background, turnList).Val())
		require.NoError(t, l.UnlockContext(b))
		require.ErrorIs(t, holder.UnlockContext(a), locks.ErrLost)
	})
}

func TestAWaiterThatGivesUpWhenItIsItsTurnCallsTheNext(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		holder := open(t, connect(t, addr)).Mutex("it")
		a, b := someone(), someone()
		hold(t, holder, a)
		ctx, cancel := context.WithCancel(someone())
		first := begin(open(t, connect(t, addr), rarely).Mutex("it"), ctx)
		element := inList(t, direct, 1)[0]
		l := open(t, connect(t, addr), rarely).Mutex("it")
		second := begin(l, b)
		inList(t, direct, 2)
		require.Eventually(t, func() bool { return direct.PubSubNumSub(background, turnChannel).Val()[turnChannel] == 2 }, soon, time.Millisecond)
		time.Sleep(100 * time.Millisecond) // they have asked again
		// As if the first one had been called, and nobody else had heard of it.
		pipe := direct.TxPipeline()
		pipe.Del(background, "it")
		pipe.LRem(background, turnList, 0, element)
		_, err := pipe.Exec(background)
		require.NoError(t, err)
		cancel()
		require.ErrorIs(t, within(t, first), context.Canceled)
		require.NoError(t, within(t, second))
		require.NoError(t, l.UnlockContext(b))
		require.ErrorIs(t, holder.UnlockContext(a), locks.ErrLost)
	})
}

func TestOneWhoseReplyWasLostWhenItGotTheLockListensNoMore(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	p := testbed.NewProxy(t, s.Addr)
	holder, l := open(t, connect(t, s.Addr)).Mutex("it"), open(t, connectFor(t, p.Addr(), 12*hasty), rarely).Mutex("it")
	a, b := someone(), someone()
	hold(t, holder, a)
	got := begin(l, b)
	inList(t, direct, 1)
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, within(t, got))
	require.NoError(t, l.UnlockContext(b))
	p.DropReply("eval", 1)
	require.NoError(t, within(t, begin(l, b))) // it hears of the lock already when it asks
	require.Equal(t, 1, p.Drops())
	require.NoError(t, l.UnlockContext(b))
	require.Eventually(t, func() bool { return len(subscriptions(direct)) == 0 }, soon, 10*time.Millisecond)
}

func TestAWaiterThatGivesUpLeavesItsPlace(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		holder := open(t, connect(t, addr)).Mutex("it")
		a := someone()
		hold(t, holder, a)
		for range 20 {
			l := open(t, connect(t, addr), rarely).Mutex("it")
			ctx, cancel := context.WithTimeout(someone(), time.Duration(rand.Int64N(int64(20*time.Millisecond))))
			require.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
			cancel()
		}
		inList(t, direct, 0)
		require.NoError(t, holder.UnlockContext(a))
	})
}

func TestACloseOfTheClientLeavesNobodyInTheList(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		holder := open(t, connect(t, addr)).Mutex("it")
		a := someone()
		hold(t, holder, a)
		c := open(t, connect(t, addr), rarely)
		got := begin(c.Mutex("it"), someone())
		inList(t, direct, 1)
		require.NoError(t, c.Close(background))
		require.Zero(t, direct.Exists(background, turnList).Val())
		require.ErrorIs(t, within(t, got), locks.ErrClosed)
		require.NoError(t, holder.UnlockContext(a))
	})
}

// lingering returns a client of which nobody waits, which hears of the lock still, and its number.
func lingering(t *testing.T, direct *redis.Client, addr string) (c *redislock.Client, number int) {
	holder := open(t, connect(t, addr)).Mutex("it")
	c = open(t, connect(t, addr), rarely)
	a, b := someone(), someone()
	hold(t, holder, a)
	got := begin(c.Mutex("it"), b)
	number = numberOf(t, inList(t, direct, 1)[0])
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, within(t, got))
	require.NoError(t, c.Mutex("it").UnlockContext(b))
	return c, number
}

func TestAClientThatIsCalledThoughNobodyWaitsThereCallsTheNext(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		require.Eventually(t, func() bool { // unless the machine was so busy that the client hears no more
			_, number := lingering(t, direct, addr)
			heard := suite.Listen(t, direct, "redisson")
			direct.RPush(background, turnList, "9:somebody")
			direct.Publish(background, turnChannel, strings.Repeat("0", number))
			for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
				if all := heard(); len(all) == 2 {
					return assert.Equal(t, turnChannel+" 000000000", all[1]) && assert.Zero(t, direct.Exists(background, turnList).Val())
				}
			}
			direct.Del(background, turnList)
			return false
		}, soon, time.Millisecond)
	})
}

func TestWhoComesBackSoonAsksOnceAndSubscribesToNothing(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	holder := open(t, connect(t, s.Addr)).Mutex("it")
	require.Eventually(t, func() bool { // unless the machine was so busy that it was not soon
		c, _ := lingering(t, direct, s.Addr)
		a, b := someone(), someone()
		hold(t, holder, a)
		subscribed := commands(t, direct, "subscribe")
		asked := commands(t, direct, "evalsha") + commands(t, direct, "eval")
		got := begin(c.Mutex("it"), b)
		inList(t, direct, 1)
		time.Sleep(100 * time.Millisecond)
		asked = commands(t, direct, "evalsha") + commands(t, direct, "eval") - asked
		require.NoError(t, holder.UnlockContext(a))
		require.NoError(t, within(t, got))
		require.NoError(t, c.Mutex("it").UnlockContext(b))
		subscribed = commands(t, direct, "subscribe") - subscribed
		// One may be to the sign.
		return asked == 1 && subscribed <= 1
	}, soon, time.Millisecond)
}

func TestSubscriptionsEndWhenNobodyNeedsThemForAWhile(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	c, _ := lingering(t, direct, s.Addr)
	require.Eventually(t, func() bool { return len(subscriptions(direct)) == 0 }, soon, 10*time.Millisecond)
	// And it begins anew.
	holder := open(t, connect(t, s.Addr)).Mutex("it")
	a, b := someone(), someone()
	hold(t, holder, a)
	asked := commands(t, direct, "lpos")
	got := begin(c.Mutex("it"), b)
	settle(t, direct, 1, asked)
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, within(t, got))
	require.NoError(t, c.Mutex("it").UnlockContext(b))
}

func TestASubscriptionThatLingersWhileItsConnectionIsLostIsNotReliedUpon(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	c, _ := lingering(t, direct, s.Addr)
	holder := open(t, connect(t, s.Addr)).Mutex("it")
	a, b := someone(), someone()
	hold(t, holder, a)
	require.NoError(t, direct.ClientKillByFilter(background, "TYPE", "pubsub").Err())
	got := begin(c.Mutex("it"), b)
	inList(t, direct, 1)
	require.NoError(t, direct.Del(background, turnList).Err()) // so that it has to hear of it
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, within(t, got))
	require.NoError(t, c.Mutex("it").UnlockContext(b))
}

func TestWithoutAPlaceWaitersGoOnAfterEachRelease(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		for name, spoil := range map[string]func(){
			"another type":      func() { direct.Set(background, turnList, "x", 0) },
			"deleted":           func() { direct.Del(background, turnList) },
			"garbage":           func() { direct.LPush(background, turnList, "", "x", "1:x", "999:x", "-5:x", "2", ":", "0x5:y") },
			"deleted and dirty": func() { direct.Del(background, turnList); direct.RPush(background, turnList, "garbage") },
		} {
			spoil()
			holder := open(t, connect(t, addr)).Mutex("it")
			a := someone()
			hold(t, holder, a)
			var wg sync.WaitGroup
			for range 3 {
				l := open(t, connect(t, addr), rarely).Mutex("it")
				wg.Go(func() {
					b := someone()
					assert.NoError(t, l.LockContext(b), name)
					assert.NoError(t, l.UnlockContext(b), name)
				})
			}
			gone := open(t, connect(t, addr), rarely).Mutex("it")
			ctx, cancel := context.WithTimeout(someone(), 50*time.Millisecond)
			require.ErrorIs(t, gone.LockContext(ctx), context.DeadlineExceeded)
			cancel()
			ok, err := gone.TryLockContext(someone())
			require.NoError(t, err)
			require.False(t, ok)
			spoil()
			began := time.Now()
			require.NoError(t, holder.UnlockContext(a))
			wg.Wait()
			require.Less(t, time.Since(began), soon, name)
			direct.Del(background, turnList)
		}
	})
}

func TestOfProcessesInTroubleNobodyIsForgotten(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	ctx, end := context.WithTimeout(background, 3*time.Second)
	defer end()
	var inside, took, slowest atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		c := open(t, connect(t, s.Addr), rarely)
		l := c.Mutex("it")
		if i%2 == 0 {
			l = c.FencedMutex("it")
		}
		wg.Go(func() {
			for ctx.Err() == nil {
				b := someone()
				wait, cancel := context.WithCancel(b)
				if rand.IntN(3) == 0 {
					time.AfterFunc(rand.N(20*time.Millisecond), cancel)
				}
				began := time.Now()
				err := l.LockContext(wait)
				cancel()
				if errors.Is(err, context.Canceled) {
					continue
				}
				for now := int64(time.Since(began)); ; {
					if before := slowest.Load(); before >= now || slowest.CompareAndSwap(before, now) {
						break
					}
				}
				if !assert.NoError(t, err) {
					return
				}
				assert.EqualValues(t, 1, inside.Add(1))
				time.Sleep(rand.N(5 * time.Millisecond))
				inside.Add(-1)
				took.Add(1)
				assert.NoError(t, l.UnlockContext(b))
				time.Sleep(rand.N(20 * time.Millisecond))
			}
		})
	}
	for n := 0; ctx.Err() == nil; n++ {
		time.Sleep(rand.N(50 * time.Millisecond))
		switch n % 4 {
		case 0:
			direct.Del(background, turnList)
		case 1:
			direct.ClientKillByFilter(background, "TYPE", "pubsub")
		case 2:
			direct.LPush(background, turnList, fmt.Sprint(2+rand.IntN(255), ":somebody"))
		case 3:
			direct.LPop(background, turnList)
		}
	}
	wg.Wait()
	require.Less(t, time.Duration(slowest.Load()), soon)
	require.Greater(t, took.Load(), int64(20))
	require.Eventually(t, func() bool {
		for _, element := range direct.LRange(background, turnList, 0, -1).Val() {
			if !strings.HasSuffix(element, ":somebody") {
				return false
			}
		}
		return true
	}, soon, 10*time.Millisecond, "of those who are gone nobody is in the list")
}

func TestWhoOnlyHearsOfALockDoesNotCountAsWaiting(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		require.Eventually(t, func() bool { // unless the machine was so busy that it hears no more
			lingering(t, direct, addr)
			require.Less(t, cohort(t, addr, 100, false), 25)
			return len(subscriptions(direct)) == 2
		}, soon, time.Millisecond)
	})
}

func TestAJavaWaiterCountsAmongThoseWhoOnlyHear(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		java := direct.Subscribe(background, turnChannel)
		defer java.Close()
		_, err := java.Receive(background)
		require.NoError(t, err)
		lingering(t, direct, addr)
		require.Eventually(t, func() bool {
			n := direct.PubSubNumSub(background, turnChannel, turnSign).Val()
			return n[turnChannel] == n[turnSign]+1
		}, soon, time.Millisecond)
		require.Greater(t, cohort(t, addr, 100, false), 40)
	})
}
