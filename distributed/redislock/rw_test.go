package redislock_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

const rwHears = "redisson_rwlock:{it}"

func rw(t *testing.T, addr string, opts ...redislock.Option) (read, write *lease.Mutex) {
	l := open(t, connect(t, addr), opts...).RWMutex("it")
	return l.ReadMutex(), l.WriteMutex()
}

func TestStateOfTheReadWriteLockIsRedissons(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		read, write := rw(t, addr, term(lease.DefaultLease))
		a, b := someone(), someone()
		began := time.Now()
		hold(t, read, a)
		hold(t, read, a)
		hold(t, read, b)
		state := direct.HGetAll(background, "it").Val()
		require.Len(t, state, 3)
		require.Equal(t, "read", state["mode"])
		for owner := range state {
			if owner != "mode" {
				require.Equal(t, "1", direct.Get(background, "{it}:"+owner+":rwlock_timeout:1").Val())
				left := direct.PTTL(background, "{it}:"+owner+":rwlock_timeout:1").Val()
				require.Greater(t, left+time.Since(began), 29*time.Second)
			}
		}
		require.Len(t, suite.Keys(direct), 3)

		heard := direct.Subscribe(background, rwHears)
		defer heard.Close()
		_, err := heard.Receive(background)
		require.NoError(t, err)
		for _, o := range []context.Context{a, a, b} {
			require.EqualValues(t, 1, direct.Exists(background, "it").Val())
			require.NoError(t, read.UnlockContext(o))
		}
		require.Empty(t, suite.Keys(direct))
		m, err := heard.ReceiveMessage(background)
		require.NoError(t, err)
		require.Equal(t, "0", m.Payload, "of the last reader")

		hold(t, write, a)
		state = direct.HGetAll(background, "it").Val()
		require.Len(t, state, 2)
		require.Equal(t, "write", state["mode"])
		for owner := range state {
			require.Regexp(t, `^mode$|^[0-9a-f-]{36}:\d+:write$`, owner)
		}
		require.NoError(t, write.UnlockContext(a))
		m, err = heard.ReceiveMessage(background)
		require.NoError(t, err)
		require.Equal(t, "1", m.Payload, "of the writer")
		require.Empty(t, suite.Keys(direct))
	})
}

func TestJavasAndGosReadersAndWritersExclude(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		read, write := rw(t, addr, rarely)
		a, b := someone(), someone()

		// Java reads, twice at once.
		direct.HSet(background, "it", "mode", "read", "java:1", 2)
		direct.PExpire(background, "it", 30*time.Second)
		for _, n := range []string{"1", "2"} {
			direct.Set(background, "{it}:java:1:rwlock_timeout:"+n, 1, 20*time.Second)
		}
		require.True(t, try(t, read, a))
		require.False(t, try(t, write, b))
		require.NoError(t, read.UnlockContext(a))
		require.EqualValues(t, 1, direct.Exists(background, "it").Val(), "Java reads still")
		require.LessOrEqual(t, direct.PTTL(background, "it").Val(), 20*time.Second,
			"as long as the longest of its holds")
		require.False(t, try(t, write, b))

		// Java's hold expires with its keys, though its field is left until then.
		require.True(t, try(t, read, a))
		direct.Del(background, "{it}:java:1:rwlock_timeout:1", "{it}:java:1:rwlock_timeout:2")
		require.NoError(t, read.UnlockContext(a))
		require.True(t, try(t, write, b))
		require.NoError(t, write.UnlockContext(b))

		// Java writes. Both kinds wait, and are woken.
		direct.HSet(background, "it", "mode", "write", "java:1:write", 1)
		direct.PExpire(background, "it", suite.Lasting)
		require.False(t, try(t, read, a))
		require.False(t, try(t, write, b))
		got := make(chan error, 3)
		for range 3 {
			go func() { got <- read.LockContext(someone()) }()
		}
		require.Eventually(t, func() bool {
			return direct.PubSubNumSub(background, rwHears).Val()[rwHears] == 1
		}, hang, time.Millisecond)
		began := time.Now()
		direct.Del(background, "it")
		direct.Publish(background, rwHears, "1")
		for range 3 {
			require.NoError(t, <-got)
		}
		require.Less(t, time.Since(began), hang)
	})
}

func TestAReaderIsToldThatItCannotWrite(t *testing.T) {
	t.Parallel()
	read, write := rw(t, miniredis.RunT(t).Addr())
	a := someone()
	hold(t, read, a)
	require.ErrorIs(t, write.LockContext(a), locks.ErrUpgrade)
	_, err := write.TryLockContext(a)
	require.ErrorIs(t, err, locks.ErrUpgrade)
	require.False(t, try(t, write, someone()))
	require.NoError(t, read.UnlockContext(a))
	require.True(t, try(t, write, a))
	require.NoError(t, write.UnlockContext(a))
}

