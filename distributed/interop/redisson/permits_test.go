package redisson

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/redislock"
)

// shared is a semaphore that both sides have.
type shared interface {
	locks.Semaphore
	TrySetPermits(ctx context.Context, n int64) (bool, error)
	AddPermits(ctx context.Context, n int64) error
	AvailablePermits(ctx context.Context) (int64, error)
}

func semaphoreOf(c *redislock.Client, kind, name string) shared {
	if kind == "expirable" {
		return c.RedissonExpirableSemaphore(name)
	}
	return c.RedissonSemaphore(name)
}

// permitKinds has for each kind of semaphore what Java needs to be told to take one permit.
var permitKinds = map[string]int64{
	"expirable": -1, // for ever
	"counter":   1,  // one
}

// acquire acquires n permits of s.
func acquire(s locks.Semaphore, n int64) <-chan locks.Permits {
	got := make(chan locks.Permits, 1)
	go func() {
		ctx, cancel := context.WithTimeout(background, patience)
		defer cancel()
		if p, err := s.AcquireContext(ctx, n); err == nil {
			got <- p
		}
		close(got)
	}()
	return got
}

// acquired returns what s has acquired at once.
func acquired(t *testing.T, s locks.Semaphore, n int64) locks.Permits {
	t.Helper()
	p := soon(t, acquire(s, n))
	require.NotNil(t, p)
	return p
}

// refused ends the test if there are n permits.
func refused(t *testing.T, s locks.Semaphore, n int64) {
	t.Helper()
	_, ok, err := s.TryAcquireContext(background, n)
	require.NoError(t, err)
	require.False(t, ok)
}

// free requires that both sides count so many free permits.
func (s *stage) free(t *testing.T, sem shared, kind, name string, n int64) {
	t.Helper()
	ours, err := sem.AvailablePermits(background)
	require.NoError(t, err)
	require.Equal(t, n, ours)
	require.Equal(t, fmt.Sprint(n), s.java.ask(t, "a", "free", kind, name))
}

// numberOfPermits returns what Java is told to release one permit.
func numberOfPermits(kind string) (numbers []int64) {
	if kind == "counter" {
		return []int64{1}
	}
	return nil
}

func bothSidesCountTheSamePermits(t *testing.T, s *stage) {
	for kind, one := range permitKinds {
		for _, name := range []string{fresh(), "a:{" + fresh() + "}:c", fresh() + " $'\"\r\n"} {
			sem := semaphoreOf(s.open(t, long), kind, name)
			did, err := sem.TrySetPermits(background, 2)
			require.NoError(t, err)
			require.True(t, did)
			require.Equal(t, "false", s.java.ask(t, "a", "init", kind, name, 7))
			s.free(t, sem, kind, name, 2)
			s.java.must(t, "a", "add", kind, name, 1)
			s.free(t, sem, kind, name, 3)
			require.NoError(t, sem.AddPermits(background, 2))
			s.free(t, sem, kind, name, 5)
			s.java.must(t, "a", "lock", kind, name, one)
			p := acquired(t, sem, 3)
			s.free(t, sem, kind, name, 1)
			refused(t, sem, 2)
			if kind == "expirable" {
				require.Equal(t, "5", s.java.ask(t, "a", "size", kind, name))
			}
			s.java.must(t, "a", "unlock", kind, name, numberOfPermits(kind)...)
			require.NoError(t, p.ReleaseContext(background))
			s.free(t, sem, kind, name, 5)
			s.java.must(t, "a", "delete", kind, name)
			s.java.must(t, "a", "init", kind, name, 1)
			s.free(t, sem, kind, name, 1)
			s.java.must(t, "a", "delete", kind, name)
		}
	}
}

func aReleaseOfPermitsWakesTheOtherSide(t *testing.T, s *stage) {
	for kind, one := range permitKinds {
		name := fresh()
		sem := semaphoreOf(s.open(t, long), kind, name)
		s.java.must(t, "a", "init", kind, name, 2)
		s.java.must(t, "a", "lock", kind, name, one)
		s.java.must(t, "a", "lock", kind, name, one)
		got := acquire(sem, 1)
		awaited(t, s.direct, name, 1)
		began := time.Now()
		s.java.must(t, "a", "unlock", kind, name, numberOfPermits(kind)...)
		p := soon(t, got)
		require.NotNil(t, p)
		require.Less(t, time.Since(began), woken)

		thread := name + "waits"
		answer := s.java.start(thread, "lock", kind, name, one)
		require.Eventually(t, func() bool { return s.java.asleep(t, thread) }, patience, time.Millisecond)
		began = time.Now()
		require.NoError(t, p.ReleaseContext(background))
		require.Equal(t, "true", soon(t, answer))
		require.Less(t, time.Since(began), woken)
		s.java.must(t, "a", "delete", kind, name)
	}
}

