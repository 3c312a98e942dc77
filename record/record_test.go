package record_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"runtime/trace"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/test/fakelock"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
)

var bg = context.Background()

func as() context.Context { return locks.WithOwner(bg, locks.NewOwner()) }

func kinds(r *record.Recorder) (ks []record.Kind) {
	events, _ := r.Events()
	for _, e := range events {
		ks = append(ks, e.Kind)
	}
	return ks
}

func TestEveryAcquisitionHasItsEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record.New(record.Options{Events: 100})
		l := r.Wrap("l", reentrant.New(locks.FIFO))
		a, b := as(), as()
		require.NoError(t, l.LockContext(a))
		time.Sleep(time.Second)
		require.NoError(t, l.LockContext(a)) // once more
		done := make(chan error)
		go func() { done <- l.LockContext(b) }()
		time.Sleep(time.Second)
		require.EqualValues(t, 1, r.Stats()[0].Waiting)
		require.NoError(t, l.UnlockContext(a))
		require.NoError(t, l.UnlockContext(a))
		require.NoError(t, <-done)
		require.EqualValues(t, 1, r.Stats()[0].Held)
		time.Sleep(3 * time.Second)
		require.NoError(t, l.UnlockContext(b))

		events, dropped := r.Events()
		require.Zero(t, dropped)
		for i := range events {
			require.Equal(t, "l", events[i].Lock)
			events[i].Lock = ""
		}
		oa, ob, s := locks.CurrentOwner(a), locks.CurrentOwner(b), time.Second
		require.Equal(t, []record.Event{
			{Kind: record.Waiting, Owner: oa},
			{Kind: record.Acquired, Owner: oa, Holds: 1},
			{Kind: record.Waiting, Owner: oa, At: s},
			{Kind: record.Acquired, Owner: oa, At: s, Holds: 2},
			{Kind: record.Waiting, Owner: ob, At: s},
			{Kind: record.Released, Owner: oa, At: 2 * s, Holds: 1},
			{Kind: record.Released, Owner: oa, At: 2 * s, Held: 2 * s},
			{Kind: record.Acquired, Owner: ob, At: 2 * s, Holds: 1, Wait: s},
			{Kind: record.Released, Owner: ob, At: 5 * s, Held: 3 * s},
		}, events)
		st := r.Stats()[0]
		require.Equal(t, [...]uint64{3, 3}, [...]uint64{st.Acquired, st.Released})
		require.Equal(t, [...]uint64{3, 2}, [...]uint64{st.Waits.Count(), st.Holds.Count()})
		require.Equal(t, s, st.Waits.Sum)
		require.Equal(t, 5*s, st.Holds.Sum)
		require.Zero(t, st.Waiting)
		require.Zero(t, st.Held)
	})
}

func TestFailedCallsAreToldApart(t *testing.T) {
	r := record.New(record.Options{Events: 100})
	l := r.Wrap("l", new(reentrant.Mutex))
	a, b := as(), as()
	require.ErrorIs(t, l.UnlockContext(b), locks.ErrNotHeld)
	require.NoError(t, l.LockContext(a))
	require.ErrorIs(t, l.UnlockContext(b), locks.ErrNotHeld)
	ok, err := l.TryLockContext(b)
	require.NoError(t, err)
	require.False(t, ok)
	ended, cancel := context.WithCancel(b)
	cancel()
	require.ErrorIs(t, l.LockContext(ended), context.Canceled)
	require.ErrorIs(t, l.LockContext(nil), locks.ErrNilContext)
	require.NoError(t, l.UnlockContext(a))
	w, c := record.Waiting, record.Cancelled
	require.Equal(t, []record.Kind{record.Refused, w, record.Acquired, record.Refused, record.Failed, w, c, w,
		record.Failed, record.Released}, kinds(r))
	st := r.Stats()[0]
	require.Equal(t, [...]uint64{1, 1}, [...]uint64{st.Acquired, st.Released})
	require.Equal(t, [...]uint64{1, 2, 2}, [...]uint64{st.Cancelled, st.Failed, st.Refused})
	require.Zero(t, st.Held)
	require.EqualValues(t, 1, st.Holds.Count())
}

func TestAnotherOwnerReleasesALockWithoutOwners(t *testing.T) {
	r := record.New(record.Options{Events: 100})
	l := r.Wrap("l", new(fair.Mutex))
	a, b := as(), as()
	for range 3 {
		require.NoError(t, l.LockContext(a))
		require.EqualValues(t, 1, r.Stats()[0].Held)
		require.NoError(t, l.UnlockContext(b))
		require.Zero(t, r.Stats()[0].Held)
	}
	require.ErrorIs(t, l.UnlockContext(b), locks.ErrNotHeld)
	require.EqualValues(t, 3, r.Stats()[0].Holds.Count())
}

