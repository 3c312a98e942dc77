package redisson

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
)

// woken is by when a waiter that was told of the release must have the lock, far below all times
// after which they ask by themselves.
const woken = 15 * time.Second

var kinds = []string{"plain", "fair", "fenced", "read", "write"}

// against returns the kind that excludes kind.
func against(kind string) string {
	if kind == "read" {
		return "write"
	}
	return kind
}

// strange are names that Redisson's rules for keys and channels treat differently, and characters
// that mean something somewhere.
var strange = []string{"", "{tag}", ":half{", " \r\n'\"$\\%", "ключ锁"}

func javaIsWokenByGo(t *testing.T, s *stage) {
	for _, kind := range kinds {
		for _, more := range strange {
			name := fresh()
			channels := name + "*"
			name += more
			l, a := lockOf(s.open(t, long), against(kind), name), someone()
			hold(t, l, a)
			answer := s.java.start(name[:5], "lock", kind, name, -1)
			awaited(t, s.direct, channels, 1)
			require.Eventually(t, func() bool { return s.java.asleep(t, name[:5]) }, patience, time.Millisecond)
			began := time.Now()
			require.NoError(t, l.UnlockContext(a))
			require.Equal(t, "true", soon(t, answer))
			require.Less(t, time.Since(began), woken, "%s %q", kind, name)
			s.java.must(t, name[:5], "unlock", kind, name)
		}
	}
}

// In javaIsWokenWhileGoWaits, a release of ours wakes a waiter of ours, which does not request the
// lock. The message on Redisson's channel then has two zeros, which Redisson reads as 0.
func javaIsWokenWhileGoWaits(t *testing.T, s *stage) {
	for _, kind := range []string{"plain", "fenced"} {
		name := fresh()
		heard := listen(t, s.direct, name)
		l, a := lockOf(s.open(t, long), kind, name), someone()
		hold(t, l, a)
		answer := s.java.start(name, "lock", kind, name, -1)
		require.Eventually(t, func() bool { return s.java.asleep(t, name) }, patience, time.Millisecond)
		list := "locks_waiting:{" + name + "}"
		idle := s.direct.Subscribe(background, list+":idle")
		defer idle.Close()
		_, err := idle.Receive(background)
		require.NoError(t, err)
		s.direct.RPush(background, list, "idle:1")
		began := time.Now()
		require.NoError(t, l.UnlockContext(a))
		require.Equal(t, "true", soon(t, answer))
		require.Less(t, time.Since(began), woken, kind)
		message := "redisson_lock__channel:{" + name + "} 00"
		require.Eventually(t, func() bool { return slices.Contains(heard(), message) }, patience, time.Millisecond)
		s.java.must(t, name, "unlock", kind, name)
	}
}

// aSpinLockOfRedissonTakesTurnsWithOurs has waiters of either side that no release wakes. A spin
// lock of Redisson publishes nothing, and listens to nothing.
func aSpinLockOfRedissonTakesTurnsWithOurs(t *testing.T, s *stage) {
	name := fresh()
	c := s.open(t, long, redislock.WithLeaseOptions(lease.WithPoll(100*time.Millisecond)))
	l, a := c.Mutex(name), someone()
	s.java.must(t, name, "lock", "spin", name, -1)
	ok, err := l.TryLockContext(a)
	require.NoError(t, err)
	require.False(t, ok)
	ours := start(l, a)
	s.java.must(t, name, "unlock", "spin", name)
	require.NoError(t, soon(t, ours), "it polls")
	theirs := s.java.start(name, "lock", "spin", name, -1)
	require.NoError(t, l.UnlockContext(a))
	require.Equal(t, "true", soon(t, theirs))
	s.java.must(t, name, "unlock", "spin", name)
}

