package cas_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/cas"
)

// contended is how many steps each of two goroutines makes, so that they often meet between the
// load and the swap of one step. On one processor they meet only where the system interrupts one.
const contended = 100_000

// both runs f in two goroutines at once, with the numbers 0 and 1.
func both(f func(i int)) {
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

func TestNoPushIsLost(t *testing.T) {
	var s cas.Stack[int]
	both(func(int) {
		for range contended {
			s.Push(1)
		}
	})
	require.Equal(t, 2*contended, s.Len())
}

func TestNoValueIsPoppedTwice(t *testing.T) {
	var s cas.Stack[int]
	for i := range 2 * contended {
		s.Push(i)
	}
	var sums [2]int64
	both(func(i int) {
		sum := int64(0)
		for range contended {
			v, _ := s.Pop()
			sum += int64(v)
		}
		sums[i] = sum
	})
	require.Equal(t, int64(contended)*(2*contended-1), sums[0]+sums[1])
}

func TestNoStoreLosesAVersion(t *testing.T) {
	var v cas.Versioned[int]
	both(func(i int) {
		for range contended {
			v.Store(i)
		}
	})
	_, version := v.Load()
	require.EqualValues(t, 2*contended, version)
}

// One goroutine alone changes tags, and another goroutine alone changes values.
func TestAnAttemptThatSucceedsHasSetItsTag(t *testing.T) {
	forEachKind(t, func(t *testing.T, p pairs) {
		p.Store(0, 0)
		both(func(i int) {
			for n := range contended {
				value, tag := p.Load()
				if i == 1 {
					p.CompareAndSwap(value, 1-value, tag, tag)
				} else if p.Attempt(value, n%2) {
					if _, now := p.Load(); now != n%2 { // assert would take most of the time
						t.Errorf("the tag is %d, want %d", now, n%2)
						return
					}
				}
			}
		})
	})
}
