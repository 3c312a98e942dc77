package bench

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestJainOfEqualSharesAndOfAMonopoly(t *testing.T) {
	for _, c := range []struct {
		shares []int
		want   float64
	}{
		{[]int{7, 7, 7, 7}, 1},
		{[]int{12, 0, 0, 0}, 0.25},
		{[]int{1, 2, 3}, 36.0 / 42},
		{[]int{5, 5, 0, 0}, 0.5},
		{[]int{0, 0}, 1},
		{nil, 1},
	} {
		assert.InDelta(t, c.want, Jain(c.shares), 1e-12, "%v", c.shares)
	}
}

func TestHistogramQuantilesAgreeWithSortedData(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for name, draw := range map[string]func() float64{
		"even":        func() float64 { return rng.Float64() * 1e6 },
		"exponential": func() float64 { return rng.ExpFloat64() * 500 },
		"two humps":   func() float64 { return 40 + rng.Float64()*10 + float64(rng.IntN(2))*2e6 },
		"small":       func() float64 { return float64(rng.IntN(40)) },
		"constant":    func() float64 { return 123_456 },
	} {
		t.Run(name, func(t *testing.T) {
			var h Histogram
			sorted := make([]time.Duration, 20_001)
			for i := range sorted {
				sorted[i] = time.Duration(draw())
				h.Add(sorted[i])
			}
			slices.Sort(sorted)
			for _, q := range []float64{0, 0.01, 0.25, 0.4, 0.6, 0.9, 0.99, 0.999, 1} {
				want := sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
				// A bucket wide at most, and a nanosecond for rounding.
				assert.InDelta(t, want, h.Quantile(q), float64(want)/32+1, "quantile %v", q)
			}
			assert.Equal(t, sorted[len(sorted)-1], h.Max())
			assert.EqualValues(t, len(sorted), h.Count())
		})
	}
}

func TestQuantilesByTimeWeighWaitsByTheirLength(t *testing.T) {
	var h Histogram
	assert.Zero(t, h.QuantileByTime(0.5))
	// A hog waits 60 ns a million times. Two others wait 100 ms each: three quarters of all
	// waiting.
	for range 1_000_000 {
		h.Add(60)
	}
	h.Add(100 * time.Millisecond)
	h.Add(100 * time.Millisecond)
	assert.InDelta(t, 60, h.Quantile(0.99), 3, "what hardly any moment of waiting belongs to")
	assert.InDelta(t, 60, h.QuantileByTime(0.2), 3)
	for _, q := range []float64{0.25, 0.5, 0.99} {
		assert.InDelta(t, 100*time.Millisecond, h.QuantileByTime(q), 3.2e6, "quantile %v", q)
	}
	assert.Equal(t, 260*time.Millisecond, h.Sum())
	h = Histogram{}
	h.Add(0)
	assert.Zero(t, h.QuantileByTime(1), "no time was spent waiting")
}

func TestAnEmptyHistogramHasZeroQuantiles(t *testing.T) {
	var h Histogram
	assert.Zero(t, h.Quantile(0.5))
	assert.Zero(t, h.Max())
	h.Add(-time.Second)
	assert.Zero(t, h.Quantile(1), "a negative duration counts as 0")
	assert.EqualValues(t, 1, h.Count())
}

func TestMergedHistogramsAreTheHistogramOfAll(t *testing.T) {
	var a, b, all Histogram
	for i := range 1000 {
		d := time.Duration(i * i)
		all.Add(d)
		if i%3 == 0 {
			a.Add(d)
		} else {
			b.Add(d)
		}
	}
	a.Merge(&b)
	assert.Equal(t, all, a)
}

func TestTheLongestDurationHasABucket(t *testing.T) {
	var h Histogram
	h.Add(math.MaxInt64)
	assert.Equal(t, uint64(1), h.Count())
	assert.InEpsilon(t, int64(math.MaxInt64), int64(h.Quantile(1)), 1.0/32)
}

func TestStreakCountsOnlyAcquisitionsPastWaiters(t *testing.T) {
	type turn struct {
		who     int
		waiting bool
	}
	for name, c := range map[string]struct {
		turns []turn
		want  int
	}{
		"nobody acquires":                 {nil, 0},
		"alone":                           {[]turn{{0, false}, {0, false}, {0, false}}, 1},
		"in turns":                        {[]turn{{0, true}, {1, true}, {0, true}, {1, true}}, 1},
		"three past a waiter":             {[]turn{{1, true}, {0, true}, {0, true}, {0, true}, {1, false}}, 3},
		"a waiter comes late":             {[]turn{{2, false}, {2, false}, {2, true}, {2, true}}, 2},
		"the waiter leaves":               {[]turn{{2, true}, {2, false}, {2, true}, {2, true}}, 2},
		"the longest is not the last one": {[]turn{{0, true}, {0, true}, {0, true}, {1, true}, {1, true}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			var s streaks
			for _, turn := range c.turns {
				s.add(turn.who, turn.waiting)
			}
			assert.Equal(t, c.want, s.longest)
		})
	}
}

