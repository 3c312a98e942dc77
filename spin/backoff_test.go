package spin

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// withBudget sets the budget for one test, whatever the machine has.
func withBudget(t *testing.T, n uint32) {
	was := budget
	budget = n
	t.Cleanup(func() { budget = was })
}

// waits returns how many pause instructions each Pause of b took until b was spun.
func waits(b *Backoff) (each []uint32) {
	for !b.Spun() {
		before := b.spun
		b.Pause()
		each = append(each, b.spun-before)
	}
	return each
}

func TestWaitsGrowUntilTheBudgetIsSpent(t *testing.T) {
	withBudget(t, 100)
	for range 200 {
		var b Backoff
		each := waits(&b)
		var total uint32
		for i, n := range each {
			total += n
			most := uint32(1) << i
			require.LessOrEqual(t, n, most, "wait %d of %v", i, each)
			if i < len(each)-1 { // the last one gets what is left
				require.GreaterOrEqual(t, n, most-most/2, "wait %d of %v", i, each)
			}
		}
		require.EqualValues(t, 100, total)
		b.Pause()
		require.EqualValues(t, 100, b.spun, "a yield is not counted")
	}
}

func TestWaitsOfTwoDiffer(t *testing.T) {
	withBudget(t, 100)
	for range 100 {
		var a, b Backoff
		if first, second := waits(&a), waits(&b); !slices.Equal(first, second) {
			return
		}
	}
	t.Fatal("100 pairs of loops in step")
}

func TestResetStartsAllOver(t *testing.T) {
	withBudget(t, 10)
	var b Backoff
	waits(&b)
	require.True(t, b.Spun())
	b.Reset()
	require.False(t, b.Spun())
	require.Equal(t, Backoff{}, b)
	require.EqualValues(t, 1, waits(&b)[0])
}

func TestOneProcessorDoesNotSpin(t *testing.T) {
	withBudget(t, affordable(1, 30*time.Nanosecond))
	var b Backoff
	require.True(t, b.Spun())
	b.Pause()
	require.Zero(t, b.spun)
}

func TestTheBudgetIsOneHandOver(t *testing.T) {
	require.EqualValues(t, 9, affordable(2, 27*time.Nanosecond))
	require.EqualValues(t, 83, affordable(2, 3*time.Nanosecond))
	require.EqualValues(t, 100, affordable(2, 1), "no clock is that good")
	require.EqualValues(t, 8, affordable(2, 0), "a clock that is too coarse")
	require.EqualValues(t, 8, affordable(2, time.Second), "a machine that was busy")
	if runtime.NumCPU() > 1 {
		require.GreaterOrEqual(t, budget, uint32(8))
	}
}

func TestALoopIsLiveOnOneCore(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var done atomic.Bool
	go done.Store(true)
	var b Backoff
	rounds := 0
	for ; !done.Load(); rounds++ {
		b.Pause()
	}
	// The scheduler would take the core away after 10 ms, far more rounds than that.
	require.Less(t, rounds, 10_000)
}

func TestALoopIsLiveInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done atomic.Bool
		go done.Store(true)
		var b Backoff
		for !done.Load() {
			b.Pause()
		}
	})
}

func TestPauseAllocatesNothing(t *testing.T) {
	require.Zero(t, testing.AllocsPerRun(100, func() {
		var b Backoff
		for range 10 {
			b.Pause()
		}
	}))
}

func BenchmarkBackoff(b *testing.B) {
	b.Run("until spun", func(b *testing.B) {
		for b.Loop() {
			var back Backoff
			for !back.Spun() {
				back.Pause()
			}
		}
	})
	b.Run("yield", func(b *testing.B) {
		var back Backoff
		for !back.Spun() {
			back.Pause()
		}
		for b.Loop() {
			back.Pause()
		}
	})
}
