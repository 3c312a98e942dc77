package rwlock_test

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/rwlock"
)

func TestTheZeroSeqHoldsTheZeroValue(t *testing.T) {
	var n rwlock.Snapshot[int]
	require.Zero(t, n.Load())
	var s rwlock.Snapshot[string]
	require.Zero(t, s.Load())
	var e rwlock.Snapshot[error]
	require.NoError(t, e.Load())
	var p rwlock.Snapshot[*int]
	require.Nil(t, p.Load())
	var v rwlock.Snapshot[struct{}]
	require.Equal(t, struct{}{}, v.Load())
	require.Equal(t, 1, n.Update(func(old int) int { return old + 1 }))
}

func TestASeqGivesWhatWasStored(t *testing.T) {
	var s rwlock.Snapshot[[]string]
	s.Store([]string{"a"})
	require.Equal(t, []string{"a"}, s.Load())
	s.Store([]string{"b"})
	require.Equal(t, []string{"b"}, s.Load())
	require.Equal(t, []string{"b", "c"}, s.Update(func(old []string) []string { return append(old, "c") }))
	require.Equal(t, []string{"b", "c"}, s.Load())
	require.Nil(t, s.Update(func([]string) []string { return nil }))
	require.Nil(t, s.Load())
}

func TestAValueOnceLoadedDoesNotChange(t *testing.T) {
	var s rwlock.Snapshot[[4]int]
	v := [4]int{1, 2, 3, 4}
	s.Store(v)
	v[0] = 9
	got := s.Load()
	got[1] = 9
	s.Update(func(old [4]int) [4]int { old[2] = 9; return old })
	require.Equal(t, [4]int{1, 9, 3, 4}, got)
	require.Equal(t, [4]int{1, 2, 9, 4}, s.Load())
}

// seqWide has everything that must not be torn: pointers, a string, an interface.
type seqWide struct {
	n    int
	text string
	any  any
	ptr  *int
	last int
}

func TestALoadIsNeverTornAndOrdersMemory(t *testing.T) {
	stampedProcs(t, func(t *testing.T) {
		var s rwlock.Snapshot[seqWide]
		const writers, rounds = 3, 500
		var wg, readers sync.WaitGroup
		stop := make(chan struct{})
		for range 3 {
			readers.Go(func() {
				for before := 0; ; runtime.Gosched() {
					select {
					case <-stop:
						return
					default:
					}
					v := s.Load()
					if v.n < before || v.last != v.n {
						t.Errorf("%+v after %d", v, before)
						return
					}
					if v.n > 0 && (len(v.text) != v.n%50 || v.any != any(v.n) || *v.ptr != v.n) {
						t.Errorf("torn: %+v, %d", v, *v.ptr)
						return
					}
					before = v.n
				}
			})
		}
		for range writers {
			wg.Go(func() {
				for i := range rounds {
					next := func(old seqWide) seqWide {
						n := old.n + 1
						text := make([]byte, n%50)
						if i%8 == 0 {
							runtime.Gosched()
						}
						return seqWide{n, string(text), n, &n, n}
					}
					s.Update(next)
				}
			})
		}
		wg.Wait()
		close(stop)
		readers.Wait()
		require.Equal(t, writers*rounds, s.Load().n, "no update is lost")
	})
}

func TestAStoreDoesNotSplitAnUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s rwlock.Snapshot[int]
		go s.Update(func(old int) int { time.Sleep(time.Hour); return old + 1 })
		synctest.Wait()
		go s.Store(10)
		synctest.Wait()
		require.Zero(t, s.Load(), "a reader does not wait")
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		require.Equal(t, 10, s.Load())
	})
}

func TestSnapshotIsUnchangedAfterAnUpdateThatPanics(t *testing.T) {
	var s rwlock.Snapshot[int]
	s.Store(1)
	require.PanicsWithValue(t, "f", func() { s.Update(func(int) int { panic("f") }) })
	require.Equal(t, 1, s.Load())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Update(func(int) int { runtime.Goexit(); return 2 })
	}()
	<-done
	require.Equal(t, 1, s.Load())
	require.Equal(t, 2, s.Update(func(old int) int { return old + s.Load() }), "and works on; f may load")
}

func TestALoadAllocatesNothing(t *testing.T) {
	var s rwlock.Snapshot[seqWide]
	s.Store(seqWide{n: 1})
	n := 0
	require.Zero(t, testing.AllocsPerRun(100, func() { n += s.Load().n }))
	require.LessOrEqual(t, testing.AllocsPerRun(100, func() { s.Store(seqWide{n: n}) }), 1.0)
}

func TestANilFunctionPanicsAndLeavesTheValue(t *testing.T) {
	var s rwlock.Snapshot[int]
	s.Store(7)
	require.PanicsWithValue(t, locks.ErrNilFunc, func() { s.Update(nil) })
	require.Equal(t, 8, s.Update(func(n int) int { return n + 1 }), "nobody is left writing")
}