func TestABoundedLogCountsWhatItDropped(t *testing.T) {
	r := record.New(record.Options{Events: 5})
	l := r.Wrap("l", new(fair.Mutex))
	for range 7 { // 21 events
		require.NoError(t, l.LockContext(bg))
		require.NoError(t, l.UnlockContext(bg))
	}
	events, dropped := r.Events()
	require.Len(t, events, 5)
	require.EqualValues(t, 16, dropped)
	w, a, u := record.Waiting, record.Acquired, record.Released
	require.Equal(t, []record.Kind{a, u, w, a, u}, kinds(r))

	none := record.New(record.Options{})
	l = none.Wrap("l", new(fair.Mutex))
	require.NoError(t, l.LockContext(bg))
	events, dropped = none.Events()
	require.Empty(t, events)
	require.Zero(t, dropped)
}

func TestHoldsThatExcludeEachOtherDoNotOverlap(t *testing.T) {
	for name, l := range map[string]locks.TryLocker{
		"fair": new(fair.Mutex), "barging": new(fair.BargingMutex), "reentrant": new(reentrant.Mutex),
	} {
		t.Run(name, func(t *testing.T) {
			const parties, each = 8, 300
			var mu sync.Mutex
			hooked := 0
			r := record.New(record.Options{Events: parties * each * 3, Hook: func(record.Event) {
				mu.Lock()
				hooked++
				mu.Unlock()
			}})
			w := r.Wrap("l", l)
			var wg sync.WaitGroup
			for range parties {
				wg.Go(func() {
					for range each {
						if rand.IntN(3) == 0 {
							if ok, _ := w.TryLockContext(bg); !ok {
								continue
							}
						} else if err := w.LockContext(bg); err != nil {
							t.Error(err)
							return
						}
						if err := w.UnlockContext(bg); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			events, dropped := r.Events()
			require.Zero(t, dropped)
			require.Len(t, events, hooked)
			st := r.Stats()[0]
			require.Equal(t, st.Acquired, st.Released)
			require.Equal(t, st.Acquired, st.Holds.Count())
			require.Zero(t, st.Held)
			require.Zero(t, st.Waiting)
			var until time.Duration
			for _, e := range events {
				if e.Kind == record.Released {
					require.GreaterOrEqual(t, e.At-e.Held, until)
					until = e.At
				}
			}
		})
	}
}

func TestReadAndWriteSidesAreDistinguished(t *testing.T) {
	r := record.New(record.Options{Events: 10})
	rw := r.WrapReadWrite("rw", new(rwlock.RWMutex))
	a, b := as(), as()
	require.NoError(t, rw.ReadLocker().LockContext(a))
	require.NoError(t, rw.ReadLocker().LockContext(b))
	st := r.Stats()
	require.Equal(t, "rw (read)", st[0].Lock)
	require.Equal(t, "rw (write)", st[1].Lock)
	require.EqualValues(t, 2, st[0].Held)
	require.Zero(t, st[1].Held)
	events, _ := r.Events()
	require.True(t, events[0].Shared)
}

func TestSlowWaitsAndHoldsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := record.New(record.Options{Slow: time.Second, Logger: slog.New(slog.NewTextHandler(&out, nil))})
		l := r.Wrap("accounts", new(reentrant.Mutex))
		a, b := as(), as()
		require.NoError(t, l.LockContext(a))
		require.NoError(t, l.UnlockContext(a))
		require.Empty(t, out.String())
		require.NoError(t, l.LockContext(a))
		done := make(chan struct{})
		go func() { defer close(done); _ = l.LockContext(b) }()
		time.Sleep(2 * time.Second)
		require.NoError(t, l.UnlockContext(a))
		<-done
		require.Error(t, l.UnlockContext(a))
		require.Error(t, l.UnlockContext(nil))
		for _, want := range []string{
			"slow lock", "long hold", "wait=2s", "held=2s", "lock=accounts", "unlock refused",
		} {
			require.Contains(t, out.String(), want)
		}
	})
}

func TestALoggerWithoutSlowLogsErrorsOnly(t *testing.T) {
	var out bytes.Buffer
	l := record.New(record.Options{Logger: slog.New(slog.NewTextHandler(&out, nil))}).Wrap("l", new(reentrant.Mutex))
	a := as()
	require.NoError(t, l.LockContext(a))
	require.NoError(t, l.UnlockContext(a))
	require.Empty(t, out.String())
	require.Error(t, l.UnlockContext(a))
	require.Contains(t, out.String(), "unlock refused")
}

func TestExecutionTraceHasWaitsAndHolds(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, trace.Start(&out), "a trace is being taken already")
	r := record.New(record.Options{})
	l := r.Wrap("accounts", new(fair.Mutex))
	for range 3 {
		require.NoError(t, l.LockContext(bg))
		require.NoError(t, l.UnlockContext(bg))
	}
	require.ErrorIs(t, l.LockContext(nil), locks.ErrNilContext)
	trace.Stop()
	assert.Contains(t, out.String(), "wait for accounts")
	assert.Contains(t, out.String(), "hold accounts")
}

