package redislock_test

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/internal/test/testbed"
)

const endsKey = "{it}:timeout"

func TestRedissonsPermitsHaveIdsAndEnds(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		s := open(t, connect(t, addr), term(lease.DefaultLease)).RedissonExpirableSemaphore("it")
		did, err := s.TrySetPermits(background, 300)
		require.NoError(t, err)
		require.True(t, did)
		p := get(t, s, 299)
		require.Equal(t, "1", direct.Get(background, "it").Val())
		ends := direct.ZRangeWithScores(background, endsKey, 0, -1).Val()
		require.Len(t, ends, 299)
		for _, z := range ends {
			require.Len(t, z.Member, 16)
			require.InDelta(t, time.Now().Add(30*time.Second).UnixMilli(), z.Score, 20_000)
		}
		require.NoError(t, s.SetPermits(background, 301))
		free, err := s.AvailablePermits(background)
		require.NoError(t, err)
		require.EqualValues(t, 2, free)
		require.NoError(t, p.ReleaseContext(background))
		require.Equal(t, "301", direct.Get(background, "it").Val())
		require.Zero(t, direct.Exists(background, endsKey).Val())
		_, _, err = s.TryAcquireContext(background, 4001)
		require.ErrorContains(t, err, "at most 4000")
	})
}

func TestRedissonsSemaphoresRefuseOtherValues(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		c := open(t, connect(t, addr))
		direct.Set(background, "it", "other", 0)
		_, _, err := c.RedissonExpirableSemaphore("it").TryAcquireContext(background, 1)
		require.ErrorIs(t, err, locks.ErrForeign)
		_, _, err = c.RedissonSemaphore("it").TryAcquireContext(background, 1)
		require.ErrorIs(t, err, locks.ErrForeign)
		require.Error(t, c.RedissonSemaphore("it").AddPermits(background, 1))
		require.Equal(t, "other", direct.Get(background, "it").Val())
	})
}

func TestANumberOfPermitsIsSharedAndWaitedFor(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		s, rival := open(t, connect(t, addr)).RedissonSemaphore("it"), open(t, connect(t, addr)).RedissonSemaphore("it")
		did, err := s.TrySetPermits(background, 3)
		require.NoError(t, err)
		require.True(t, did)
		did, err = rival.TrySetPermits(background, 9)
		require.NoError(t, err)
		require.False(t, did)
		p := get(t, s, 2)
		require.EqualValues(t, 2, p.Count())
		_, ok, err := rival.TryAcquireContext(background, 2)
		require.NoError(t, err)
		require.False(t, ok)
		const channel = "redisson_sc:{it}"
		heard := direct.Subscribe(background, channel)
		defer heard.Close()
		_, err = heard.Receive(background)
		require.NoError(t, err)
		got := waits(background, rival, 3)
		require.Eventually(t, func() bool { return direct.PubSubNumSub(background, channel).Val()[channel] == 2 },
			hang, time.Millisecond)
		require.NoError(t, p.Extend(background, time.Minute))
		require.NoError(t, p.ReleaseContext(background))
		m, err := heard.ReceiveMessage(background)
		require.NoError(t, err)
		require.Equal(t, "3", m.Payload)
		require.ErrorIs(t, p.ReleaseContext(background), locks.ErrNotHeld)
		require.ErrorIs(t, p.Err(), locks.ErrNotHeld)
		require.NoError(t, (<-got).ReleaseContext(background))
		n, err := s.DrainPermits(background)
		require.NoError(t, err)
		require.EqualValues(t, 3, n)
		require.NoError(t, s.AddPermits(background, -1))
		n, err = rival.AvailablePermits(background)
		require.NoError(t, err)
		require.EqualValues(t, -1, n)
	})
}

