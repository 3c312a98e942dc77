package cas_test

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jucgo/locks/cas"
)

// pairs has the methods that Stamped, Marked and Packed share. The values are small numbers, which
// an adapter turns into whatever its type takes.
type pairs interface {
	Load() (value, tag int)
	Store(value, tag int)
	CompareAndSwap(oldValue, newValue, oldTag, newTag int) bool
	Attempt(value, tag int) bool
}

// objects are the referents; number 0 is nil. They are equal, so that only their identity tells
// them apart.
var objects = [...]*string{nil, new(string), new(string), new(string)}

func number(ref *string) int {
	for i, each := range objects {
		if each == ref {
			return i
		}
	}
	panic("a reference from nowhere")
}

type stamped struct{ cas.Stamped[string] }

func (s *stamped) Load() (value, tag int) {
	ref, stamp := s.Stamped.Load()
	return number(ref), int(stamp)
}
func (s *stamped) Store(value, tag int) { s.Stamped.Store(objects[value], uint64(tag)) }
func (s *stamped) CompareAndSwap(oldValue, newValue, oldTag, newTag int) bool {
	return s.Stamped.CompareAndSwap(objects[oldValue], objects[newValue], uint64(oldTag), uint64(newTag))
}
func (s *stamped) Attempt(value, tag int) bool {
	return s.AttemptStamp(objects[value], uint64(tag))
}

type marked struct{ cas.Marked[string] }

func tagOf(mark bool) int {
	if mark {
		return 1
	}
	return 0
}
func (m *marked) Load() (value, tag int) {
	ref, mark := m.Marked.Load()
	return number(ref), tagOf(mark)
}
func (m *marked) Store(value, tag int) { m.Marked.Store(objects[value], tag == 1) }
func (m *marked) CompareAndSwap(oldValue, newValue, oldTag, newTag int) bool {
	return m.Marked.CompareAndSwap(objects[oldValue], objects[newValue], oldTag == 1, newTag == 1)
}
func (m *marked) Attempt(value, tag int) bool { return m.AttemptMark(objects[value], tag == 1) }

type packed struct{ cas.Packed }

func (p *packed) Load() (value, tag int) {
	v, stamp := p.Packed.Load()
	return int(v), int(stamp)
}
func (p *packed) Store(value, tag int) { p.Packed.Store(uint32(value), uint32(tag)) }
func (p *packed) CompareAndSwap(oldValue, newValue, oldTag, newTag int) bool {
	return p.Packed.CompareAndSwap(uint32(oldValue), uint32(newValue), uint32(oldTag), uint32(newTag))
}
func (p *packed) Attempt(value, tag int) bool { return p.AttemptStamp(uint32(value), uint32(tag)) }

// kinds has each type, its highest value and tag.
var kinds = []struct {
	name      string
	make      func() pairs
	val, tags int
}{
	{"Stamped", func() pairs { return new(stamped) }, 3, 3},
	{"Marked", func() pairs { return new(marked) }, 3, 1},
	{"Packed", func() pairs { return new(packed) }, 3, 3},
}

func forEachKind(t *testing.T, test func(t *testing.T, p pairs)) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) { test(t, kind.make()) })
	}
}

func requireIs(t require.TestingT, p pairs, value, tag int) {
	v, s := p.Load()
	require.Equal(t, [2]int{value, tag}, [2]int{v, s})
}

func TestTheZeroPairIsReadyToUse(t *testing.T) {
	forEachKind(t, func(t *testing.T, p pairs) {
		requireIs(t, p, 0, 0)
		require.False(t, p.CompareAndSwap(1, 2, 0, 0))
		require.True(t, p.CompareAndSwap(0, 0, 0, 0), "that changes nothing is no failure")
		require.True(t, p.CompareAndSwap(0, 1, 0, 1))
		requireIs(t, p, 1, 1)
	})
	forEachKind(t, func(t *testing.T, p pairs) {
		require.True(t, p.Attempt(0, 1))
		requireIs(t, p, 0, 1)
	})
}