// lost is a lock that loses its lease at once.
type lost struct{ locks.TryLocker }

func (lost) UnlockContext(context.Context) error { return locks.ErrLost }

func TestLostHoldEndsWithItsUnlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record.New(record.Options{Events: 10})
		l := r.Wrap("l", lost{new(fair.Mutex)})
		require.NoError(t, l.LockContext(bg))
		require.EqualValues(t, 1, r.Stats()[0].Held)
		time.Sleep(time.Second)
		require.ErrorIs(t, l.UnlockContext(bg), locks.ErrLost)
		require.ErrorIs(t, l.UnlockContext(bg), locks.ErrLost)
		st := r.Stats()[0]
		require.Zero(t, st.Held)
		require.Empty(t, r.Holds())
		require.Equal(t, [...]uint64{1, 1}, [...]uint64{st.Refused, st.Lost}, "a hold is lost once")
		events, _ := r.Events()
		require.Equal(t, time.Second, events[2].Held)
		require.Zero(t, events[3].Held)
	})
}

// free is a lock without exclusion that is never released.
type free struct{}

func (free) LockContext(context.Context) error            { return nil }
func (free) UnlockContext(context.Context) error          { return errors.New("no") }
func (free) TryLockContext(context.Context) (bool, error) { return true, nil }

func TestEndlessHoldsDoNotFillTheMemory(t *testing.T) {
	r := record.New(record.Options{})
	l := r.Wrap("l", free{})
	for range 10_000 {
		require.NoError(t, l.LockContext(as()))
	}
	require.Less(t, r.Stats()[0].Held, int64(5_000))
}

func TestHistogramBucketsArePowersOfTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record.New(record.Options{})
		l := r.Wrap("l", new(fair.Mutex))
		for _, d := range []time.Duration{0, 1, 2, 3, 4, time.Hour} {
			require.NoError(t, l.LockContext(bg))
			time.Sleep(d)
			require.NoError(t, l.UnlockContext(bg))
		}
		h := r.Stats()[0].Holds
		require.EqualValues(t, 6, h.Count())
		require.Equal(t, []uint64{1, 1, 2, 1}, h.Counts[:4])
		require.EqualValues(t, 1, h.Counts[record.Buckets-1])
		require.Equal(t, 4*time.Nanosecond, record.BucketUpperBound(2))
		require.Equal(t, 2*time.Nanosecond, h.Quantile(0.4))
		require.Zero(t, h.Quantile(0))
		require.Zero(t, new(record.Histogram).Quantile(0.5))
	})
}

func TestANilLockIsRefused(t *testing.T) {
	require.Panics(t, func() { record.New(record.Options{}).Wrap("l", nil) })
}

func TestANilListenerIsRefused(t *testing.T) {
	require.PanicsWithValue(t, locks.ErrNilFunc, func() { record.New(record.Options{}).Listen(nil) })
}

type key struct{}

func TestEveryListenerGetsEachEventAndItsContext(t *testing.T) {
	r := record.New(record.Options{})
	l := r.Wrap("l", new(fair.Mutex))
	var first, second []any
	r.Listen(func(ctx context.Context, e record.Event) { first = append(first, e.Kind, ctx.Value(key{})) })
	ctx := context.WithValue(bg, key{}, "request")
	require.NoError(t, l.LockContext(ctx))
	r.Listen(func(ctx context.Context, e record.Event) { second = append(second, e.Kind, ctx.Value(key{})) })
	require.NoError(t, l.UnlockContext(nil))
	require.Equal(t, []any{record.Waiting, "request", record.Acquired, "request", record.Released, nil}, first)
	require.Equal(t, []any{record.Released, nil}, second)
}

func TestPresentHoldsAreListedOldestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record.New(record.Options{})
		rw := r.WrapReadWrite("rw", new(rwlock.RWMutex))
		var wrapped []locks.TryLocker
		for range 3 { // several locks of one name
			wrapped = append(wrapped, r.Wrap("l", new(reentrant.Mutex)))
		}
		a, b := as(), as()
		since := func(d time.Duration) time.Time { return r.Start().Add(d) }
		for _, l := range wrapped {
			require.NoError(t, l.LockContext(a))
			time.Sleep(time.Second)
		}
		require.NoError(t, wrapped[2].LockContext(a))
		require.NoError(t, rw.ReadLocker().LockContext(b))
		require.NoError(t, wrapped[0].UnlockContext(a))
		of := func(l locks.TryLocker) locks.TryLocker {
			return l.(interface{ Unwrap() locks.TryLocker }).Unwrap()
		}
		first, second, read := of(wrapped[1]), of(wrapped[2]), of(rw.ReadLocker())
		ownerA, ownerB := locks.CurrentOwner(a), locks.CurrentOwner(b)
		require.Equal(t, []record.Hold{
			{Lock: "l", Of: first, Owner: ownerA, Since: since(time.Second), Holds: 1},
			{Lock: "l", Of: second, Owner: ownerA, Since: since(2 * time.Second), Holds: 2},
			{Lock: "rw (read)", Of: read, Owner: ownerB, Since: since(3 * time.Second), Holds: 1, Shared: true},
		}, r.Holds())
		for _, l := range []locks.TryLocker{wrapped[1], wrapped[2], wrapped[2]} {
			require.NoError(t, l.UnlockContext(a))
		}
		require.NoError(t, rw.ReadLocker().UnlockContext(b))
		require.Empty(t, r.Holds())
	})
}

func TestFailuresAreCountedByTheirCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record.New(record.Options{})
		l := r.Wrap("l", new(fair.Mutex))
		require.NoError(t, l.LockContext(bg))
		ok, err := l.TryLockContext(bg)
		require.NoError(t, err)
		require.False(t, ok)
		late, cancel := context.WithTimeout(bg, time.Second)
		defer cancel()
		require.ErrorIs(t, l.LockContext(late), context.DeadlineExceeded)
		ended, cancel := context.WithCancel(bg)
		cancel()
		require.ErrorIs(t, l.LockContext(ended), context.Canceled)
		require.ErrorIs(t, l.LockContext(nil), locks.ErrNilContext)
		st := r.Stats()[0]
		require.Equal(t, [...]uint64{2, 1}, [...]uint64{st.Cancelled, st.TimedOut})
		require.Equal(t, [...]uint64{2, 1}, [...]uint64{st.Failed, st.Busy})
		require.NoError(t, l.UnlockContext(bg))
	})
}

func TestLossIsCountedWhileTheHolderStillHangs(t *testing.T) {
	for _, c := range []struct {
		name   string
		unlock error
	}{{"the unlock tells of it", locks.ErrLost}, {"the unlock succeeds", nil}} {
		t.Run(c.name, func(t *testing.T) {
			flaw := fakelock.Flaw("")
			if c.unlock == nil {
				flaw = fakelock.LostUnlockIsFine
			}
			inner := fakelock.NewLeased(flaw)
			r := record.New(record.Options{})
			l := r.Wrap("l", inner)
			require.NoError(t, l.LockContext(bg))
			require.NoError(t, l.LockContext(bg)) // a re-entry
			require.Zero(t, r.Stats()[0].Lost)
			inner.Lose()
			for range 2 {
				st := r.Stats()[0]
				require.EqualValues(t, 1, st.Lost, "a hold is lost once")
				require.Zero(t, st.Refused)
				require.Len(t, r.Holds(), 1, "its holder has not unlocked it")
			}
			require.ErrorIs(t, l.UnlockContext(bg), c.unlock)
			st := r.Stats()[0]
			require.Equal(t, [...]uint64{1, 0}, [...]uint64{st.Lost, st.Refused})
		})
	}
}

func TestAHoldAfterALossCountsByItself(t *testing.T) {
	inner := fakelock.NewLeased("")
	r := record.New(record.Options{})
	l := r.Wrap("l", inner)
	for n := range 3 {
		require.NoError(t, l.LockContext(bg))
		require.EqualValues(t, n, r.Stats()[0].Lost)
		inner.Lose()
		require.EqualValues(t, n+1, r.Stats()[0].Lost)
		require.ErrorIs(t, l.UnlockContext(bg), locks.ErrLost)
		require.EqualValues(t, n+1, r.Stats()[0].Lost)
	}
}

// page is the key of a value of a request.
type page struct{}

func TestTheRingKeepsNoValuesOfARequest(t *testing.T) {
	r := record.New(record.Options{Events: 100})
	l := r.Wrap("l", new(fair.Mutex))
	require.NoError(t, l.LockContext(bg))
	value := func() weak.Pointer[[1 << 20]byte] {
		value := new([1 << 20]byte)
		ctx, cancel := context.WithTimeout(context.WithValue(bg, page{}, value), time.Millisecond)
		defer cancel()
		require.Error(t, locks.Multi(l).LockContext(ctx))
		return weak.Make(value)
	}()
	require.NoError(t, l.UnlockContext(bg))
	require.Eventually(t, func() bool {
		runtime.GC()
		return value.Value() == nil
	}, time.Minute, time.Millisecond)
	events, _ := r.Events()
	i := slices.IndexFunc(events, func(e record.Event) bool { return e.Kind == record.Cancelled })
	require.ErrorIs(t, events[i].Err, context.DeadlineExceeded)
}
