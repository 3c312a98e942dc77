package goid

import (
	"runtime"
	"sync"
	"testing"

	fastgoid "github.com/petermattis/goid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFastWayIsTrustedOnThisPlatform(t *testing.T) {
	require.NotZero(t, Fast(), "petermattis/goid does not know this Go version or platform")
}

func TestVerifyRefusesAConstantGetter(t *testing.T) {
	mine := Slow()
	require.False(t, verify(func() int64 { return 0 }))
	require.False(t, verify(func() int64 { return mine }), "right in the first goroutine only")
	require.True(t, verify(Slow))
	require.True(t, verify(fastgoid.Get))
}

func TestVerifyLeavesNoGoroutineBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 1000 {
		require.True(t, verify(Slow))
		require.LessOrEqual(t, runtime.NumGoroutine(), before) // goroutines of earlier tests may end
	}
}

func TestGetFallsBackToTheStackTrace(t *testing.T) {
	defer func(was int64) { trusted = was; SetRecording(false) }(trusted)
	want := fastgoid.Get()
	trusted = trust(func() int64 { return 2 })
	SetRecording(false)
	require.Zero(t, Fast())
	require.Equal(t, want, Get())
}

func TestARecordedFastWayLeavesGetAlone(t *testing.T) {
	want := Fast()
	require.False(t, SetRecording(true))
	require.True(t, Recording())
	require.Zero(t, Fast())
	require.Equal(t, want, Get())
	require.Equal(t, want, Slow())
	require.True(t, SetRecording(false))
	require.False(t, Recording())
	require.Equal(t, want, Fast())
}

func TestGoroutinesThatLiveTogetherHaveDistinctIDs(t *testing.T) {
	for name, get := range map[string]func() int64{"fast": Get, "slow": Slow} {
		t.Run(name, func(t *testing.T) {
			const n = 200
			var (
				mu   sync.Mutex
				seen = map[int64]bool{}
				wg   sync.WaitGroup
				done = make(chan struct{})
			)
			for range n {
				wg.Add(1)
				go func() {
					id := get()
					mu.Lock()
					seen[id] = true
					mu.Unlock()
					wg.Done()
					<-done
				}()
			}
			wg.Wait()
			close(done)
			require.Len(t, seen, n)
		})
	}
}

func TestParseReadsTheHeaderOfAStackTrace(t *testing.T) {
	require.EqualValues(t, 1, parse([]byte("goroutine 1 [running]:\n")))
	require.Equal(t, int64(1234567890123), parse([]byte("goroutine 1234567890123 [running, synctest bubble 7]:")))
	for _, bad := range []string{
		"", "goroutine ", "goroutine x [", "goroutine 12", "goroutine 0 [", "goroutine 99999999999999999999 [",
		"thread 1 [",
	} {
		require.Panics(t, func() { parse([]byte(bad)) }, bad)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("goroutine 1 [running]:"))
	f.Fuzz(func(t *testing.T, trace []byte) {
		defer func() { _ = recover() }()
		if id := parse(trace); id <= 0 {
			t.Fatalf("parse(%q) = %d", trace, id)
		}
	})
}

func BenchmarkGet(b *testing.B) {
	for b.Loop() {
		Get()
	}
}

func BenchmarkSlow(b *testing.B) {
	for b.Loop() {
		Slow()
	}
}