func waitersOfBothSidesHaveTheirTurnsAfterReleasesOfEither(t *testing.T, s *stage) {
	for _, kind := range []string{"plain", "fenced"} {
		for _, first := range []string{"go", "java"} {
			name := fresh()
			c := s.open(t, long)
			l, a := lockOf(c, kind, name), someone()
			if first == "go" {
				hold(t, l, a)
			} else {
				s.java.must(t, "first", "lock", kind, name, -1)
			}
			var ours []<-chan error
			var who []context.Context
			var takes []locks.TryLocker
			for range 3 {
				takes, who = append(takes, lockOf(s.open(t, long), kind, name)), append(who, someone())
				ours = append(ours, start(takes[len(takes)-1], who[len(who)-1]))
			}
			answer := s.java.start(name, "lock", kind, name, -1)
			require.Eventually(t, func() bool {
				return s.java.asleep(t, name) && s.direct.LLen(background, "locks_waiting:{"+name+"}").Val() == 3
			}, patience, time.Millisecond)
			began := time.Now()
			if first == "go" {
				require.NoError(t, l.UnlockContext(a))
			} else {
				s.java.must(t, "first", "unlock", kind, name)
			}
			for got := 0; got < 4; got++ {
				select {
				case text := <-answer:
					require.Equal(t, "true", text)
					s.java.must(t, name, "unlock", kind, name)
				case err := <-ours[0]:
					require.NoError(t, err)
					require.NoError(t, takes[0].UnlockContext(who[0]))
				case err := <-ours[1]:
					require.NoError(t, err)
					require.NoError(t, takes[1].UnlockContext(who[1]))
				case err := <-ours[2]:
					require.NoError(t, err)
					require.NoError(t, takes[2].UnlockContext(who[2]))
				}
			}
			require.Less(t, time.Since(began), woken, "%s, first %s", kind, first)
		}
	}
}

func goIsWokenByJava(t *testing.T, s *stage) {
	for _, kind := range kinds {
		for _, more := range strange {
			name := fresh()
			channels := name + "*"
			name += more
			s.java.must(t, name[:5], "lock", against(kind), name, -1)
			l, a := lockOf(s.open(t, long), kind, name), someone()
			answer := start(l, a)
			awaited(t, s.direct, channels, 1)
			began := time.Now()
			s.java.must(t, name[:5], "unlock", against(kind), name)
			require.NoError(t, soon(t, answer))
			require.Less(t, time.Since(began), woken, "%s %q", kind, name)
			require.NoError(t, l.UnlockContext(a))
		}
	}
}

func holdsOfEitherSideAreCountedToTheLast(t *testing.T, s *stage) {
	for _, kind := range []string{"plain", "fair", "fenced", "write", "read"} {
		name := fresh()
		c := s.open(t, long)
		l, rival := lockOf(c, kind, name), lockOf(c, against(kind), name)
		if kind == "read" {
			rival = lockOf(c, "write", name)
		}
		a := someone()
		const n = 3
		for i := range n {
			s.java.must(t, "a", "lock", kind, name, -1)
			require.Equal(t, strconv.Itoa(i+1), s.java.ask(t, "a", "count", kind, name))
		}
		for range n {
			require.False(t, try(t, rival, a))
			s.java.must(t, "a", "unlock", kind, name)
		}
		require.Equal(t, "0", s.java.ask(t, "a", "count", kind, name))
		for range n {
			require.True(t, try(t, l, a))
		}
		against := against(kind)
		for range n {
			require.Equal(t, "false", s.java.ask(t, "b", "try", against, name, 0, -1))
			require.Equal(t, "true", s.java.ask(t, "b", "locked", kind, name))
			require.Equal(t, "false", s.java.ask(t, "b", "held", kind, name))
			require.Equal(t, "0", s.java.ask(t, "b", "count", kind, name))
			require.NoError(t, l.UnlockContext(a))
		}
		require.Equal(t, "true", s.java.ask(t, "b", "try", against, name, 0, -1))
		s.java.must(t, "b", "unlock", against, name)
	}
}