func TestAWriterDowngradesByReading(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		read, write := rw(t, addr, rarely)
		read2, write2 := rw(t, addr, rarely) // of another client
		a, b := someone(), someone()
		hold(t, write, a)
		require.False(t, try(t, read, b), "another owner here")
		h := hold(t, read, a)
		hold(t, read, a)
		hold(t, write, a) // once more, though it reads
		state := direct.HGetAll(background, "it").Val()
		require.Len(t, state, 3)
		require.Equal(t, "write", state["mode"])
		delete(state, "mode")
		for owner := range state {
			if strings.HasSuffix(owner, ":write") {
				delete(state, owner)
			}
		}
		require.Len(t, state, 1)
		for owner, count := range state {
			require.Equal(t, "1", count)
			require.Equal(t, "1", direct.Get(background, "{it}:"+owner+":rwlock_timeout:1").Val())
		}

		// Readers elsewhere and here, and a writer here, wait.
		readers := make(chan error, 2)
		c, d, e := someone(), someone(), someone()
		go func() { readers <- read2.LockContext(c) }()
		go func() { readers <- read.LockContext(d) }()
		writer := make(chan error, 1)
		go func() { writer <- write.LockContext(e) }()
		require.Eventually(t, func() bool {
			return direct.PubSubNumSub(background, rwHears).Val()[rwHears] == 2 && write.QueueLength() == 1
		}, hang, time.Millisecond)
		require.False(t, try(t, read2, someone()))
		require.NoError(t, write.UnlockContext(a))
		require.Empty(t, readers)

		heard := direct.Subscribe(background, rwHears)
		defer heard.Close()
		_, err := heard.Receive(background)
		require.NoError(t, err)
		began := time.Now()
		require.NoError(t, write.UnlockContext(a))
		for range 2 {
			require.NoError(t, <-readers, "they come in")
		}
		require.Less(t, time.Since(began), hang, "at once")
		m, err := heard.ReceiveMessage(background)
		require.NoError(t, err)
		require.Equal(t, "01", m.Payload, "all of Redisson, but two of ours were told")
		require.Equal(t, "read", direct.HGet(background, "it", "mode").Val())
		require.Empty(t, writer, "the next writer here was not left the lock")
		require.False(t, try(t, write2, someone()))
		require.NoError(t, h.Err())
		require.ErrorIs(t, write.LockContext(a), locks.ErrUpgrade, "it is a reader now")

		require.NoError(t, read2.UnlockContext(c))
		require.NoError(t, read.UnlockContext(d))
		require.NoError(t, read.UnlockContext(a))
		require.False(t, try(t, write2, someone()))
		require.Empty(t, writer)
		require.NoError(t, read.UnlockContext(a))
		require.NoError(t, <-writer)
		require.NoError(t, write.UnlockContext(e))
		require.Empty(t, suite.Keys(direct))
	})
}

func TestAWriterThatHasReadLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		read, write := rw(t, addr)
		a := someone()
		hold(t, write, a)
		hold(t, read, a)
		require.NoError(t, read.UnlockContext(a))
		require.Equal(t, "write", direct.HGet(background, "it", "mode").Val())
		require.False(t, try(t, read, someone()))
		require.NoError(t, write.UnlockContext(a))
		require.Empty(t, suite.Keys(direct))

		// A hold of the reader that has expired is none.
		hold(t, write, a)
		direct.HSet(background, "it", "java:1", 1)
		require.NoError(t, write.UnlockContext(a))
		require.Empty(t, suite.Keys(direct))
	})
}

func TestAWriterLearnsItsLossWhenItReads(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	read, write := rw(t, s.Addr, term(long))
	a := someone()
	h := hold(t, write, a)
	direct.Del(background, "it")
	<-h.Lost()
	require.ErrorIs(t, read.LockContext(a), locks.ErrLost)
	require.ErrorIs(t, write.UnlockContext(a), locks.ErrLost)
	require.True(t, try(t, read, a))
	require.NoError(t, read.UnlockContext(a))
}

func TestAReadingWritersHalvesAreBothRenewed(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	read, write := rw(t, s.Addr, term(long))
	a := someone()
	w := hold(t, write, a)
	r := hold(t, read, a)
	renewed(t, w)
	renewed(t, r)
	require.NoError(t, write.UnlockContext(a))
	renewed(t, r)
	require.False(t, try(t, write, someone()))
	require.NoError(t, read.UnlockContext(a))
}

func TestReadersAndWritersAreRenewedAndLost(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	read, write := rw(t, s.Addr, term(long))
	a, b := someone(), someone()
	h, g := hold(t, read, a), hold(t, read, b)
	renewed(t, h)
	renewed(t, g)
	direct.Del(background, "it")
	<-h.Lost()
	<-g.Lost()
	require.ErrorIs(t, read.UnlockContext(a), locks.ErrLost)
	require.ErrorIs(t, read.UnlockContext(b), locks.ErrLost)
	h = hold(t, write, a)
	renewed(t, h)
	direct.Del(background, "it")
	<-h.Lost()
	require.ErrorIs(t, write.UnlockContext(a), locks.ErrLost)
}