// anAcquisitionWaitsForPermitsToBeAdded waits for more permits than there are.
func anAcquisitionWaitsForPermitsToBeAdded(t *testing.T, s *stage) {
	for kind := range permitKinds {
		name := fresh()
		sem := semaphoreOf(s.open(t, long), kind, name)
		got := acquire(sem, 3)
		awaited(t, s.direct, name, 1)
		s.java.must(t, "a", "add", kind, name, 1)
		require.Empty(t, got)
		s.java.must(t, "a", "add", kind, name, 2)
		p := soon(t, got)
		require.NotNil(t, p)
		s.free(t, sem, kind, name, 0)
		require.NoError(t, p.ReleaseContext(background))
		s.java.must(t, "a", "delete", kind, name)
	}
}

func ourPermitsAreRenewedBeyondTheirLease(t *testing.T, s *stage) {
	t.Parallel()
	const kind = "expirable"
	name := fresh()
	sem := s.open(t, brief).RedissonExpirableSemaphore(name)
	s.java.must(t, "a", "init", kind, name, 2)
	p := acquired(t, sem, 2)
	// The thread is its own, because others would wait for it.
	require.Equal(t, "false", s.java.ask(t, name, "try", kind, name, (brief*4/3).Milliseconds(), -1),
		"it has collected what has lapsed")
	require.NoError(t, p.Err())
	s.free(t, sem, kind, name, 0)
	require.NoError(t, p.ReleaseContext(background))
	s.free(t, sem, kind, name, 2)
	s.java.must(t, "a", "delete", kind, name)
}

func eitherSideCollectsLapsedPermits(t *testing.T, s *stage) {
	const kind = "expirable"
	name := fresh()
	s.java.must(t, "a", "init", kind, name, 2)
	dies := s.open(t, long)
	p, err := dies.RedissonExpirableSemaphore(name).AcquireContext(background, 2)
	require.NoError(t, err)
	ends := s.direct.ZRangeWithScores(background, "{"+name+"}:timeout", 0, -1).Val()
	require.Len(t, ends, 2)
	for i := range ends { // as if their process had died some time ago
		require.Len(t, ends[i].Member, 16)
		ends[i].Score = float64(time.Now().Add(300 * time.Millisecond).UnixMilli())
	}
	require.NoError(t, s.direct.ZAdd(background, "{"+name+"}:timeout", ends...).Err())
	s.java.must(t, "a", "try", kind, name, patience.Milliseconds(), 300)
	s.java.must(t, "a", "try", kind, name, patience.Milliseconds(), 300)
	sem := s.open(t, long).RedissonExpirableSemaphore(name)
	theirs := acquired(t, sem, 2) // in place of the permits of Java that have lapsed
	require.Equal(t, "false", s.java.ask(t, "a", "unlock", kind, name))
	require.NoError(t, theirs.Err())
	require.Error(t, p.ReleaseContext(background))
	s.free(t, sem, kind, name, 0)
	require.NoError(t, theirs.ReleaseContext(background))
	s.free(t, sem, kind, name, 2)
	s.java.must(t, "a", "delete", kind, name)
}

func permitsAreDrainedByEitherSide(t *testing.T, s *stage) {
	const kind = "counter"
	name := fresh()
	sem := s.open(t, long).RedissonSemaphore(name)
	s.java.must(t, "a", "init", kind, name, 5)
	p := acquired(t, sem, 2)
	require.Equal(t, "3", s.java.ask(t, "a", "drain", kind, name))
	s.free(t, sem, kind, name, 0)
	require.NoError(t, p.ReleaseContext(background))
	n, err := sem.DrainPermits(background)
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
	require.Equal(t, "0", s.java.ask(t, "a", "drain", kind, name))
	s.java.must(t, "a", "delete", kind, name)
}
