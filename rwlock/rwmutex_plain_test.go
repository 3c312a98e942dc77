package rwlock_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/rwlock"
)

// plainModel is an RWMutex whose goroutines act one after the other, so that none ever waits.
type plainModel struct {
	writer int // or -1
	writes int
	reads  map[int]int
}

// alone reports whether no goroutine other than g reads or writes.
func (m *plainModel) alone(g int) bool {
	_, itself := m.reads[g]
	others := len(m.reads)
	if itself {
		others--
	}
	return others == 0 && (m.writer < 0 || m.writer == g)
}

// endWrite takes one hold from the writer.
func (m *plainModel) endWrite() {
	if m.writes--; m.writes == 0 {
		m.writer = -1
	}
}

// endRead takes one hold of g from the readers.
func (m *plainModel) endRead(g int) {
	if m.reads[g]--; m.reads[g] == 0 {
		delete(m.reads, g)
	}
}

// The first reader is in no slot, so a free slot does not say that its goroutine does not read.
func TestFirstReaderReentersWhileTheLockIsBiased(t *testing.T) {
	for name, again := range map[string]func(rw *rwlock.RWMutex) bool{
		"RLock":        func(rw *rwlock.RWMutex) bool { rw.RLock(); return true },
		"TryRLock":     (*rwlock.RWMutex).TryRLock,
		"TryRLockFor":  func(rw *rwlock.RWMutex) bool { return rw.TryRLockFor(0) },
		"RLockContext": func(rw *rwlock.RWMutex) bool { return rw.RLockContext(t.Context()) == nil },
	} {
		t.Run(name, func(t *testing.T) {
			var rw rwlock.RWMutex
			rw.RLock()
			rw.RUnlock() // makes the table
			rw.RLock()
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range 40 {
					rw.RLock()
					rw.RUnlock()
				}
			}()
			<-done
			require.True(t, rwlock.IsBiased(&rw))
			require.True(t, again(&rw))
			require.Equal(t, 2, rw.ReadHoldCount())
			require.Len(t, rw.Readers(), 1)
			require.True(t, rw.TryUpgrade(), "no other goroutine reads")
			require.Equal(t, 1, rw.ReadHoldCount())
			rw.Unlock()
			rw.RUnlock()
			require.True(t, rw.TryLock())
			rw.Unlock()
		})
	}
}

// The fast paths of the plain methods keep a reader in one of several places: as the first reader,
// in a slot, or among the collided. The holds that a goroutine sees do not depend on them.
func TestPlainMethodsOfSeveralGoroutinesAgreeWithModel(t *testing.T) {
	const parties = 3
	rapid.Check(t, func(t *rapid.T) {
		rw := rwlock.New(locks.Policy(rapid.IntRange(0, 1).Draw(t, "policy")))
		m := plainModel{writer: -1, reads: map[int]int{}}
		var calls [parties]chan func()
		var ids [parties]int64
		done := make(chan any)
		for g := range calls {
			calls[g] = make(chan func())
			go func() {
				for f := range calls[g] {
					func() {
						defer func() { done <- recover() }()
						f()
					}()
				}
			}()
			defer close(calls[g])
		}
		g := 0
		do := func(f func()) {
			calls[g] <- f
			if failed := <-done; failed != nil {
				panic(failed)
			}
		}
		for g = range calls {
			do(func() { ids[g] = goid.Get() })
		}
		mayRead := func() bool { return m.writer < 0 || m.writer == g }
		step := func(f func()) func(*rapid.T) {
			return func(t *rapid.T) {
				g = rapid.IntRange(0, parties-1).Draw(t, "goroutine")
				do(f)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"RLock": step(func() {
				if mayRead() {
					rw.RLock()
					m.reads[g]++
				}
			}),
			"TryRLock": step(func() {
				require.Equal(t, mayRead(), rw.TryRLock())
				if mayRead() {
					m.reads[g]++
				}
			}),
			"reads": step(func() {
				for range 40 {
					if mayRead() {
						rw.RLock()
						rw.RUnlock()
					}
				}
			}),
			"RUnlock": step(func() {
				if m.reads[g] > 0 {
					rw.RUnlock()
					m.endRead(g)
				} else {
					require.Panics(t, rw.RUnlock)
				}
			}),
			"TryLock": step(func() {
				ok := m.writer == g || m.alone(g) && m.reads[g] == 0
				require.Equal(t, ok, rw.TryLock())
				if ok {
					m.writer = g
					m.writes++
				}
			}),
			"Unlock": step(func() {
				if m.writer != g {
					require.Panics(t, rw.Unlock)
					return
				}
				rw.Unlock()
				m.endWrite()
			}),
			"TryUpgrade": step(func() {
				if m.reads[g] == 0 {
					require.Panics(t, func() { rw.TryUpgrade() })
					return
				}
				ok := m.alone(g)
				require.Equal(t, ok, rw.TryUpgrade())
				if ok {
					m.endRead(g)
					m.writer = g
					m.writes++
				}
			}),
			"Downgrade": step(func() {
				if m.writer != g {
					require.Panics(t, rw.Downgrade)
					return
				}
				rw.Downgrade()
				m.reads[g]++
				m.endWrite()
			}),
			"": func(t *rapid.T) {
				var readers []int64
				for id := range m.reads {
					readers = append(readers, ids[id])
				}
				var all []int64
				for _, o := range rw.Readers() {
					all = append(all, int64(o))
				}
				require.ElementsMatch(t, readers, all)
				for g = range parties {
					do(func() {
						require.Equal(t, m.reads[g], rw.ReadHoldCount())
						require.Equal(t, m.writer == g, rw.WriteHoldCount() > 0)
					})
				}
			},
		})
		for _, g = range slices.Sorted(maps.Keys(m.reads)) {
			for range m.reads[g] {
				do(rw.RUnlock)
			}
		}
		if g = m.writer; g >= 0 {
			for range m.writes {
				do(rw.Unlock)
			}
		}
		require.True(t, rw.TryLock())
		rw.Unlock()
	})
}
