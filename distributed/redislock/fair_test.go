package redislock_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

const (
	fairQueue = "redisson_lock_queue:{it}"
	fairTimes = "redisson_lock_timeout:{it}"
	fairHears = "redisson_lock__channel:{it}:"
)

// line is a fair lock with n waiters, each a client of its own, in the order of their numbers.
type line struct {
	t      *testing.T
	addr   string
	direct *redis.Client
	holder *lease.Mutex
	owner  context.Context
	opts   []redislock.Option

	wg    sync.WaitGroup
	mu    sync.Mutex
	order []int
}

func newLine(t *testing.T, n int, opts ...redislock.Option) *line {
	return lineOn(t, startServer(t), n, opts...)
}

func lineOn(t *testing.T, s *server, n int, opts ...redislock.Option) *line {
	l := &line{t: t, addr: s.Addr, direct: connect(t, s.Addr), owner: someone(), opts: opts}
	l.holder = open(t, connect(t, s.Addr), opts...).FairMutex("it")
	require.NoError(t, l.holder.LockContext(l.owner))
	for i := range n {
		l.join(i, someone())
		l.queued(int64(i) + 1)
	}
	return l
}

// join adds one more waiter, until ctx ends.
func (l *line) join(i int, ctx context.Context) {
	lock := open(l.t, patient(l.t, l.addr), l.opts...).FairMutex("it")
	l.wg.Go(func() {
		if lock.LockContext(ctx) != nil {
			return
		}
		l.mu.Lock()
		l.order = append(l.order, i)
		l.mu.Unlock()
		assert.NoError(l.t, lock.UnlockContext(ctx))
	})
}

func (l *line) queued(n int64) {
	l.t.Helper()
	require.Eventually(l.t, func() bool { return l.direct.LLen(background, fairQueue).Val() == n }, hang,
		time.Millisecond)
}

// finish frees the lock, and waits until all had it.
func (l *line) finish() time.Duration {
	l.t.Helper()
	began := time.Now()
	require.NoError(l.t, l.holder.UnlockContext(l.owner))
	l.wg.Wait()
	took := time.Since(began)
	require.Zero(l.t, l.direct.Exists(background, "it", fairQueue, fairTimes).Val(), "something is left")
	return took
}

func TestARedissonWaiterOutlastsAShortenedEarlierTime(t *testing.T) {
	t.Parallel()
	const wait = 5 * time.Minute // as Redisson's
	l := newLine(t, 1, redislock.WithFairWait(wait))
	// A release has found the first waiter without a subscription, and has shortened its time. Then
	// two waiters of Redisson have come. Each adds its wait to the time of the waiter before it.
	now := l.direct.Time(background).Val().Truncate(time.Millisecond)
	dies := now.Add(2 * time.Minute) // the first waiter has the lock long before
	l.direct.ZAdd(background, fairTimes,
		redis.Z{Score: float64(dies.UnixMilli()), Member: l.direct.LIndex(background, fairQueue, 0).Val()})
	others := []string{"6ba7b810-9dad-41d1-80b4-00c04fd430c8:1", "6ba7b810-9dad-41d1-80b4-00c04fd430c8:2"}
	for _, other := range others {
		dies = dies.Add(wait)
		l.direct.RPush(background, fairQueue, other)
		l.direct.ZAdd(background, fairTimes, redis.Z{Score: float64(dies.UnixMilli()), Member: other})
		heard := l.direct.Subscribe(background, fairHears+other)
		defer heard.Close()
		_, err := heard.Receive(background)
		require.NoError(t, err)
	}
	require.NoError(t, l.holder.UnlockContext(l.owner))
	l.wg.Wait() // the first waiter has had the lock
	// When the first of them acquires, Redisson subtracts its wait from the time of the second one.
	for i, other := range others {
		dies := time.UnixMilli(int64(l.direct.ZScore(background, fairTimes, other).Val()))
		require.GreaterOrEqual(t, dies.Sub(now), time.Duration(i+1)*wait, "waiter %d", i)
	}
}