func aFairLockServesBothSidesInOrderOfArrival(t *testing.T, s *stage) {
	for _, first := range []string{"go", "java"} {
		name := fresh()
		holder, a := s.open(t, long).FairMutex(name), someone()
		if first == "go" {
			hold(t, holder, a)
		} else {
			s.java.must(t, "a", "lock", "fair", name, -1)
		}
		type turn struct {
			who     int
			release func()
		}
		turns := make(chan turn, 6)
		for i := range 6 {
			if i%2 == 0 {
				l, b := s.open(t, long).FairMutex(name), someone()
				go func() {
					if l.LockContext(b) == nil {
						turns <- turn{i, func() { require.NoError(t, l.UnlockContext(b)) }}
					}
				}()
			} else {
				thread := fmt.Sprint(name, i)
				answer := s.java.start(thread, "lock", "fair", name, -1)
				go func() {
					if <-answer == "true" {
						turns <- turn{i, func() { s.java.must(t, thread, "unlock", "fair", name) }}
					}
				}()
			}
			require.Eventually(t, func() bool {
				return s.direct.LLen(background, "redisson_lock_queue:{"+name+"}").Val() == int64(i+1)
			}, patience, time.Millisecond)
		}
		awaited(t, s.direct, name, 6)
		require.False(t, try(t, s.open(t, long).FairMutex(name), someone()))
		require.Equal(t, "false", s.java.ask(t, "b", "try", "fair", name, 0, -1))
		if first == "go" {
			require.NoError(t, holder.UnlockContext(a))
		} else {
			s.java.must(t, "a", "unlock", "fair", name)
		}
		for i := range 6 {
			now := soon(t, turns)
			require.Equal(t, i, now.who)
			require.Empty(t, turns)
			now.release()
		}
	}
}

func aWaiterThatGivesUpLeavesTheFairQueueToTheOthers(t *testing.T, s *stage) {
	name := fresh()
	queue := "redisson_lock_queue:{" + name + "}"
	queued := func(n int64) {
		t.Helper()
		require.Eventually(t, func() bool { return s.direct.LLen(background, queue).Val() == n }, patience,
			time.Millisecond)
	}
	holder, a := s.open(t, long).FairMutex(name), someone()
	hold(t, holder, a)
	ctx, cancel := context.WithCancel(someone())
	defer cancel()
	quits := start(s.open(t, long).FairMutex(name), ctx)
	queued(1)
	java := s.java.start(name+"a", "lock", "fair", name, -1)
	queued(2)
	gone := s.java.start(name+"b", "try", "fair", name, 500, -1)
	queued(3)
	last, b := s.open(t, long).FairMutex(name), someone()
	got := start(last, b)
	queued(4)
	require.Equal(t, "false", soon(t, gone))
	queued(3)
	cancel()
	require.ErrorIs(t, soon(t, quits), context.Canceled)
	queued(2)
	awaited(t, s.direct, name, 2)
	require.NoError(t, holder.UnlockContext(a))
	require.Equal(t, "true", soon(t, java))
	s.java.must(t, name+"a", "unlock", "fair", name)
	require.NoError(t, soon(t, got))
	require.NoError(t, last.UnlockContext(b))
}

