//go:build unix

package shmlock_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/shmlock"
	"github.com/jucgo/locks/internal/test/testbed"
	"github.com/jucgo/locks/lockstest"
)

func TestTheWordConforms(t *testing.T) {
	lockstest.TestTryLocker(t, lockstest.Config{
		New:         func(tb testing.TB) locks.TryLocker { return open(tb, somewhere(tb)) },
		Reentrant:   true,
		FIFO:        true,
		SpuriousTry: true, // while another attempt fails
		Waiting:     func(l locks.TryLocker) int { return l.(*shmlock.Mutex).QueueLength() },
	})
}

// pair has the locks of two mappings of one file. They act on each other like the locks of two
// processes. Each owner uses one of them.
type pair struct {
	mu     sync.Mutex
	ls     [2]*shmlock.Mutex
	owners map[locks.Owner]int
}

func (p *pair) of(ctx context.Context) *shmlock.Mutex {
	if ctx == nil {
		ctx = background
	}
	o := locks.CurrentOwner(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	i, ok := p.owners[o]
	if !ok {
		i = len(p.owners) % 2
		p.owners[o] = i
	}
	return p.ls[i]
}

// seen has the race detector know that the word was taken: it does not watch memory that is
// mapped.
func (p *pair) seen() {
	p.mu.Lock()
	defer p.mu.Unlock()
}

func (p *pair) LockContext(ctx context.Context) error {
	defer p.seen()
	return p.of(ctx).LockContext(ctx)
}

func (p *pair) TryLockContext(ctx context.Context) (bool, error) {
	defer p.seen()
	return p.of(ctx).TryLockContext(ctx)
}

func (p *pair) UnlockContext(ctx context.Context) error { return p.of(ctx).UnlockContext(ctx) }

func TestTwoMappingsOfAWordConform(t *testing.T) {
	lockstest.TestTryLocker(t, lockstest.Config{
		New: func(tb testing.TB) locks.TryLocker {
			path := somewhere(tb)
			return &pair{ls: [2]*shmlock.Mutex{open(tb, path), open(tb, path)}, owners: make(map[locks.Owner]int)}
		},
		Reentrant:   true,
		SpuriousTry: true, // while another attempt fails
		Settle:      10 * time.Millisecond,
		Rounds:      50,
	})
}

// The race detector fails it if it does not see one happen before the other.
func TestAReleaseHappensBeforeAnotherMappingsAcquisition(t *testing.T) {
	path := somewhere(t)
	n := 0
	var wg sync.WaitGroup
	for range 2 {
		s := open(t, path)
		wg.Go(func() {
			for range 500 {
				require.NoError(t, s.LockContext(background))
				n++
				require.NoError(t, s.UnlockContext(background))
			}
		})
	}
	wg.Wait()
	require.Equal(t, 1000, n)
}

func TestWordsOfProcessesExcludeEachOther(t *testing.T) {
	path := somewhere(t)
	l, c := open(t, path), serving(t, path)
	a := someone()
	take(t, l, a)
	require.False(t, l.Recovered(a))
	require.Equal(t, "false", ask(c, "try"))
	require.NoError(t, l.UnlockContext(a))
	require.Equal(t, "true", ask(c, "try"))
	require.False(t, tries(t, l, a))
	done := waits(t, l, a)
	require.Equal(t, "<nil>", ask(c, "unlock"))
	require.NoError(t, soon(t, done))
	require.NoError(t, l.UnlockContext(a))
}

func TestTheWordOfTheKilledIsTakenOver(t *testing.T) {
	path := somewhere(t)
	l := open(t, path)
	a := someone()
	for name, get := range map[string]func(kill func()){
		"one who waits": func(kill func()) {
			done := waits(t, l, a)
			kill()
			require.NoError(t, soon(t, done))
		},
		"one who comes": func(kill func()) { kill(); take(t, l, a) },
		"one who tries": func(kill func()) { kill(); require.True(t, tries(t, l, a)) },
	} {
		c := serving(t, path)
		require.Equal(t, "<nil>", ask(c, "lock"), name)
		get(c.Kill)
		require.True(t, l.Recovered(a), name)
		require.False(t, l.Recovered(someone()), name)
		require.NoError(t, l.UnlockContext(a), name)
		take(t, l, a)
		require.False(t, l.Recovered(a), name)
		require.NoError(t, l.UnlockContext(a), name)
	}
}

func TestALaterProcessRecoversADeadOnesWord(t *testing.T) {
	for _, again := range []bool{false, true} { // opened in between by a process that does not lock
		path := somewhere(t)
		c := serving(t, path)
		require.Equal(t, "<nil>", ask(c, "lock"))
		c.Kill() // nobody has the file open
		if again {
			l, err := shmlock.Open(path)
			require.NoError(t, err)
			require.NoError(t, l.Close(background))
		}
		l := open(t, path)
		require.True(t, tries(t, l, background))
		require.True(t, l.Recovered(background), "opened in between: %t", again)
		require.NoError(t, l.UnlockContext(background))
		take(t, l, background)
		require.False(t, l.Recovered(background), "one holder recovers")
		require.NoError(t, l.UnlockContext(background))
		require.NoError(t, l.Close(background))
		l = open(t, path)
		take(t, l, background)
		require.False(t, l.Recovered(background), "the last holder released it")
		require.NoError(t, l.UnlockContext(background))
	}
}

func TestAStoppedProcessKeepsTheWord(t *testing.T) {
	path := somewhere(t)
	l, c := open(t, path), serving(t, path)
	require.Equal(t, "<nil>", ask(c, "lock"))
	c.Pause()
	ctx, cancel := context.WithTimeout(background, 300*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
	require.False(t, tries(t, l, background))
	c.Resume()
	require.Equal(t, "<nil>", ask(c, "unlock"))
	take(t, l, background)
	require.NoError(t, l.UnlockContext(background))
}

func TestAKilledOrStoppedWaiterBlocksNobody(t *testing.T) {
	path := somewhere(t)
	l, c, d := open(t, path), serving(t, path), serving(t, path)
	a := someone()
	take(t, l, a)
	c.Say("lock")
	d.Say("lock")
	time.Sleep(100 * time.Millisecond) // most likely both sleep: if not, the test sees less
	c.Pause()
	require.NoError(t, l.UnlockContext(a))
	// Whichever of the two is woken, d gets it.
	select {
	case line := <-d.Lines():
		require.Equal(t, "<nil>", line)
		require.Equal(t, "<nil>", ask(d, "unlock"))
	case <-time.After(30 * time.Second):
		// Where Pause does not wait until c has stopped, c may have got it before.
		require.NotEqual(t, "linux", runtime.GOOS, "a stopped waiter blocks another")
		c.Resume()
		require.Equal(t, "<nil>", c.Line())
		require.Equal(t, "<nil>", ask(c, "unlock"))
		require.Equal(t, "<nil>", d.Line())
		require.Equal(t, "<nil>", ask(d, "unlock"))
	}
	c.Kill()
	take(t, l, a)
	require.NoError(t, l.UnlockContext(a))
}

func TestCancelledWaitersForTheWordLeaveNothing(t *testing.T) {
	path := somewhere(t)
	l, c := open(t, path), serving(t, path)
	require.Equal(t, "<nil>", ask(c, "lock"))
	for range 20 {
		ctx, cancel := context.WithCancel(background)
		done := make(chan error, 50)
		for range 50 {
			go func() { done <- l.LockContext(ctx) }()
		}
		time.Sleep(rand.N(10 * time.Millisecond)) // at any point
		cancel()
		for range 50 {
			require.ErrorIs(t, soon(t, done), context.Canceled)
		}
	}
	require.Equal(t, "<nil>", ask(c, "unlock"))
	require.Equal(t, "true", ask(c, "try"), "no lock comes late")
}

func TestCloseOfAWordEndsHoldsAndWaits(t *testing.T) {
	path := somewhere(t)
	l, other, c := open(t, path), open(t, path), serving(t, path)
	a, b := someone(), someone()
	take(t, l, a)
	take(t, l, a)
	waiter := waits(t, l, b)
	word := waits(t, other, b)
	require.NoError(t, other.Close(background))
	require.ErrorIs(t, soon(t, word), locks.ErrClosed)
	require.NoError(t, l.Close(background))
	require.Equal(t, "true", ask(c, "try"))
	require.ErrorIs(t, l.LockContext(a), locks.ErrLost)
	require.ErrorContains(t, l.UnlockContext(b), fmt.Sprintf(": the lock is lost, but not unlocked, by %v of", locks.CurrentOwner(a)))
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrNotHeld)
	require.ErrorIs(t, soon(t, waiter), locks.ErrClosed)
	require.ErrorIs(t, l.LockContext(a), locks.ErrClosed)
	require.NoError(t, l.Close(background))
}

func TestAWordIsNotMadeOfSomethingElse(t *testing.T) {
	path := somewhere(t)
	for _, text := range []string{"my diary", string(make([]byte, 5000)), string(make([]byte, 4096-8)) + "my diary"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := shmlock.Open(path)
		require.ErrorIs(t, err, locks.ErrForeign)
		now, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, text, string(now))
	}
	require.NoError(t, os.WriteFile(path, make([]byte, 100), 0o600)) // what one leaves who dies while making it
	open(t, path)
	_, err := shmlock.Open(filepath.Dir(path))
	require.ErrorIs(t, err, locks.ErrForeign)
}

