package caslock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/caslock"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// costs fails unless the server has had these requests since the last call.
func costs(t *testing.T, s *server, loads, swaps int, what string) {
	t.Helper()
	l, w := s.requests()
	require.Equal(t, [2]int{loads, swaps}, [2]int{l, w}, "reads and writes of %s", what)
}

func TestAPairTakesTwoWritesAtMostOneRead(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, s).Mutex("it")
		adaptertest.Pair(t, l)
		costs(t, s, 1, 2, "the first pair")
		adaptertest.Pair(t, l)
		costs(t, s, 0, 2, "a pair whose version is known")
	})
}

func TestAnOldVersionCostsOneWriteInVain(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		a, b := open(t, s).Mutex("it"), open(t, s).Mutex("it")
		adaptertest.Pair(t, a)
		adaptertest.Pair(t, b)
		s.requests()
		adaptertest.Pair(t, a)
		costs(t, s, 1, 3, "a pair after another client's")
		adaptertest.Pair(t, b)
		s.requests()
		adaptertest.Pair(t, a)
		costs(t, s, 1, 2, "a pair after it was surprised")
		adaptertest.Pair(t, a)
		costs(t, s, 1, 2, "a pair that finds that nobody came between")
		adaptertest.Pair(t, a)
		costs(t, s, 0, 2, "the pair after that")
	})
}

func TestALookAtAHeldLockDoesNotCalmAClient(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		a, b := open(t, s).Mutex("it"), open(t, s).Mutex("it")
		adaptertest.Pair(t, a)
		adaptertest.Pair(t, b)
		owner := adaptertest.Owner()
		require.NoError(t, a.LockContext(owner)) // it is surprised
		_, err := a.Inspect(context.Background())
		require.NoError(t, err)
		require.NoError(t, a.UnlockContext(owner))
		s.requests()
		adaptertest.Pair(t, a)
		costs(t, s, 1, 2, "a pair after it was surprised")
	})
}

func TestARenewalIsOneWrite(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		require.NoError(t, open(t, s).Mutex("it").LockContext(adaptertest.Owner()))
		s.requests()
		time.Sleep(time.Hour + time.Second)
		costs(t, s, 0, 360, "an hour")
	})
}

func TestATryOfAHeldLockIsOneRead(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		require.NoError(t, open(t, s).Mutex("it").LockContext(adaptertest.Owner()))
		s.requests()
		held, err := open(t, s).Mutex("it").TryLockContext(adaptertest.Owner())
		require.NoError(t, err)
		require.False(t, held)
		costs(t, s, 1, 0, "a try")
	})
}

func TestATakeoverIsAReadAndAWrite(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		die(t, s, "it")
		l := open(t, s).Mutex("it")
		l.TryLockContext(adaptertest.Owner())
		time.Sleep(2 * term)
		s.requests()
		held, err := l.TryLockContext(adaptertest.Owner())
		require.NoError(t, err)
		require.True(t, held)
		costs(t, s, 1, 1, "a takeover")
	})
}

// waits returns how often a waiter reads in an hour, after it has waited for the time before.
func waits(t *testing.T, s *server, before time.Duration, opts ...caslock.Option) (loads int) {
	t.Helper()
	require.NoError(t, open(t, s).Mutex("it").LockContext(adaptertest.Owner()))
	l := open(t, s, opts...).Mutex("it")
	ctx, cancel := context.WithCancel(adaptertest.Owner())
	defer synctest.Wait()
	defer cancel()
	go l.LockContext(ctx)
	time.Sleep(before)
	s.requests()
	time.Sleep(time.Hour)
	loads, _ = s.requests()
	return loads
}

func TestAWaiterReadsWithGrowingPauses(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		loads := waits(t, s, 20*time.Second)
		require.GreaterOrEqual(t, loads, 720)
		require.LessOrEqual(t, loads, 1440)
	})
}

func TestTheUserSetsThePauses(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		loads := waits(t, s, 4*time.Minute, caslock.WithPolling(time.Second, 20*time.Second))
		require.GreaterOrEqual(t, loads, 180)
		require.LessOrEqual(t, loads, 360)
	})
}

func TestAWaitBeginsWithOneRead(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		require.NoError(t, open(t, s).Mutex("it").LockContext(adaptertest.Owner()))
		l := open(t, s, caslock.WithPolling(time.Minute, time.Minute)).Mutex("it")
		s.requests()
		ctx, cancel := context.WithTimeout(adaptertest.Owner(), time.Second)
		defer cancel()
		require.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
		costs(t, s, 1, 0, "a second's wait")
	})
}

func TestAWaitForAHotLockBeginsWithOneRequest(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, hot{s}, caslock.WithPolling(time.Minute, time.Minute)).Mutex("it")
		ctx, cancel := context.WithTimeout(adaptertest.Owner(), time.Second)
		defer cancel()
		require.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
		costs(t, s, 10, 0, "a second's wait")
	})
}