func readersOfBothSidesReadTogetherAndKeepWritersOut(t *testing.T, s *stage) {
	name := fresh()
	c, d := s.open(t, long), s.open(t, long)
	a, b := someone(), someone()
	hold(t, lockOf(c, "read", name), a)
	hold(t, lockOf(d, "read", name), b)
	s.java.must(t, "a", "lock", "read", name, -1)
	s.java.must(t, "b", "try", "read", name, 0, -1)
	// Redisson misses a writer's release between its own request and its sleep. It sleeps no
	// longer than the lease.
	goWriter, o := lockOf(s.open(t, long/3), "write", name), someone()
	goWrites := start(goWriter, o)
	javaWrites := s.java.start(name, "lock", "write", name, -1)
	awaited(t, s.direct, name, 1)
	require.Eventually(t, func() bool { return s.java.asleep(t, name) }, patience, time.Millisecond)
	require.NoError(t, lockOf(c, "read", name).UnlockContext(a))
	s.java.must(t, "a", "unlock", "read", name)
	require.NoError(t, lockOf(d, "read", name).UnlockContext(b))
	require.False(t, try(t, lockOf(d, "write", name), someone()), "Java still reads")
	require.Empty(t, goWrites)
	require.Empty(t, javaWrites)
	s.java.must(t, "b", "unlock", "read", name)
	for range 2 {
		select {
		case err := <-goWrites:
			require.NoError(t, err)
			require.Equal(t, "false", s.java.ask(t, "a", "try", "read", name, 0, -1))
			require.NoError(t, goWriter.UnlockContext(o))
		case answer := <-javaWrites:
			require.Equal(t, "true", answer)
			require.False(t, try(t, lockOf(d, "read", name), someone()))
			s.java.must(t, name, "unlock", "write", name)
		case <-time.After(patience):
			t.Fatal("no writer gets the lock")
		}
	}
}

func tokensIncreaseFromHolderToHolder(t *testing.T, s *stage) {
	name := fresh()
	c := s.open(t, long)
	l := lockOf(c, "fenced", name)
	last := uint64(0)
	for i := range 20 {
		var token uint64
		if i%2 == 0 {
			a := someone()
			token = hold(t, l, a).Token()
			require.True(t, try(t, l, a))
			require.NoError(t, l.UnlockContext(a))
			require.NoError(t, l.UnlockContext(a))
		} else {
			var err error
			token, err = strconv.ParseUint(s.java.ask(t, "a", "token", "fenced", name), 10, 64)
			require.NoError(t, err)
			again, err := strconv.ParseUint(s.java.ask(t, "a", "token", "fenced", name), 10, 64)
			require.NoError(t, err)
			require.Greater(t, again, token, "Redisson gives one for each entry")
			s.java.must(t, "a", "unlock", "fenced", name)
			s.java.must(t, "a", "unlock", "fenced", name)
			require.Greater(t, token, last)
			token = again
		}
		require.Greater(t, token, last)
		last = token
	}
}

func multiLocksExcludeEachOther(t *testing.T, s *stage) {
	name := fresh()
	names := []string{name + "a", name + "b", name + "c"} // in the order in which locks.Multi takes them
	all := names[0] + "," + names[1] + "," + names[2]
	c := s.open(t, long)
	m, a := locks.Multi(c.Mutex(names[2]), c.Mutex(names[0]), c.Mutex(names[1])), someone()

	// Ours holds all.
	require.NoError(t, m.LockContext(a))
	require.Equal(t, "false", s.java.ask(t, "a", "try", "multi", all, 0, -1))
	for _, n := range names {
		require.Equal(t, "false", s.java.ask(t, "a", "try", "plain", n, 0, -1))
	}
	answer := s.java.start(name, "lock", "multi", all, -1)
	awaited(t, s.direct, name, 1)
	require.NoError(t, m.UnlockContext(a))
	require.Equal(t, "true", soon(t, answer))

	// Redisson holds all.
	require.False(t, try(t, m, a))
	for _, n := range names {
		require.False(t, try(t, c.Mutex(n), a))
	}
	got := start(m, a)
	awaited(t, s.direct, name, 1)
	s.java.must(t, name, "unlock", "multi", all)
	require.NoError(t, soon(t, got))
	require.NoError(t, m.UnlockContext(a))

	// Java holds one member: the Multi gets none.
	s.java.must(t, "a", "lock", "plain", names[1], -1)
	require.False(t, try(t, m, a))
	require.Zero(t, s.direct.Exists(background, names[0], names[2]).Val())
	s.java.must(t, "a", "unlock", "plain", names[1])
	hold(t, c.Mutex(names[1]), a)
	require.Equal(t, "false", s.java.ask(t, "a", "try", "multi", all, 0, -1))
	require.Zero(t, s.direct.Exists(background, names[0], names[2]).Val())
	require.NoError(t, c.Mutex(names[1]).UnlockContext(a))
}

