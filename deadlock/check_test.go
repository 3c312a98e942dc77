package deadlock_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/deadlock"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/semaphore"
	"github.com/jucgo/locks/spin"
	"github.com/jucgo/locks/synchronizer"
)

// tb is a test whose end and failures the real test sees.
type tb struct {
	cleanups []func()
	failures []string
}

func (t *tb) Helper()          {}
func (t *tb) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
func (t *tb) Errorf(format string, args ...any) {
	t.failures = append(t.failures, fmt.Sprintf(format, args...))
}

// end ends the test, and returns its failures.
func (t *tb) end() []string {
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
	return t.failures
}

// waits returns when n goroutines wait for m.
func waits(t *testing.T, m *reentrant.Mutex, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return m.QueueLength() == n }, time.Minute, time.Millisecond)
}

// logged is a tb with a log.
type logged struct {
	tb
	lines []string
}

func (t *logged) Logf(format string, args ...any) {
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}

func TestCheckSaysOnceWhichLocksItDoesNotSee(t *testing.T) {
	deadlock.Forget()
	var first, second logged
	for _, test := range []*logged{&first, &second} {
		deadlock.Check(test)
		var m fair.Mutex
		m.Lock()
		m.Unlock()
		require.Empty(t, test.end())
	}
	require.Len(t, first.lines, 1)
	require.Contains(t, first.lines[0], "does not see waits for locks without owners")
	require.Contains(t, first.lines[0], "fair")
	require.Empty(t, second.lines)
}

func TestCheckNamesEveryLockThatItDoesNotSee(t *testing.T) {
	deadlock.Forget()
	var before, after logged
	deadlock.Check(&before)
	require.Empty(t, before.end())

	deadlock.Check(&after)
	var l rwlock.StampedLock
	s := l.WriteLock()
	go func() { l.UnlockRead(l.ReadLock()) }()
	require.Eventually(t, l.HasQueued, time.Minute, time.Millisecond)
	l.UnlockWrite(s)
	require.Empty(t, after.end())
	for _, name := range []string{"fair", "rwlock.StampedLock", "semaphore", "spin", "synchronizer"} {
		require.Contains(t, strings.Join(slices.Concat(before.lines, after.lines), "\n"), name)
	}
}

type rules struct{}

func (rules) Acquire(w, _ uint64) (uint64, bool) { return w, true }
func (rules) Release(w, _ uint64) (uint64, bool) { return w, true }

// The packages of these locks name themselves when the program starts.
var (
	_ semaphore.Weighted
	_ spin.Mutex
	_ synchronizer.Sync[rules]
)

func TestCheckFailsATestWithACycle(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var a, b reentrant.Mutex
	var done, hold sync.WaitGroup
	hold.Add(2)
	cross := func(first, second *reentrant.Mutex) {
		first.Lock()
		defer first.Unlock()
		hold.Done()
		hold.Wait()
		if second.LockContext(ctx) == nil {
			second.Unlock()
		}
	}
	test := new(tb)
	deadlock.Check(test)
	done.Go(func() { cross(&a, &b) })
	done.Go(func() { cross(&b, &a) })
	waits(t, &a, 1)
	waits(t, &b, 1)
	failures := test.end()
	cancel()
	done.Wait()
	require.Len(t, failures, 1)
	require.Contains(t, failures[0], "deadlock of 2")
	require.Contains(t, failures[0], "reentrant.Mutex")
}

func TestCheckFailsATestWithAnOrphan(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var m reentrant.Mutex
	test := new(tb)
	deadlock.Check(test)
	gone := make(chan struct{})
	go func() { defer close(gone); m.Lock() }()
	<-gone
	var done sync.WaitGroup
	done.Go(func() { _ = m.LockContext(ctx) })
	waits(t, &m, 1)
	var failures []string
	require.Eventually(t, func() bool { // the goroutine ends soon after gone is closed
		test.failures = nil
		failures = test.end()
		return len(failures) > 0
	}, time.Minute, time.Millisecond)
	cancel()
	done.Wait()
	require.Len(t, failures, 1)
	require.Contains(t, failures[0], "orphan: ")
}

func TestCheckPassesATestThatEndsWell(t *testing.T) {
	deadlock.Check(t)
	ctx, cancel := context.WithCancel(t.Context())
	var m reentrant.Mutex
	test := new(tb)
	deadlock.Check(test)
	m.Lock()
	var done sync.WaitGroup
	done.Go(func() { _ = m.LockContext(ctx) })
	waits(t, &m, 1)
	require.Empty(t, test.end(), "a wait for a goroutine that runs is no cycle")
	cancel()
	done.Wait()
	m.Unlock()
}

func TestCheckToleratesTheCycleOfEarlierTests(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	leave := func() {
		var locks [2]reentrant.Mutex
		var hold sync.WaitGroup
		hold.Add(2)
		for i := range locks {
			done.Go(func() {
				first, second := &locks[i], &locks[1-i]
				first.Lock()
				defer first.Unlock()
				hold.Done()
				hold.Wait()
				if second.LockContext(ctx) == nil {
					second.Unlock()
				}
			})
		}
		waits(t, &locks[0], 1)
		waits(t, &locks[1], 1)
	}
	leave()
	innocent, guilty := new(tb), new(tb)
	deadlock.Check(innocent)
	passed := innocent.end()
	deadlock.Check(guilty)
	leave()
	failed := guilty.end()
	cancel()
	done.Wait()
	require.Empty(t, passed)
	require.Len(t, failed, 1, "only its own cycle")
}

func TestCheckToleratesTheOrphanOfEarlierTests(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var m reentrant.Mutex
	gone := make(chan struct{})
	go func() { defer close(gone); m.Lock() }()
	<-gone
	var done sync.WaitGroup
	done.Go(func() { _ = m.LockContext(ctx) })
	require.Eventually(t, func() bool { return len(deadlock.Orphans()) == 1 }, time.Minute, time.Millisecond)
	test := new(tb)
	deadlock.Check(test)
	failures := test.end()
	cancel()
	done.Wait()
	require.Empty(t, failures)
}
