package redisson

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/internal/test/testbed"
)

// brief is a lease that is over soon, but is renewed in time on a busy machine.
const brief = 9 * time.Second

// bothWatchdogsRenew has either side hold locks for longer than their leases, of which the other
// tries to get one.
func bothWatchdogsRenew(t *testing.T, s *stage) {
	t.Parallel()
	java := startAgent(t, s.version, "single", s.addr, brief)
	name := fresh()
	c, a := s.open(t, brief), someone()
	for _, kind := range kinds {
		java.must(t, "a", "lock", kind, name+"java"+kind, -1)
		hold(t, lockOf(c, kind, name+"go"+kind), a)
	}
	for began := time.Now(); time.Since(began) < brief*4/3; time.Sleep(50 * time.Millisecond) {
		for _, kind := range kinds {
			require.False(t, try(t, lockOf(c, against(kind), name+"java"+kind), someone()), kind)
			require.Equal(t, "false", java.ask(t, "b", "try", against(kind), name+"go"+kind, 0, -1), kind)
		}
	}
	for _, kind := range kinds {
		ttl := s.direct.PTTL(background, name+"java"+kind).Val()
		require.Positive(t, ttl)
		require.LessOrEqual(t, ttl, brief)
		java.must(t, "a", "unlock", kind, name+"java"+kind)
		h, err := lockOf(c, kind, name+"go"+kind).Hold(a)
		require.NoError(t, err)
		require.NoError(t, h.Err())
		require.NoError(t, lockOf(c, kind, name+"go"+kind).UnlockContext(a))
	}
}

// oursGetsTheLockOfAJavaProcessThatWasKilled also has a dead Java process wait at the head of a
// fair queue.
func oursGetsTheLockOfAJavaProcessThatWasKilled(t *testing.T, s *stage) {
	t.Parallel()
	java := startAgent(t, s.version, "single", s.addr, brief)
	name := fresh()
	c := s.open(t, brief)
	for _, kind := range kinds {
		java.must(t, "a", "lock", against(kind), name+kind, -1)
	}
	queue := name + "queue"
	holder, a := c.FairMutex(queue), someone()
	hold(t, holder, a)
	java.start(name, "try", "fair", queue, brief.Milliseconds(), -1)
	queued := func(n int64) {
		t.Helper()
		require.Eventually(t, func() bool {
			return s.direct.LLen(background, "redisson_lock_queue:{"+queue+"}").Val() == n
		}, patience, time.Millisecond)
	}
	queued(1)
	var waits []<-chan error
	b := someone()
	for _, kind := range kinds {
		waits = append(waits, start(lockOf(c, kind, name+kind), b))
	}
	// Nobody tells that the head of the queue is dead: who is behind it must ask.
	behind := s.open(t, brief, redislock.WithLeaseOptions(lease.WithPoll(time.Second))).FairMutex(queue)
	waits = append(waits, start(behind, b))
	queued(2)
	awaited(t, s.direct, name, 7) // the two that wait for the queue among them
	java.Kill()
	began := time.Now()
	require.NoError(t, holder.UnlockContext(a))
	for i, got := range waits {
		select {
		case err := <-got:
			require.NoError(t, err)
		case <-time.After(patience):
			t.Fatalf("waiter %d gets no lock", i)
		}
		if i < len(kinds) {
			require.Less(t, time.Since(began), brief+woken, "by the end of the lease")
		}
	}
	require.Less(t, time.Since(began), 2*brief+woken, "when the one before it counts as dead")
	require.NoError(t, behind.UnlockContext(b))
	for _, kind := range kinds {
		require.NoError(t, lockOf(c, kind, name+kind).UnlockContext(b))
	}
}

func redissonGetsTheLockOfAGoProcessThatWasKilled(t *testing.T, s *stage) {
	t.Parallel()
	name := fresh()
	kinds := kinds
	if s.version == before {
		// In a fair queue this Redisson computes its sleep from the answer to its first request. If
		// the holder has renewed since, the sleep is negative: Redisson then sleeps until it hears
		// of a release, and a dead holder sends none.
		kinds = slices.DeleteFunc(slices.Clone(kinds), func(kind string) bool { return kind == "fair" })
	}
	args := []string{s.addr, brief.String()}
	for _, kind := range kinds {
		args = append(args, against(kind)+"/"+name+kind)
	}
	child := testbed.Child(t, "hold", args...)
	require.Equal(t, "held", child.Line())
	var waits []<-chan string
	for i, kind := range kinds {
		waits = append(waits, s.java.start(name+strconv.Itoa(i), "lock", kind, name+kind, -1))
	}
	awaited(t, s.direct, name, len(kinds))
	child.Kill()
	began := time.Now()
	for i, kind := range kinds {
		select {
		case answer := <-waits[i]:
			require.Equal(t, "true", answer)
		case <-time.After(patience):
			t.Fatalf("Redisson does not get the %s lock, of which there is %v", kind,
				s.direct.Keys(background, "*"+name+kind+"*"))
		}
		require.Less(t, time.Since(began), brief+woken, "by the end of the lease")
		s.java.must(t, name+strconv.Itoa(i), "unlock", kind, name+kind)
	}
}

// redissonSkipsAKilledGoProcessAtTheHead lets a Java thread wait behind the killed process, and
// perhaps a polling waiter of ours behind the thread.
func redissonSkipsAKilledGoProcessAtTheHead(t *testing.T, s *stage) {
	t.Parallel()
	for _, behind := range []bool{true, false} {
		if !behind && s.version == before {
			continue // it sleeps until it is told, see redissonGetsTheLockOfAGoProcessThatWasKilled
		}
		name := fresh()
		queue := "redisson_lock_queue:{" + name + "}"
		queued := func(n int64) {
			t.Helper()
			require.Eventually(t, func() bool { return s.direct.LLen(background, queue).Val() == n }, patience,
				time.Millisecond)
		}
		holder, a := s.open(t, brief).FairMutex(name), someone()
		hold(t, holder, a)
		child := testbed.Child(t, "wait", s.addr, name)
		queued(1)
		answer := s.java.start(name, "lock", "fair", name, -1)
		queued(2)
		require.Eventually(t, func() bool { return s.java.asleep(t, name) }, patience, time.Millisecond)
		var got <-chan error
		last, b := s.open(t, brief, redislock.WithLeaseOptions(lease.WithPoll(time.Second))).FairMutex(name), someone()
		if behind {
			got = start(last, b)
			queued(3)
		}
		child.Kill()
		began := time.Now()
		require.NoError(t, holder.UnlockContext(a))
		require.Equal(t, "true", soon(t, answer))
		// The head counts as dead a second after the lease that it was told last; who sleeps was
		// told not more than a lease either.
		require.Less(t, time.Since(began), 2*brief+woken)
		s.java.must(t, name, "unlock", "fair", name)
		if behind {
			require.NoError(t, soon(t, got))
			require.NoError(t, last.UnlockContext(b))
		}
		for _, key := range s.direct.Keys(background, "*"+name+"*").Val() {
			// Redisson deletes the result of an unlock without waiting for the answer.
			require.True(t, strings.HasPrefix(key, "redisson_unlock_latch:{"), key)
		}
	}
}