func onlyTheOwnerCanUnlock(t *testing.T, s *stage) {
	for _, kind := range kinds {
		name := fresh()
		c, d := s.open(t, long), s.open(t, long)
		l, a := lockOf(c, kind, name), someone()
		h := hold(t, l, a)
		state := s.direct.HGetAll(background, name).Val()
		require.Equal(t, "false", s.java.ask(t, "a", "unlock", kind, name))
		require.ErrorIs(t, lockOf(d, kind, name).UnlockContext(a), locks.ErrNotHeld)
		require.ErrorIs(t, l.UnlockContext(someone()), locks.ErrNotHeld)
		require.Equal(t, state, s.direct.HGetAll(background, name).Val())
		require.NoError(t, h.Err())
		require.NoError(t, l.UnlockContext(a))

		s.java.must(t, "a", "lock", kind, name, -1)
		state = s.direct.HGetAll(background, name).Val()
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
		require.Equal(t, "false", s.java.ask(t, "b", "unlock", kind, name))
		require.Equal(t, state, s.direct.HGetAll(background, name).Val())
		s.java.must(t, "a", "unlock", kind, name)
	}
}

func aLostLockIsReportedAndNotTakenFromItsNextHolder(t *testing.T, s *stage) {
	t.Parallel()
	for _, kind := range []string{"plain", "fair", "fenced", "write"} {
		// Redisson takes it from ours by force.
		name := fresh()
		l, a := lockOf(s.open(t, brief), kind, name), someone()
		h := hold(t, l, a)
		s.java.must(t, "a", "force", kind, name)
		s.java.must(t, "a", "lock", kind, name, -1)
		soon(t, h.Lost())
		require.ErrorIs(t, h.Err(), locks.ErrLost)
		require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
		require.Equal(t, "true", s.java.ask(t, "a", "held", kind, name))
		s.java.must(t, "a", "unlock", kind, name)

		// The lease of Redisson's is over, and ours has it.
		s.java.must(t, "a", "lock", kind, name, 300)
		h = hold(t, l, a)
		require.Equal(t, "false", s.java.ask(t, "a", "held", kind, name))
		require.Equal(t, "false", s.java.ask(t, "a", "unlock", kind, name))
		require.NoError(t, h.Err())
		require.EqualValues(t, 1, s.direct.Exists(background, name).Val())
		require.NoError(t, l.UnlockContext(a))
	}
}

func ourWaiterIsWokenWhenRedissonForcesAnUnlock(t *testing.T, s *stage) {
	for _, kind := range kinds {
		name := fresh()
		s.java.must(t, "a", "lock", against(kind), name, -1)
		l, a := lockOf(s.open(t, long), kind, name), someone()
		got := start(l, a)
		awaited(t, s.direct, name, 1)
		began := time.Now()
		s.java.must(t, "b", "force", against(kind), name)
		require.NoError(t, soon(t, got))
		require.Less(t, time.Since(began), woken)
		require.Equal(t, "false", s.java.ask(t, "a", "unlock", against(kind), name))
		require.NoError(t, l.UnlockContext(a))
	}
}

