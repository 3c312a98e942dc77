package cas_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jucgo/locks/cas"
)

func TestAStackBehavesAsASliceDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s cas.Stack[int]
		var model []int
		last := func(t *rapid.T, v int, ok bool) {
			require.Equal(t, len(model) > 0, ok)
			if ok {
				require.Equal(t, model[len(model)-1], v)
			} else {
				require.Zero(t, v)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				require.Equal(t, len(model), s.Len())
				v, ok := s.Peek()
				last(t, v, ok)
			},
			"push": func(t *rapid.T) {
				v := rapid.Int().Draw(t, "value")
				s.Push(v)
				model = append(model, v)
			},
			"pop": func(t *rapid.T) {
				v, ok := s.Pop()
				last(t, v, ok)
				if ok {
					model = model[:len(model)-1]
				}
			},
		})
	})
}

func TestConcurrentPushAndPopLoseAndDoubleNothing(t *testing.T) {
	const parties, each = 8, 2_000
	var s cas.Stack[[2]int]
	var mu sync.Mutex
	seen := make(map[[2]int]int)
	var wg sync.WaitGroup
	for party := range parties {
		wg.Go(func() {
			var mine [][2]int
			for i := range each {
				s.Push([2]int{party, i})
				if i%2 == 0 {
					if v, ok := s.Pop(); ok {
						mine = append(mine, v)
					}
				}
			}
			mu.Lock()
			defer mu.Unlock()
			for _, v := range mine {
				seen[v]++
			}
		})
	}
	wg.Wait()
	require.Equal(t, parties*each-len(seen), s.Len())
	for {
		v, ok := s.Pop()
		if !ok {
			break
		}
		seen[v]++
	}
	require.Len(t, seen, parties*each)
	for v, n := range seen {
		require.Equal(t, 1, n, v)
	}
	require.Zero(t, s.Len())
}