func TestTicketsUnderAWordAreSoldOnce(t *testing.T) {
	retries := testbed.Tickets{Role: "buy", Args: []string{somewhere(t)}}.Run(t)
	require.Equal(t, []int{0, 0, 0, 0}, retries)
}

func TestAStormOnTheWordSurvivesDeadHolders(t *testing.T) {
	path := somewhere(t)
	l := open(t, path)
	storm := make([]*testbed.Process, 4)
	for i := range storm {
		storm[i] = serving(t, path)
		require.Equal(t, "hogging", ask(storm[i], "hog"))
	}
	a := someone()
	for i := range 12 { // each is killed at some moment, and another takes its place
		take(t, l, a)
		require.NoError(t, l.UnlockContext(a))
		storm[i%4].Kill()
		storm[i%4] = serving(t, path)
		require.Equal(t, "hogging", ask(storm[i%4], "hog"))
	}
	for _, c := range storm {
		c.Kill()
	}
	take(t, l, a)
	require.NoError(t, l.UnlockContext(a))
}

func TestAnUncontendedPairAllocatesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	l := open(t, somewhere(t))
	pair := func() {
		_ = l.LockContext(ctx)
		_ = l.UnlockContext(ctx)
	}
	for range 10 { // what is kept for later is made
		pair()
	}
	require.Zero(t, testing.AllocsPerRun(200, pair))
	take(t, l, background)
	require.Zero(t, testing.AllocsPerRun(200, pair), "re-entry")
	require.NoError(t, l.UnlockContext(background))
}

