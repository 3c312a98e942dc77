package prom_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/record"
	"github.com/jucgo/locks/record/prom"
	"github.com/jucgo/locks/reentrant"
)

var bg = context.Background()

func as() context.Context { return locks.WithOwner(bg, locks.NewOwner()) }

// lossy is a lock that loses its lease before every unlock.
type lossy struct{ locks.TryLocker }

func (lossy) UnlockContext(context.Context) error { return locks.ErrLost }

// leased is a lock whose lease is lost while its holder hangs.
type leased struct{ locks.TryLocker }

func (leased) Hold(context.Context) (locks.Hold, error) { return lostHold{}, nil }

type lostHold struct{ locks.Hold }

func (lostHold) Err() error { return locks.ErrLost }

func TestLossIsScrapedWhileTheHolderStillHangs(t *testing.T) {
	r := record.New(record.Options{})
	reg := registry(t, r)
	l := r.Wrap("report", &leased{new(fair.Mutex)})
	require.NoError(t, l.LockContext(bg))
	for range 2 {
		require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP locks_lost_total Holds that were lost, counted when they are lost.
# TYPE locks_lost_total counter
locks_lost_total{lock="report"} 1
`), "locks_lost_total"))
	}
	require.NoError(t, l.UnlockContext(bg))
}

// work makes every kind of event: the lock "accounts" is held for two seconds, and a waiter waits
// for one of them. The lock "report" is lost.
func work(t *testing.T, r *record.Recorder) {
	t.Helper()
	l := r.Wrap("accounts", new(reentrant.Mutex))
	a, b := as(), as()
	require.NoError(t, l.LockContext(a))
	time.Sleep(time.Second)
	ok, err := l.TryLockContext(b)
	require.NoError(t, err)
	require.False(t, ok)
	done := make(chan error)
	go func() { done <- l.LockContext(b) }()
	short, cancel := context.WithTimeout(as(), time.Second)
	defer cancel()
	require.ErrorIs(t, l.LockContext(short), context.DeadlineExceeded)
	ended, cancel := context.WithCancel(as())
	cancel()
	require.ErrorIs(t, l.LockContext(ended), context.Canceled)
	require.ErrorIs(t, l.LockContext(nil), locks.ErrNilContext)
	require.NoError(t, l.UnlockContext(a))
	require.NoError(t, <-done)
	require.NoError(t, l.UnlockContext(b))
	require.ErrorIs(t, l.UnlockContext(b), locks.ErrNotHeld)

	l = r.Wrap("report", lossy{new(fair.Mutex)})
	require.NoError(t, l.LockContext(a))
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
}

// registry returns a registry with one collector.
func registry(t *testing.T, r *record.Recorder) *prometheus.Registry {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	require.NoError(t, reg.Register(prom.NewCollector(r)))
	return reg
}

func TestEveryEventIsCountedUnderItsReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record.New(record.Options{})
		reg := registry(t, r)
		work(t, r)
		require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP locks_acquisition_failures_total Acquisitions that failed, by reason.
# TYPE locks_acquisition_failures_total counter
locks_acquisition_failures_total{lock="accounts",reason="busy"} 1
locks_acquisition_failures_total{lock="accounts",reason="cancelled"} 1
locks_acquisition_failures_total{lock="accounts",reason="error"} 1
locks_acquisition_failures_total{lock="accounts",reason="timeout"} 1
locks_acquisition_failures_total{lock="report",reason="busy"} 0
locks_acquisition_failures_total{lock="report",reason="cancelled"} 0
locks_acquisition_failures_total{lock="report",reason="error"} 0
locks_acquisition_failures_total{lock="report",reason="timeout"} 0
# HELP locks_acquisitions_total Acquisitions, with re-entries.
# TYPE locks_acquisitions_total counter
locks_acquisitions_total{lock="accounts"} 2
locks_acquisitions_total{lock="report"} 1
# HELP locks_lost_total Holds that were lost, counted when they are lost.
# TYPE locks_lost_total counter
locks_lost_total{lock="accounts"} 0
locks_lost_total{lock="report"} 1
# HELP locks_refused_unlocks_total Unlocks that returned an error, but for the first after a loss.
# TYPE locks_refused_unlocks_total counter
locks_refused_unlocks_total{lock="accounts"} 1
locks_refused_unlocks_total{lock="report"} 0
`), "locks_acquisitions_total", "locks_acquisition_failures_total", "locks_lost_total", "locks_refused_unlocks_total"))
	})
}