func TestPlainLocksAreForeignToReadWriteLocks(t *testing.T) {
	t.Parallel()
	s := miniredis.RunT(t)
	c := open(t, connect(t, s.Addr()))
	read, write := rw(t, s.Addr())
	a := someone()
	hold(t, c.Mutex("it"), a)
	require.ErrorIs(t, read.LockContext(someone()), locks.ErrForeign)
	require.ErrorIs(t, write.LockContext(someone()), locks.ErrForeign)
	require.NoError(t, c.Mutex("it").UnlockContext(a))
	hold(t, read, a)
	require.ErrorIs(t, c.Mutex("it").LockContext(someone()), locks.ErrForeign)
	require.NoError(t, read.UnlockContext(a))
}

func TestAReadersReleaseSeldomChecksOtherReaders(t *testing.T) {
	t.Parallel()
	direct := connect(t, startServer(t).Addr)
	c := open(t, direct)
	reader := func(d time.Duration) func() {
		l, o := c.RWMutex("it", lease.WithFixedTTL(d)).ReadMutex(), someone()
		hold(t, l, o)
		return func() { require.NoError(t, l.UnlockContext(o)) }
	}
	longest := reader(10 * time.Minute)
	var others []func()
	for range 50 {
		others = append(others, reader(time.Minute))
	}
	looks := func(release func()) int {
		require.NoError(t, direct.ConfigResetStat(background).Err())
		release()
		stats := direct.InfoMap(background, "commandstats").Item("Commandstats", "cmdstat_pttl")
		calls, _, _ := strings.Cut(strings.TrimPrefix(stats, "calls="), ",")
		n, err := strconv.Atoi(calls)
		require.NoError(t, err, stats)
		return n
	}
	require.Equal(t, 2, looks(others[0]), "the own hold, and the lock")
	require.Greater(t, direct.PTTL(background, "it").Val(), time.Minute)
	require.Greater(t, looks(longest), 49)
	require.LessOrEqual(t, direct.PTTL(background, "it").Val(), time.Minute, "as long as the longest hold")
	for _, release := range others[1:] {
		release()
	}
	require.Zero(t, direct.Exists(background, "it").Val())
}

// The server's clock passes a millisecond during some of the many scripts.
func TestNoReadWriteLockOutlastsItsReaders(t *testing.T) {
	t.Parallel()
	direct := connect(t, startServer(t).Addr)
	l := open(t, direct).RWMutex("it")
	read, write := l.ReadMutex(), l.WriteMutex()
	check := func() {
		lasts, err := direct.PExpireTime(background, "it").Result()
		require.NoError(t, err)
		holds := direct.Keys(background, "{it}:*:rwlock_timeout:*").Val()
		require.NotEmpty(t, holds)
		for _, hold := range holds {
			require.GreaterOrEqual(t, direct.PExpireTime(background, hold).Val(), lasts)
		}
	}
	for range 1000 {
		a := someone()
		require.NoError(t, read.LockContext(a))
		check()
		require.NoError(t, read.UnlockContext(a))
		require.NoError(t, write.LockContext(a))
		require.NoError(t, read.LockContext(a))
		require.NoError(t, write.UnlockContext(a))
		check()
		require.NoError(t, read.UnlockContext(a))
	}
}

// A writer that reads too has two holds in one hash, whose time to live ends both.
func TestAWritersExtensionKeepsItsLongerHoldAsAReader(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		read, write := rw(t, addr)
		a := someone()
		w := hold(t, write, a)
		r := hold(t, read, a)
		require.NoError(t, r.Extend(a, time.Hour))
		require.NoError(t, w.Extend(a, time.Second))
		require.Greater(t, direct.PTTL(background, "it").Val(), time.Minute, "the reader's hold lasts")
		require.NoError(t, r.Extend(a, time.Minute))
		require.NoError(t, w.Extend(a, time.Second))
		require.LessOrEqual(t, direct.PTTL(background, "it").Val(), time.Minute)
		require.NoError(t, w.Extend(a, time.Hour))
		require.Greater(t, direct.PTTL(background, "it").Val(), time.Minute, "the writer's hold is longer")
		require.NoError(t, write.UnlockContext(a))
		require.LessOrEqual(t, direct.PTTL(background, "it").Val(), time.Minute)
		require.NoError(t, read.UnlockContext(a))
		require.Empty(t, suite.Keys(direct))
	})
}

func TestAReadersShorterExtensionShortensTheLock(t *testing.T) {
	t.Parallel()
	servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		read, _ := rw(t, addr)
		a, b := someone(), someone()
		h, g := hold(t, read, a), hold(t, read, b)
		left := func() time.Duration { return direct.PTTL(background, "it").Val() }
		require.NoError(t, h.Extend(a, time.Hour))
		require.NoError(t, g.Extend(b, 20*time.Minute))
		require.NoError(t, g.Extend(b, 10*time.Minute))
		require.Greater(t, left(), 50*time.Minute, "the other hold is longer")
		require.NoError(t, h.Extend(a, 5*time.Minute))
		require.LessOrEqual(t, left(), 10*time.Minute)
		require.Greater(t, left(), 5*time.Minute, "the other hold is longer again")
		require.NoError(t, g.Extend(b, time.Minute))
		require.LessOrEqual(t, left(), 5*time.Minute)
		require.NoError(t, read.UnlockContext(a))
		require.NoError(t, read.UnlockContext(b))
	})
}