// A process that has had its share of turns gives way, but only where it can wait.
func TestATryAcquiresAfterManyTurns(t *testing.T) {
	path := somewhere(t)
	l, other := open(t, path), open(t, path)
	b := someone()
	for range 100 {
		require.True(t, tries(t, l, background))
		require.NoError(t, l.UnlockContext(background))
	}
	take(t, l, background)
	done := waits(t, other, b)
	require.NoError(t, l.UnlockContext(background))
	require.NoError(t, soon(t, done))
	require.NoError(t, other.UnlockContext(b))
	for range 100 {
		require.True(t, tries(t, l, background))
		require.NoError(t, l.UnlockContext(background))
	}
}

func TestAnUnlockElsewhereNamesTheHolderAndTheRemedy(t *testing.T) {
	a, b := locks.NewOwner(), locks.NewOwner()
	l, first := open(t, somewhere(t)), locks.WithOwner(t.Context(), a)
	require.NoError(t, l.LockContext(first))
	err := l.UnlockContext(locks.WithOwner(t.Context(), b))
	require.EqualError(t, err, fmt.Sprintf("shmlock: unlock %q: lock not held by the caller, %v: the lock is held by %v of "+
		"this process; a hold belongs to the goroutine that acquired it, or to an owner (locks.WithOwner)", l.Path(), b, a))
	require.ErrorIs(t, err, locks.ErrNotHeld)
	require.NoError(t, l.UnlockContext(first))
}

func TestErrorsSayWhatWasAttemptedOnWhichLock(t *testing.T) {
	l, a := open(t, somewhere(t)), someone()
	err := l.UnlockContext(a)
	require.EqualError(t, err, fmt.Sprintf("shmlock: unlock %q: lock not held by the caller: the lock has no holder here; another process may hold it", l.Path()))
	require.ErrorIs(t, err, locks.ErrNotHeld)
	_, err = shmlock.Open("")
	require.EqualError(t, err, `shmlock: open "": empty path`)
	require.NoError(t, l.Close(a))
	_, err = l.TryLockContext(a)
	require.EqualError(t, err, fmt.Sprintf("shmlock: try lock %q: client closed", l.Path()))
	require.ErrorIs(t, err, locks.ErrClosed)
}