func TestVersionsOfSeveralLocksAreKnown(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c := open(t, s)
		adaptertest.Pair(t, c.Mutex("a"))
		adaptertest.Pair(t, c.Mutex("b"))
		s.requests()
		adaptertest.Pair(t, c.Mutex("a"))
		adaptertest.Pair(t, c.Mutex("b"))
		costs(t, s, 0, 4, "two pairs")
	})
}

func TestALockIsTriedAgainAtOnceAfterAConflict(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l := open(t, slow{s}).Mutex("it")
		adaptertest.Pair(t, l)
		adaptertest.Pair(t, open(t, s).Mutex("it"))
		began := time.Now()
		require.NoError(t, l.LockContext(adaptertest.Owner()))
		require.Equal(t, 3*time.Second, time.Since(began), "a write in vain, a read and a write")
	})
}

func TestANewHolderMakesPausesShort(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		a := open(t, s, caslock.WithTTL(10_000*time.Hour)).Mutex("it")
		owner := adaptertest.Owner()
		require.NoError(t, a.LockContext(owner))
		ctx, cancel := context.WithCancel(adaptertest.Owner())
		defer synctest.Wait()
		defer cancel()
		b := open(t, s, caslock.WithPolling(time.Millisecond, time.Hour)).Mutex("it")
		go b.LockContext(ctx)
		time.Sleep(100*time.Hour + time.Millisecond)
		require.NoError(t, a.UnlockContext(owner))
		require.NoError(t, a.LockContext(owner)) // the waiter was not told
		s.requests()
		time.Sleep(5 * time.Hour)
		loads, _ := s.requests()
		require.Greater(t, loads, 20)
	})
}

func TestAWaiterIsToldByAWatch(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		owner := adaptertest.Owner()
		l := open(t, s).Mutex("it")
		require.NoError(t, l.LockContext(owner))
		s.requests()
		w := &watching{server: s}
		got := make(chan error, 1)
		go func() { got <- open(t, w).Mutex("it").LockContext(adaptertest.Owner()) }()
		time.Sleep(time.Second)
		costs(t, s, 2, 0, "a wait that begins") // once more because of the watch's first notice
		began := time.Now()
		require.NoError(t, l.UnlockContext(owner))
		require.NoError(t, <-got)
		require.Zero(t, time.Since(began))
		costs(t, s, 1, 2, "a hand-over")
	})
}

func TestAWatchThatEndsIsBegunAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		owner := adaptertest.Owner()
		l := open(t, s).Mutex("it")
		require.NoError(t, l.LockContext(owner))
		w := &watching{server: s, ends: time.Second}
		got := make(chan error, 1)
		go func() {
			got <- open(t, w, caslock.WithPolling(time.Millisecond, time.Hour)).Mutex("it").LockContext(adaptertest.Owner())
		}()
		time.Sleep(10*time.Second + 500*time.Millisecond)
		began := time.Now()
		require.NoError(t, l.UnlockContext(owner))
		require.NoError(t, <-got)
		require.LessOrEqual(t, time.Since(began), time.Millisecond)
	})
}

// openInner returns a client of d, and the driver.Store that it is for package lease.
func openInner(t *testing.T, d caslock.Documents) (c *caslock.Client, inner driver.Store) {
	c = open(t, d, caslock.WithLeaseOptions(lease.WithWrapper(func(of driver.Store) driver.Store {
		inner = of
		return of
	})))
	return c, inner
}

func TestACloseEndsWatchesThatNobodyClosed(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		for _, d := range []caslock.Documents{s, &watching{server: s}} {
			c, inner := openInner(t, d)
			_, err := inner.Watch(t.Context(), driver.HoldID{Name: "it", Acquisition: "a:1"})
			require.NoError(t, err)
			require.NoError(t, c.Close(context.Background()))
		}
	})
}

func TestWaitersPollIfAWatchFails(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		owner := adaptertest.Owner()
		l := open(t, s).Mutex("it")
		require.NoError(t, l.LockContext(owner))
		got := make(chan error, 1)
		go func() { got <- open(t, &watching{server: s, fails: true}).Mutex("it").LockContext(adaptertest.Owner()) }()
		time.Sleep(time.Second)
		require.NoError(t, l.UnlockContext(owner))
		require.NoError(t, <-got)
	})
}

// A waiter without a notice would ask again after lease.DefaultPoll alone.
func TestWaitersOfAFailedWatchPollWithTheUsersPauses(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		owner := adaptertest.Owner()
		l := open(t, s).Mutex("it")
		require.NoError(t, l.LockContext(owner))
		got := make(chan error, 1)
		most := 10 * time.Millisecond
		w := open(t, &watching{server: s, fails: true}, caslock.WithPolling(time.Millisecond, most)).Mutex("it")
		go func() { got <- w.LockContext(adaptertest.Owner()) }()
		time.Sleep(time.Minute) // pauses that doubled without an end would be long by now
		require.NoError(t, l.UnlockContext(owner))
		began := time.Now()
		require.NoError(t, <-got)
		require.LessOrEqual(t, time.Since(began), 2*most)
	})
}