func TestEitherUnexpectedHalfFailsTheSwap(t *testing.T) {
	forEachKind(t, func(t *testing.T, p pairs) {
		p.Store(1, 0)
		require.False(t, p.CompareAndSwap(1, 2, 1, 0), "right reference, wrong tag")
		requireIs(t, p, 1, 0)
		require.False(t, p.CompareAndSwap(2, 3, 0, 1), "wrong reference, right tag")
		requireIs(t, p, 1, 0)
		require.False(t, p.CompareAndSwap(2, 3, 1, 0), "both wrong")
		requireIs(t, p, 1, 0)
		require.False(t, p.CompareAndSwap(1, 1, 1, 1), "wrong, and nothing to change")
		requireIs(t, p, 1, 0)
		require.True(t, p.CompareAndSwap(1, 2, 0, 1))
		requireIs(t, p, 2, 1)
	})
}

func TestAnAttemptWithTheWrongReferenceFails(t *testing.T) {
	forEachKind(t, func(t *testing.T, p pairs) {
		p.Store(1, 0)
		require.False(t, p.Attempt(2, 1))
		require.False(t, p.Attempt(0, 1))
		require.False(t, p.Attempt(2, 0), "also if there is nothing to change")
		requireIs(t, p, 1, 0)
		require.True(t, p.Attempt(1, 0))
		require.True(t, p.Attempt(1, 1))
		requireIs(t, p, 1, 1)
	})
}

func TestOthersSeeASwapOfOnlyTheTag(t *testing.T) {
	forEachKind(t, func(t *testing.T, p pairs) {
		p.Store(1, 0)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for !p.CompareAndSwap(1, 2, 1, 0) {
				if _, tag := p.Load(); tag == 1 {
					continue
				}
			}
		}()
		require.True(t, p.CompareAndSwap(1, 1, 0, 1))
		<-done
		requireIs(t, p, 2, 0)
	})
}

func TestPairsBehaveAsTheirModelDoes(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, rapid.MakeCheck(func(t *rapid.T) {
			p := kind.make()
			var value, tag int
			val, tags := rapid.IntRange(0, kind.val), rapid.IntRange(0, kind.tags)
			t.Repeat(map[string]func(*rapid.T){
				"": func(t *rapid.T) { requireIs(t, p, value, tag) },
				"store": func(t *rapid.T) {
					value, tag = val.Draw(t, "value"), tags.Draw(t, "tag")
					p.Store(value, tag)
				},
				"swap": func(t *rapid.T) {
					ov, nv := val.Draw(t, "old value"), val.Draw(t, "new value")
					ot, nt := tags.Draw(t, "old tag"), tags.Draw(t, "new tag")
					want := ov == value && ot == tag
					require.Equal(t, want, p.CompareAndSwap(ov, nv, ot, nt))
					if want {
						value, tag = nv, nt
					}
				},
				"attempt": func(t *rapid.T) {
					v, nt := val.Draw(t, "value"), tags.Draw(t, "tag")
					require.Equal(t, v == value, p.Attempt(v, nt))
					if v == value {
						tag = nt
					}
				},
			})
		}))
	}
}

// TestAChangeToTheSameValueFailsNobody stores over and over what is there already. A
// swap that compared the internal pair, rather than its contents, would lose against that.
func TestAChangeToTheSameValueFailsNobody(t *testing.T) {
	forEachKind(t, func(t *testing.T, p pairs) {
		p.Store(1, 0)
		var stop atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for !stop.Load() {
				p.Store(1, 0)
			}
		})
		for range 20_000 {
			if !p.CompareAndSwap(1, 1, 0, 0) || !p.Attempt(1, 0) {
				t.Error("failed for no reason")
				break
			}
		}
		stop.Store(true)
		wg.Wait()
	})
	t.Run("swap to another pair and back", func(t *testing.T) {
		a := new(int)
		s := cas.NewStamped(a, 0)
		var stop atomic.Bool
		var wg sync.WaitGroup
		wg.Go(func() {
			for !stop.Load() {
				s.Store(a, 1)
			}
		})
		s.Store(a, 1)
		for range 20_000 {
			// Only this goroutine ever stores anything else than (a, 1), and it does so by a swap
			// that must succeed.
			if !s.CompareAndSwap(a, a, 1, 2) {
				t.Error("failed for no reason")
				break
			}
			s.Store(a, 1)
		}
		stop.Store(true)
		wg.Wait()
	})
}