func TestANumberOfPermitsAsksItsContextWithoutThem(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	connect(t, s.Addr).Set(background, "it", 1, 0)
	permits := open(t, connect(t, s.Addr)).RedissonSemaphore("it")
	ctx := &testbed.Slow{Context: background}
	ctx.Arm(func() {
		short, cancel := context.WithTimeout(background, hang)
		defer cancel()
		p, err := permits.AcquireContext(short, 1)
		if assert.NoError(t, err, "while a method of a context runs") {
			assert.NoError(t, p.ReleaseContext(background))
		}
	})
	p, err := permits.AcquireContext(ctx, 1)
	ctx.Arm(nil)
	require.NoError(t, err)
	require.NoError(t, p.ReleaseContext(background))
}

func TestAWaitForANumberOfPermitsEnds(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	c, err := redislock.New(connect(t, s.Addr))
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(background)
	reason := errors.New("reason")
	errs := make(chan error, 2)
	wait := func(ctx context.Context) {
		_, err := c.RedissonSemaphore("it").AcquireContext(ctx, 1)
		errs <- err
	}
	go wait(ctx)
	require.Eventually(t, func() bool { return len(subscriptions(direct)) > 0 }, hang, time.Millisecond)
	cancel(reason)
	err = within(t, errs)
	require.ErrorIs(t, err, reason)
	require.ErrorIs(t, err, context.Canceled)
	go wait(background)
	require.Eventually(t, func() bool { return len(subscriptions(direct)) > 0 }, hang, time.Millisecond)
	require.NoError(t, c.Close(background))
	require.ErrorIs(t, within(t, errs), locks.ErrClosed)
	_, _, err = c.RedissonSemaphore("it").TryAcquireContext(background, 1)
	require.ErrorIs(t, err, locks.ErrClosed)
}

// deaf drops the replies to scripts.
type deaf struct{ scripts int }

func (d *deaf) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d *deaf) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (d *deaf) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if name := cmd.Name(); err == nil && (name == "eval" || name == "evalsha") {
			d.scripts++
			err = &net.OpError{Op: "read", Err: errors.New("the reply is lost")}
			cmd.SetErr(err)
		}
		return err
	}
}

func TestALostReplyOfANumberIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	direct.Set(background, "it", 5, 0)
	conn, d := connect(t, s.Addr), new(deaf)
	conn.AddHook(d)
	_, err := open(t, conn).RedissonSemaphore("it").AcquireContext(background, 2)
	require.ErrorContains(t, err, "the reply is lost")
	require.Equal(t, 1, d.scripts)
	require.Equal(t, "3", direct.Get(background, "it").Val(), "nobody knows whose the others are")
}

// replied is an error reply of a server.
type replied string

func (r replied) Error() string { return string(r) }

func (replied) RedisError() {}

// refusing answers so many scripts with an error reply.
type refusing struct {
	deaf
	text string
	left int
}

func (f *refusing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if name := cmd.Name(); f.left > 0 && (name == "eval" || name == "evalsha") {
			f.left--
			cmd.SetErr(replied(f.text))
			return cmd.Err()
		}
		return next(ctx, cmd)
	}
}

// counted returns two of five permits, and the client they were acquired by.
func counted(t *testing.T) (p locks.Permits, conn, direct *redis.Client) {
	s := startServer(t)
	direct, conn = connect(t, s.Addr), connect(t, s.Addr)
	direct.Set(background, "it", 5, 0)
	return get(t, open(t, conn).RedissonSemaphore("it"), 2), conn, direct
}

func TestAReleaseOfANumberOutlastsRefusals(t *testing.T) {
	t.Parallel()
	p, conn, direct := counted(t)
	conn.AddHook(&refusing{text: "READONLY You can't write against a read only replica.", left: 2})
	require.NoError(t, p.ReleaseContext(background))
	require.Equal(t, "5", direct.Get(background, "it").Val())
}