func TestWaitersAreFoundWhereverTheyAre(t *testing.T) {
	k := &contest{contestants: make([]contestant, 5)}
	assert.False(t, k.anyWaits())
	for i := range k.contestants {
		k.contestants[i].asked.Add(1)
		assert.True(t, k.anyWaits(), "%d waits", i)
		k.contestants[i].got++
		assert.False(t, k.anyWaits(), "%d has the lock", i)
	}
}

func TestWorkTakesAboutAsLongAsItShould(t *testing.T) {
	for _, d := range []time.Duration{2 * time.Microsecond, 50 * time.Microsecond, time.Millisecond} {
		best := time.Hour
		// The machine may be busy with other things now and then, but not always.
		for range 100 {
			start := time.Now()
			Work(d)
			if best = min(best, time.Since(start)); best < d*3/2 {
				break
			}
		}
		assert.Greater(t, best, d/2)
		assert.Less(t, best, 2*d)
	}
	assert.Zero(t, Rounds(0))
	assert.Zero(t, Rounds(-1))
	assert.Equal(t, 1, Rounds(1), "a little work is not none")
}

func TestAllLocksTakeAllOfTheBudget(t *testing.T) {
	for _, l := range Locks() {
		t.Run(l.Name, func(t *testing.T) {
			const ops = 3000
			var began, ended bool
			r, err := Contend(t.Context(), l.New(), Contest{
				Goroutines: 8, Ops: ops, Inside: 50, Outside: 50, Sample: 2, Streaks: true,
				Begin: func() { began = true }, End: func() { ended = true },
			})
			require.NoError(t, err)
			assert.True(t, began && ended)
			assert.Equal(t, ops, r.Ops)
			assert.Len(t, r.Counts, 8)
			sum := 0
			for _, n := range r.Counts {
				sum += n
			}
			assert.Equal(t, ops, sum)
			assert.InDelta(t, Jain(r.Counts), r.Jain, 1e-12)
			assert.GreaterOrEqual(t, r.Streak, 1)
			// The first wait of each goroutine is timed, and every second one after it.
			assert.InDelta(t, ops/2+8, r.Waits.Count(), 8)
			assert.True(t, 0 < r.Waiting && r.Waiting <= 1, "%v of the time", r.Waiting)
			assert.Positive(t, r.Elapsed)
			assert.Positive(t, r.PerOp())
		})
	}
}

func TestALoneGoroutineHasNoStreak(t *testing.T) {
	r, err := Contend(t.Context(), new(sync.Mutex), Contest{Goroutines: 1, Ops: 1000, Streaks: true})
	require.NoError(t, err)
	assert.Equal(t, 1, r.Streak)
	assert.Equal(t, 1.0, r.Jain)
	assert.Zero(t, r.Waits.Count(), "nothing is timed unless asked for")
}

func TestAContestEndsWithItsTime(t *testing.T) {
	r, err := Contend(t.Context(), new(sync.Mutex), Contest{Goroutines: 4, For: 20 * time.Millisecond})
	require.NoError(t, err)
	assert.GreaterOrEqual(t, r.Elapsed, 20*time.Millisecond)
	assert.Positive(t, r.Ops)
}

func TestAContestEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := Contend(ctx, new(sync.Mutex), Contest{Goroutines: 4})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestAContestNeedsGoroutines(t *testing.T) {
	_, err := Contend(t.Context(), new(sync.Mutex), Contest{Ops: 1})
	require.Error(t, err)
}

func TestPairsLeaveTheLockFree(t *testing.T) {
	names := make(map[string]bool)
	for _, l := range Locks() {
		assert.False(t, names[l.Name], "%s is there once", l.Name)
		names[l.Name] = true
		pairs := l.Pairs()
		pairs(3)
		pairs(2) // Would hang if the lock was held.
		if l.Reentry != nil {
			again := l.Reentry()
			again(3)
			again(2)
		}
	}
	assert.Equal(t, Reference, Locks()[0].Name)
}