// aWaiterOfAReadWriteLockIsWokenByEitherSide has readers and writers of both sides wait
// for a holder of either side and half. Each release lets in one waiting writer or all waiting
// readers, long before their poll interval is over. They hold the lock until the others wait
// again: the last of the readers wakes one thread of each Java process, a writer wakes all.
//
// From the second release on, this is true of our waiters only. A thread of Redisson that seems to
// be asleep may have heard the release before. The thread then misses the next release, until its
// time is over. Redisson's threads either all read or all write, because the threads of a process
// share a semaphore. A thread that wakes in vain and waits again takes the permit of another
// thread.
func aWaiterOfAReadWriteLockIsWokenByEitherSide(t *testing.T, s *stage) {
	if s.version == before {
		return // on a busy machine one of so many waiters misses a message now and then
	}
	for _, c := range []struct{ holder, threads string }{
		{"go read", "write"}, {"java read", "write"}, // readers need not wait
		{"go write", "write"}, {"java write", "write"},
		{"go write", "read"}, {"java write", "read"},
	} {
		t.Run(c.holder+" before threads that "+c.threads, func(t *testing.T) {
			name := fresh()
			type party struct {
				kind, thread string // no thread: ours
				got          chan bool
				unlock       func()
			}
			unlock := func(kind, thread string, l locks.Locker, ctx context.Context) func() {
				return func() {
					if thread != "" {
						s.java.must(t, thread, "unlock", kind, name)
					} else {
						require.NoError(t, l.UnlockContext(ctx))
					}
				}
			}
			side, half, _ := strings.Cut(c.holder, " ")
			first := party{kind: half}
			if side == "java" {
				first.thread = name + "first"
				s.java.must(t, first.thread, "lock", half, name, -1)
				first.unlock = unlock(half, first.thread, nil, nil)
			} else {
				l, a := lockOf(s.open(t, long), half, name), someone()
				hold(t, l, a)
				first.unlock = unlock(half, "", l, a)
			}
			parked := make(map[*party]bool)
			asleep := func() {
				t.Helper()
				n := 0
				for p := range parked {
					if p.thread == "" {
						n++
						continue
					}
					require.Eventually(t, func() bool { return len(p.got) > 0 || s.java.asleep(t, p.thread) },
						patience, time.Millisecond)
				}
				require.Eventually(t, func() bool { // one connection for each of ours, one for Java
					channel := "redisson_rwlock:{" + name + "}"
					return s.direct.PubSubNumSub(background, channel).Val()[channel] >= int64(n)
				}, patience, time.Millisecond)
			}
			for i := range 8 {
				p := &party{kind: "write", got: make(chan bool, 1)}
				switch {
				case i%2 == 0:
					p.kind = c.threads
				case i >= 4 && half == "write":
					p.kind = "read"
				}
				if i%2 == 0 {
					p.thread = fmt.Sprint(name, "-", i)
					answer := s.java.start(p.thread, "lock", p.kind, name, -1)
					p.unlock = unlock(p.kind, p.thread, nil, nil)
					go func() { p.got <- <-answer == "true" }()
				} else {
					l, a := lockOf(s.open(t, long), p.kind, name), someone()
					p.unlock = unlock(p.kind, "", l, a)
					go func() { p.got <- l.LockContext(a) == nil }()
				}
				parked[p] = true
			}
			// the owners that have the lock by now, or none yet
			entered := func() (in []*party) {
				for p := range parked {
					select {
					case ok := <-p.got:
						require.True(t, ok)
						delete(parked, p)
						in = append(in, p)
					default:
					}
				}
				return in
			}
			inside := []*party{&first}
			for again := false; len(parked) > 0; again = true {
				asleep()
				for _, p := range entered() { // late
					require.Equal(t, "read", p.kind)
					require.Equal(t, "read", inside[0].kind)
					inside = append(inside, p)
				}
				for _, p := range inside {
					p.unlock()
				}
				inside = nil
				limit := long + woken
				for p := range parked {
					if !again || p.thread == "" {
						limit = woken
					}
				}
				ok := assert.Eventually(t, func() bool {
					inside = append(inside, entered()...)
					for p := range parked {
						if len(inside) > 0 && inside[0].kind == "read" && p.kind == "read" &&
							(!again || p.thread == "") {
							return false // the others read as well
						}
					}
					return len(inside) > 0 || len(parked) == 0
				}, limit, time.Millisecond, "nobody, or not everybody who reads, is woken")
				if !ok {
					for p := range parked {
						t.Logf("waits after an earlier release %v: %s %s", again, p.kind, p.thread)
					}
					t.Fatalf("%d are inside", len(inside))
				}
				if len(inside) > 0 && inside[0].kind == "write" {
					require.Len(t, inside, 1)
				}
			}
			for _, p := range inside {
				p.unlock()
			}
		})
	}
}