func TestARefusedReleaseOfANumberKeepsPermits(t *testing.T) {
	t.Parallel()
	p, conn, direct := counted(t)
	conn.AddHook(&refusing{text: "NOPERM this user has no permissions", left: 1})
	require.ErrorIs(t, p.ReleaseContext(background), driver.ErrRefused)
	require.NoError(t, p.ReleaseContext(background))
	require.Equal(t, "5", direct.Get(background, "it").Val())
}

func TestARefusedReleaseOfANumberIsRepeated(t *testing.T) {
	t.Parallel()
	p, conn, direct := counted(t)
	conn.AddHook(&refusing{text: "WRONGPASS invalid username-password pair or user is disabled.", left: 1})
	require.ErrorIs(t, p.ReleaseContext(background), driver.ErrLogin)
	require.Eventually(t, func() bool { return direct.Get(background, "it").Val() == "5" }, hang, time.Millisecond)
	require.Eventually(t, func() bool { return p.Err() != nil }, hang, time.Millisecond)
	require.NoError(t, p.ReleaseContext(background), "the call that was refused is repeated by its caller")
	require.ErrorIs(t, p.ReleaseContext(background), locks.ErrNotHeld)
}

func TestAnUnansweredReleaseOfPermitsIsALoss(t *testing.T) {
	t.Parallel()
	p, conn, _ := counted(t)
	d := new(deaf)
	conn.AddHook(d)
	require.ErrorIs(t, p.ReleaseContext(background), locks.ErrLost)
	require.Equal(t, 1, d.scripts)
	require.ErrorIs(t, p.ReleaseContext(background), locks.ErrNotHeld)
}

func TestAnAcquisitionOfANumberOutlastsRefusals(t *testing.T) {
	t.Parallel()
	p, conn, direct := counted(t)
	conn.AddHook(&refusing{text: "LOADING Redis is loading the dataset in memory", left: 1})
	require.NoError(t, get(t, open(t, conn).RedissonSemaphore("it"), 1).ReleaseContext(background))
	require.NoError(t, p.ReleaseContext(background))
	require.Equal(t, "5", direct.Get(background, "it").Val())
}

// late keeps replies to scripts back until answer is closed.
type late struct {
	deaf
	done, answer chan struct{}
}

func (l *late) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if name := cmd.Name(); name == "eval" || name == "evalsha" {
			l.done <- struct{}{}
			<-l.answer
		}
		return err
	}
}

func TestANumberTakenAfterTheEndIsReturned(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct, conn := connect(t, s.Addr), connect(t, s.Addr)
	direct.Set(background, "it", 5, 0)
	l := &late{done: make(chan struct{}, 2), answer: make(chan struct{})}
	conn.AddHook(l)
	c, err := redislock.New(conn)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(background)
	got := make(chan error, 1)
	go func() {
		_, _, err := c.RedissonSemaphore("it").TryAcquireContext(ctx, 2)
		got <- err
	}()
	<-l.done
	require.Equal(t, "3", direct.Get(background, "it").Val())
	cancel()
	require.ErrorIs(t, within(t, got), context.Canceled)
	close(l.answer)
	require.NoError(t, c.Close(background))
	require.Equal(t, "5", direct.Get(background, "it").Val())
}

func TestNumbersThatRedissonCannotHaveAreRefused(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	c := open(t, connect(t, s.Addr))
	number, expirable := c.RedissonSemaphore("it"), c.RedissonExpirableSemaphore("it")
	for _, n := range []int64{math.MaxInt32 + 1, -math.MaxInt32 - 1} {
		require.ErrorIs(t, number.AddPermits(background, n), fs.ErrInvalid)
		require.ErrorIs(t, expirable.AddPermits(background, n), fs.ErrInvalid)
		_, _, err := number.TryAcquireContext(background, n)
		require.ErrorIs(t, err, fs.ErrInvalid)
	}
	for _, n := range []int64{math.MaxInt32 + 1, -1} {
		_, err := number.TrySetPermits(background, n)
		require.ErrorIs(t, err, fs.ErrInvalid)
		_, err = expirable.TrySetPermits(background, n)
		require.ErrorIs(t, err, fs.ErrInvalid)
		require.ErrorIs(t, expirable.SetPermits(background, n), fs.ErrInvalid)
	}
	require.Zero(t, direct.Exists(background, "it").Val())
}