func TestAFairLockAdmitsProcessesInOrder(t *testing.T) {
	t.Parallel()
	l := newLine(t, 8)
	ok, err := open(t, connect(t, l.addr)).FairMutex("it").TryLockContext(someone())
	require.NoError(t, err)
	require.False(t, ok)
	l.queued(8)
	require.Less(t, l.finish(), hang)
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7}, l.order)
}

func TestACancelledFairWaiterPassesItsTurnOn(t *testing.T) {
	t.Parallel()
	l := newLine(t, 0)
	ctx, cancel := context.WithCancel(someone())
	l.join(0, ctx)
	l.queued(1)
	l.join(1, someone())
	l.queued(2)
	cancel()
	l.queued(1)
	require.EqualValues(t, 1, l.direct.ZCard(background, fairTimes).Val())
	require.Less(t, l.finish(), hang)
	require.Equal(t, []int{1}, l.order)
}

func TestADeadFirstFairWaiterIsSkipped(t *testing.T) {
	t.Parallel()
	l := newLine(t, 0, redislock.WithFairWait(time.Second))
	dies := float64(time.Now().Add(time.Second).UnixMilli())
	l.direct.ZAdd(background, fairTimes, redis.Z{Score: dies, Member: "dead:1"})
	l.direct.RPush(background, fairQueue, "dead:1")
	l.join(0, someone())
	l.queued(2)
	require.Less(t, l.finish(), hang)
	require.Equal(t, []int{0}, l.order)
}

func TestAJavaWaiterLearnsOfADeadPredecessor(t *testing.T) {
	t.Parallel()
	l := newLine(t, 0)
	now := float64(time.Now().UnixMilli())
	l.direct.RPush(background, fairQueue, "dead:1", "java:1")
	l.direct.ZAdd(background, fairTimes, redis.Z{Score: now - 1, Member: "dead:1"},
		redis.Z{Score: now + 3e5, Member: "java:1"})
	heard := l.direct.Subscribe(background, fairHears+"java:1")
	defer heard.Close()
	_, err := heard.Receive(background)
	require.NoError(t, err)
	require.NoError(t, l.holder.UnlockContext(l.owner))
	m, err := heard.ReceiveMessage(background)
	require.NoError(t, err)
	require.Equal(t, "0", m.Payload)
	ok, err := l.holder.TryLockContext(l.owner)
	require.NoError(t, err)
	require.False(t, ok, "it is Java's turn")
	l.direct.LPop(background, fairQueue)
	l.direct.ZRem(background, fairTimes, "java:1")
	ok, err = l.holder.TryLockContext(l.owner)
	require.NoError(t, err)
	require.True(t, ok)
	l.finish()
}

func TestTheFairQueueSurvivesLostParts(t *testing.T) {
	t.Parallel()
	// The fair wait makes all ask several times a second.
	opts := []redislock.Option{redislock.WithFairWait(600 * time.Millisecond)}
	lose := map[string]func(l *line){
		"a time": func(l *line) {
			head := l.direct.LIndex(background, fairQueue, 0).Val()
			l.direct.ZRem(background, fairTimes, head)
		},
		"the times": func(l *line) { l.direct.Del(background, fairTimes) },
		"the queue": func(l *line) { l.direct.Del(background, fairQueue) },
		"all":       func(l *line) { l.direct.Del(background, fairTimes, fairQueue) },
	}
	for name, f := range lose {
		t.Run(name, func(t *testing.T) {
			l := newLine(t, 4, opts...)
			f(l)
			time.Sleep(500 * time.Millisecond) // nobody comes twice
			require.Eventually(t, func() bool {
				return l.direct.LLen(background, fairQueue).Val() == 4 &&
					l.direct.ZCard(background, fairTimes).Val() == 4
			}, hang, time.Millisecond, "all have asked again")
			require.Less(t, l.finish(), hang)
			require.Len(t, l.order, 4)
		})
	}
}