// TestHalvesAreNeverTorn has goroutines count both halves up together, and others look.
func TestHalvesAreNeverTorn(t *testing.T) {
	const each = 3_000
	refs := make([]int, 4*each+1)
	s := cas.NewStamped(&refs[0], 0)
	var p cas.Packed
	p.Store(7, 0)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range each {
				for {
					ref, stamp := s.Load()
					if ref != &refs[stamp] {
						t.Error("a reference with another one's stamp")
						return
					}
					if s.CompareAndSwap(ref, &refs[stamp+1], stamp, stamp+1) {
						break
					}
				}
				for {
					value, stamp := p.Load()
					if value != stamp+7 {
						t.Error("a value with another one's stamp")
						return
					}
					if p.CompareAndSwap(value, value+1, stamp, stamp+1) {
						break
					}
				}
			}
		})
	}
	wg.Wait()
	_, stamp := s.Load()
	require.EqualValues(t, 4*each, stamp)
	value, packedStamp := p.Load()
	require.EqualValues(t, 4*each, packedStamp)
	require.EqualValues(t, 4*each+7, value)
}

func TestPackedTakesTheWholeRangeOfBoth(t *testing.T) {
	var p cas.Packed
	p.Store(math.MaxUint32, math.MaxUint32)
	value, stamp := p.Load()
	require.EqualValues(t, uint32(math.MaxUint32), value)
	require.EqualValues(t, uint32(math.MaxUint32), stamp)
	require.True(t, p.CompareAndSwap(value, value, stamp, stamp+1))
	value, stamp = p.Load()
	require.EqualValues(t, uint32(math.MaxUint32), value, "a stamp that wraps leaves it alone")
	require.Zero(t, stamp)
	require.False(t, p.CompareAndSwap(0, 1, math.MaxUint32, 0), "halves are not exchanged")
}

func TestConstructorsSetBothHalves(t *testing.T) {
	x := new(int)
	ref, stamp := cas.NewStamped(x, 7).Load()
	require.Same(t, x, ref)
	require.EqualValues(t, 7, stamp)
	ref, mark := cas.NewMarked(x, true).Load()
	require.Same(t, x, ref)
	require.True(t, mark)
}

func TestAChangeAllocatesOnceAndAFailureNever(t *testing.T) {
	x, y := new(int), new(int)
	s := cas.NewStamped(x, 0)
	stamp := uint64(0)
	require.EqualValues(t, 1, testing.AllocsPerRun(100, func() {
		s.CompareAndSwap(x, x, stamp, stamp+1)
		stamp++
	}))
	require.EqualValues(t, 1, testing.AllocsPerRun(100, func() {
		stamp++
		s.AttemptStamp(x, stamp)
	}))
	require.Zero(t, testing.AllocsPerRun(100, func() {
		s.Load()
		s.CompareAndSwap(x, y, stamp+1, 0)
		s.CompareAndSwap(y, x, stamp, 0)
		s.CompareAndSwap(x, x, stamp, stamp)
		s.AttemptStamp(y, 0)
		s.AttemptStamp(x, stamp)
	}))
	m := cas.NewMarked(x, false)
	mark := false
	require.EqualValues(t, 1, testing.AllocsPerRun(100, func() {
		mark = !mark
		m.AttemptMark(x, mark)
	}))
	var p cas.Packed
	require.Zero(t, testing.AllocsPerRun(100, func() {
		value, stamp := p.Load()
		p.CompareAndSwap(value, value+1, stamp, stamp+1)
		p.AttemptStamp(value+1, stamp)
		p.Store(1, 2)
	}))
}