func TestNoMessageTellsOfNegativePermits(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		heard := direct.Subscribe(background, "redisson_sc:{it}")
		defer heard.Close()
		_, err := heard.Receive(background)
		require.NoError(t, err)
		s := open(t, connect(t, addr)).RedissonSemaphore("it")
		require.NoError(t, s.AddPermits(background, -2))
		require.NoError(t, s.AddPermits(background, 3))
		m, err := heard.ReceiveMessage(background)
		require.NoError(t, err)
		require.Equal(t, "1", m.Payload)
	})
}

func TestARequestAfterAPartialCollectionLosesNothing(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		var store driver.Store
		keep := func(s driver.Store) driver.Store { store = s; return s }
		c := open(t, connect(t, addr), redislock.WithLeaseOptions(lease.WithWrapper(keep)))
		require.NoError(t, c.RedissonExpirableSemaphore("it").SetPermits(background, 5))
		id := driver.HoldID{Name: "it", Acquisition: "mine"}
		request := driver.Request{HoldID: id, TTL: time.Minute, Permits: 3, Size: math.MaxInt64}
		for range 2 {
			r, err := store.Acquire(background, request)
			require.NoError(t, err)
			require.True(t, r.Held)
			require.Equal(t, "2", direct.Get(background, "it").Val())
			// Redisson collects the first permit.
			direct.ZRemRangeByRank(background, endsKey, 0, 0)
			direct.Incr(background, "it")
		}
	})
}

// refusingLogin answers scripts with an error reply, from the second script to the script with
// number last.
type refusingLogin struct {
	deaf
	asked atomic.Int32
	last  int32
}

func (f *refusingLogin) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if name := cmd.Name(); name == "eval" || name == "evalsha" {
			if n := f.asked.Add(1); n >= 2 && n <= f.last {
				cmd.SetErr(replied("WRONGPASS invalid username-password pair or user is disabled."))
				return cmd.Err()
			}
		}
		return next(ctx, cmd)
	}
}

func TestAWaitForANumberOutlastsARefusedLogin(t *testing.T) {
	t.Parallel()
	p, conn, _ := counted(t)
	f := &refusingLogin{last: 2}
	got := f.wait(t, background, conn)
	require.Eventually(t, func() bool { return f.asked.Load() >= 2 }, hang, time.Millisecond)
	require.NoError(t, p.ReleaseContext(background))
	require.NoError(t, within(t, got))
}

func TestAWaitForANumberThatEndsTellsOfARefusedLogin(t *testing.T) {
	t.Parallel()
	p, conn, _ := counted(t)
	f := &refusingLogin{last: math.MaxInt32}
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	got := f.wait(t, ctx, conn)
	require.Eventually(t, func() bool { return f.asked.Load() >= 2 }, hang, time.Millisecond)
	require.NoError(t, p.ReleaseContext(background)) // the waiter asks again, so it has had an answer
	require.Eventually(t, func() bool { return f.asked.Load() >= 3 }, hang, time.Millisecond)
	cancel()
	err := within(t, got)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, driver.ErrLogin)
}

// wait makes a client that f refuses wait for four permits.
func (f *refusingLogin) wait(t *testing.T, ctx context.Context, conn *redis.Client) (got chan error) {
	waiting := connect(t, conn.Options().Addr)
	waiting.AddHook(f)
	s := open(t, waiting).RedissonSemaphore("it")
	got = make(chan error, 1)
	go func() {
		_, err := s.AcquireContext(ctx, 4)
		got <- err
	}()
	return got
}