func TestAFairWaiterKeepsItsPlaceForEver(t *testing.T) {
	t.Parallel()
	l := newLine(t, 3, redislock.WithFairWait(2*time.Second), term(long))
	first := l.direct.LRange(background, fairQueue, 0, -1).Val()
	time.Sleep(long + 3*time.Second)
	require.Equal(t, first, l.direct.LRange(background, fairQueue, 0, -1).Val())
	l.finish()
	require.Equal(t, []int{0, 1, 2}, l.order)
}

func TestFairQueuesHaveServerTimesInRedissonsFormat(t *testing.T) {
	t.Parallel()
	l := newLine(t, 2, term(lease.DefaultLease))
	queue := l.direct.LRange(background, fairQueue, 0, -1).Val()
	times := l.direct.ZRangeWithScores(background, fairTimes, 0, -1).Val()
	require.Len(t, times, 2)
	now := time.Now().UnixMilli()
	for i, z := range times {
		require.Contains(t, queue, z.Member)
		require.Equal(t, "8", z.Member.(string)[14:15], "it is not Redisson's")
		in := time.Duration(int64(z.Score)-now) * time.Millisecond
		require.InDelta(t, 60, in.Seconds(), 20)
		require.Eventually(t, func() bool {
			return slices.Contains(subscriptions(l.direct), fairHears+queue[i])
		}, hang, time.Millisecond)
	}
	require.ElementsMatch(t, []string{"it", fairQueue, fairTimes}, suite.Keys(l.direct))
	l.finish()
}

func TestAFairLockRefusesWhatIsSomethingElse(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	c := open(t, connect(t, s.Addr))
	direct.Set(background, "it", "data", 0)
	require.Error(t, c.FairMutex("it").LockContext(someone()))
	require.Equal(t, "data", direct.Get(background, "it").Val())
	require.Equal(t, []string{"it"}, suite.Keys(direct))
}

// A subscription, three requests for the lock, and the end of the subscription.
func TestAContendedFairAcquisitionTakesFiveRequests(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	locks := []*lease.Mutex{
		open(t, patient(t, s.Addr)).FairMutex("it"),
		open(t, patient(t, s.Addr)).FairMutex("it"),
	}
	requests := func() (n int) {
		for _, name := range []string{"eval", "evalsha", "subscribe", "unsubscribe"} {
			n += commands(t, direct, name)
		}
		return n
	}
	all := func() int {
		other := 0
		for _, name := range []string{"info", "llen", "ping", "client|setinfo", "hello", "pubsub|numsub"} {
			other += commands(t, direct, name)
		}
		return allCommands(t, direct) - other
	}
	holder := someone()
	hold(t, locks[0], holder)
	// pass lets the other client wait, and then hold the lock.
	pass := func() {
		next, got := someone(), make(chan error, 1)
		go func() { got <- locks[1].LockContext(next) }()
		waits := func() bool { return direct.LLen(background, fairQueue).Val() == 1 && len(subscriptions(direct)) == 1 }
		require.Eventually(t, waits, hang, time.Millisecond)
		require.NoError(t, locks[0].UnlockContext(holder))
		require.NoError(t, within(t, got))
		require.Eventually(t, func() bool { return len(subscriptions(direct)) == 0 }, hang, time.Millisecond)
		locks[0], locks[1], holder = locks[1], locks[0], next
	}
	for range 2 { // of each client the first one that waits, which asks twice
		pass()
	}
	const turns = 10
	asked, ran := requests(), all()
	for range turns {
		pass()
	}
	// A slow machine adds requests of a waiter whose time is over.
	require.Less(t, requests()-asked, 6*turns, "requests")
	require.Less(t, all()-ran, 30*turns, "commands")
	require.NoError(t, locks[0].UnlockContext(holder))
}