// value returns the value of the gauge or counter with this name and lock.
func value(t *testing.T, reg prometheus.Gatherer, name, lock string) float64 {
	t.Helper()
	m := metric(t, reg, name, lock)
	return m.GetGauge().GetValue() + m.GetCounter().GetValue()
}

func metric(t *testing.T, reg prometheus.Gatherer, name, lock string) *dto.Metric {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	return find(t, families, name, lock)
}

func find(t *testing.T, families []*dto.MetricFamily, name, lock string) *dto.Metric {
	t.Helper()
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == name && l.GetName() == "lock" && l.GetValue() == lock {
					return m
				}
			}
		}
	}
	t.Fatalf("no %s of %s", name, lock)
	return nil
}

func TestGaugesShowWaitersHoldersAndTheOldestHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record.New(record.Options{})
		reg := registry(t, r)
		one, two := r.Wrap("l", new(fair.Mutex)), r.Wrap("l", new(fair.Mutex))
		gauges := func() []float64 {
			return []float64{value(t, reg, "locks_waiters", "l"), value(t, reg, "locks_holders", "l"),
				value(t, reg, "locks_oldest_hold_age_seconds", "l")}
		}
		require.Equal(t, []float64{0, 0, 0}, gauges())
		require.NoError(t, one.LockContext(bg))
		time.Sleep(time.Minute)
		require.NoError(t, two.LockContext(bg))
		done := make(chan error)
		go func() { done <- one.LockContext(bg) }()
		time.Sleep(time.Minute)
		require.Equal(t, []float64{1, 2, 120}, gauges())
		require.NoError(t, one.UnlockContext(bg))
		require.NoError(t, <-done)
		require.NoError(t, one.UnlockContext(bg))
		require.Equal(t, []float64{0, 1, 60}, gauges())
		require.NoError(t, two.UnlockContext(bg))
		require.Equal(t, []float64{0, 0, 0}, gauges())
	})
}

func TestWaitsAndHoldsAreNativeAndClassicHistograms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := record.New(record.Options{})
		reg := registry(t, r)
		work(t, r)
		waits := metric(t, reg, "locks_wait_seconds", "accounts").GetHistogram()
		require.EqualValues(t, 5, waits.GetSampleCount(), "all but the try")
		require.Equal(t, 2.0, waits.GetSampleSum())
		holds := metric(t, reg, "locks_hold_seconds", "accounts").GetHistogram()
		require.EqualValues(t, 2, holds.GetSampleCount())
		require.Equal(t, 2.0, holds.GetSampleSum())
		for _, h := range []*dto.Histogram{waits, holds} {
			require.EqualValues(t, 3, h.GetSchema(), "eight buckets for each power of two")
			require.NotEmpty(t, h.GetPositiveSpan())
			require.Len(t, h.GetBucket(), 10)
		}
	})
}

func TestNamesBeyondTheLimitShareOneLabel(t *testing.T) {
	const more = 5
	r := record.New(record.Options{})
	reg := registry(t, r)
	for i := range prom.MaxNames + more {
		l := r.Wrap(fmt.Sprintf("lock %d", i), new(fair.Mutex))
		require.NoError(t, l.LockContext(bg))
		if i%2 == 0 {
			require.NoError(t, l.UnlockContext(bg))
		}
	}
	families, err := reg.Gather()
	require.NoError(t, err)
	others := func(name string) *dto.Metric { return find(t, families, name, prom.Other) }
	require.EqualValues(t, more, others("locks_acquisitions_total").GetCounter().GetValue())
	require.EqualValues(t, more/2, others("locks_holders").GetGauge().GetValue())
	require.Positive(t, others("locks_oldest_hold_age_seconds").GetGauge().GetValue())
	require.EqualValues(t, more, others("locks_wait_seconds").GetHistogram().GetSampleCount())
	for _, f := range families {
		if f.GetName() == "locks_holders" || f.GetName() == "locks_wait_seconds" {
			require.Len(t, f.GetMetric(), prom.MaxNames+1)
		}
	}
}

func TestInvalidUTF8SharesTheLabel(t *testing.T) {
	r := record.New(record.Options{})
	reg := registry(t, r)
	require.NoError(t, locks.Do(bg, r.Wrap("a\xff", new(fair.Mutex)), nothing))
	families, err := reg.Gather()
	require.NoError(t, err)
	require.EqualValues(t, 1, find(t, families, "locks_acquisitions_total", prom.Other).GetCounter().GetValue())
}