// tardy is a server whose watches take time to begin.
type tardy struct{ *watching }

func (d tardy) Watch(ctx context.Context, name string, changed func()) error {
	if !adapter.Sleep(ctx, time.Second) {
		return ctx.Err()
	}
	return d.watching.Watch(ctx, name, changed)
}

func TestAWatchThatHasToldIsNoReasonToReadAgain(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		require.NoError(t, open(t, s, caslock.WithTTL(time.Hour)).Mutex("it").LockContext(adaptertest.Owner()))
		w := &watching{server: s, ends: time.Second}
		polling := caslock.WithPolling(time.Millisecond, time.Hour)
		l := open(t, tardy{w}, polling, caslock.WithTTL(time.Hour)).Mutex("it")
		ctx, cancel := context.WithTimeout(adaptertest.Owner(), time.Minute)
		defer cancel()
		s.requests()
		require.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
		synctest.Wait()
		loads, _ := s.requests()
		require.Greater(t, w.watches, 20)
		require.LessOrEqual(t, loads, w.watches+2, "each watch tells once when it is on")
	})
}

func TestAStoreThatCannotWatchIsPolledSeldom(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		w := &watching{server: s, fails: true}
		require.NoError(t, open(t, s).Mutex("it").LockContext(adaptertest.Owner()))
		l := open(t, w).Mutex("it")
		ctx, cancel := context.WithTimeout(adaptertest.Owner(), time.Hour)
		defer cancel()
		s.requests()
		require.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
		synctest.Wait()
		loads, _ := s.requests()
		require.LessOrEqual(t, loads, 1450)
		require.LessOrEqual(t, w.watches, 1450)
		require.GreaterOrEqual(t, loads, 720)
	})
}

func TestAWatchThatAlwaysEndsIsBegunSeldom(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		w := &watching{server: s, ends: time.Nanosecond}
		require.NoError(t, open(t, s).Mutex("it").LockContext(adaptertest.Owner()))
		l := open(t, w).Mutex("it")
		ctx, cancel := context.WithTimeout(adaptertest.Owner(), time.Hour)
		defer cancel()
		require.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
		synctest.Wait()
		require.LessOrEqual(t, w.watches, 1450)
	})
}

func TestASilentWatchOnlyDelaysAWaiter(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		owner := adaptertest.Owner()
		l := open(t, s).Mutex("it")
		require.NoError(t, l.LockContext(owner))
		got := make(chan error, 1)
		go func() {
			got <- open(t, &watching{server: s, silent: true}).Mutex("it").LockContext(adaptertest.Owner())
		}()
		time.Sleep(time.Minute)
		require.NoError(t, l.UnlockContext(owner))
		began := time.Now()
		require.NoError(t, <-got)
		require.LessOrEqual(t, time.Since(began), lease.DefaultPoll)
	})
}

func TestNoWatchBeginsAfterAClose(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		for _, d := range []caslock.Documents{s, &watching{server: s}} {
			c, inner := openInner(t, d)
			require.NoError(t, c.Close(context.Background()))
			_, err := inner.Watch(context.Background(), driver.HoldID{Name: "it", Acquisition: "a:1"})
			require.ErrorIs(t, err, locks.ErrClosed)
		}
	})
}

func TestACloseEndsTheWatches(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		require.NoError(t, open(t, s).Mutex("it").LockContext(adaptertest.Owner()))
		w := &watching{server: s, lasts: time.Second}
		c := open(t, w)
		got := make(chan error, 1)
		go func() { got <- c.Mutex("it").LockContext(adaptertest.Owner()) }()
		time.Sleep(time.Second)
		require.NoError(t, c.Close(context.Background()))
		require.ErrorIs(t, <-got, locks.ErrClosed)
		require.True(t, w.ended)
	})
}

// watching is a server that tells of changes.
type watching struct {
	*server
	ends    time.Duration // when a watch ends by itself
	lasts   time.Duration // how long it takes to end
	fails   bool
	silent  bool // it does not say when it is on
	ended   bool
	watches int
}

func (w *watching) Watch(ctx context.Context, name string, changed func()) error {
	w.mu.Lock()
	w.watches++
	w.mu.Unlock()
	switch {
	case w.fails:
		return errNetwork
	case w.silent:
		<-ctx.Done()
		return ctx.Err()
	}
	if w.ends > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.ends)
		defer cancel()
	}
	for {
		w.mu.Lock()
		version := w.version(name)
		w.mu.Unlock()
		changed()
		w.wait(ctx, name, version)
		if ctx.Err() != nil {
			time.Sleep(w.lasts)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.ended = true
			return ctx.Err()
		}
	}
}