func TestTwoRecordersNeedALabelEach(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	a, b := record.New(record.Options{}), record.New(record.Options{})
	work := func(r *record.Recorder) { _ = locks.Do(bg, r.Wrap("l", new(fair.Mutex)), nothing) }
	register := func(part string, r *record.Recorder) error {
		return prometheus.WrapRegistererWith(prometheus.Labels{"part": part}, reg).Register(prom.NewCollector(r))
	}
	require.NoError(t, register("a", a))
	require.ErrorAs(t, register("a", b), new(prometheus.AlreadyRegisteredError))
	require.NoError(t, register("b", b))
	work(a)
	work(b)
	work(b)
	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP locks_acquisitions_total Acquisitions, with re-entries.
# TYPE locks_acquisitions_total counter
locks_acquisitions_total{lock="l",part="a"} 1
locks_acquisitions_total{lock="l",part="b"} 2
`), "locks_acquisitions_total"))
}

func nothing(context.Context) error { return nil }

func TestScrapesBesideAcquisitionsMissNone(t *testing.T) {
	const parties, rounds = 4, 500
	r := record.New(record.Options{})
	reg := registry(t, r)
	var mu fair.Mutex
	var workers sync.WaitGroup
	stop := make(chan struct{})
	scraper := make(chan error)
	go func() {
		for {
			if _, err := reg.Gather(); err != nil {
				scraper <- err
				return
			}
			select {
			case <-stop:
				close(scraper)
				return
			default:
			}
		}
	}()
	for i := range parties {
		workers.Go(func() {
			l := r.Wrap(fmt.Sprintf("lock %d", i%2), &mu)
			for range rounds {
				_ = locks.Do(bg, l, nothing)
			}
		})
	}
	workers.Wait()
	close(stop)
	require.NoError(t, <-scraper)
	for _, lock := range []string{"lock 0", "lock 1"} {
		n := parties / 2 * rounds
		require.EqualValues(t, n, value(t, reg, "locks_acquisitions_total", lock))
		require.EqualValues(t, n, metric(t, reg, "locks_wait_seconds", lock).GetHistogram().GetSampleCount())
		require.EqualValues(t, n, metric(t, reg, "locks_hold_seconds", lock).GetHistogram().GetSampleCount())
	}
}

func TestAnAcquisitionAllocatesNothing(t *testing.T) {
	r := record.New(record.Options{})
	registry(t, r)
	l := r.Wrap("l", new(fair.Mutex))
	cycle := func() { _ = locks.Do(bg, l, nothing) }
	for range 1000 { // the first ones fill buckets
		cycle()
	}
	require.Zero(t, testing.AllocsPerRun(1000, cycle))
}

func TestOptionsSetNamesAndBucketsAndExemplars(t *testing.T) {
	for _, c := range []struct {
		name  string
		trace string
		want  int
	}{{"short", "4bf92f35", 1}, {"none", "", 0}, {"longer than the limit", strings.Repeat("x", 200), 0}} {
		t.Run(c.name, func(t *testing.T) {
			r := record.New(record.Options{})
			reg := prometheus.NewPedanticRegistry()
			reg.MustRegister(prom.NewCollector(r, prom.WithNamespace("shop"), prom.WithBuckets(60, 600),
				prom.WithExemplars(func(context.Context) prometheus.Labels {
					if c.trace == "" {
						return nil
					}
					return prometheus.Labels{"trace_id": c.trace}
				})))
			l := r.Wrap("l", new(fair.Mutex))
			require.NoError(t, l.LockContext(bg))
			require.NoError(t, l.UnlockContext(bg))
			families, err := reg.Gather()
			require.NoError(t, err)
			for _, f := range families {
				require.True(t, strings.HasPrefix(f.GetName(), "shop_"), f.GetName())
				if f.GetName() != "shop_wait_seconds" {
					continue
				}
				h := f.GetMetric()[0].GetHistogram()
				require.EqualValues(t, 1, h.GetSampleCount())
				require.Len(t, h.GetBucket(), 2)
				exemplars := 0
				for _, b := range h.GetBucket() {
					if b.GetExemplar() != nil {
						exemplars++
					}
				}
				require.Equal(t, c.want, exemplars)
			}
		})
	}
}
