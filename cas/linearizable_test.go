package cas_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/jucgo/locks/cas"
)

// record runs op in several goroutines, ops times each, and returns what happened when.
func record(goroutines, ops int, op func(r *rand.Rand) (input, output any)) []porcupine.Operation {
	start := time.Now()
	histories := make([][]porcupine.Operation, goroutines)
	var wg sync.WaitGroup
	seed := rand.Uint64()
	for i := range goroutines {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for range ops {
				if r.IntN(4) == 0 {
					runtime.Gosched()
				}
				call := time.Since(start)
				input, output := op(r)
				histories[i] = append(histories[i], porcupine.Operation{
					ClientId: i, Input: input, Call: int64(call), Output: output, Return: int64(time.Since(start)),
				})
			}
		})
	}
	wg.Wait()
	return slices.Concat(histories...)
}

func requireLinearizable(t *testing.T, m porcupine.Model, h []porcupine.Operation) {
	t.Helper()
	switch porcupine.CheckOperationsTimeout(m, h, time.Minute) {
	case porcupine.Illegal:
		t.Fatalf("not linearizable: %+v", h)
	case porcupine.Unknown:
		t.Log("too hard to tell")
	}
}

const rounds, goroutines, opsEach = 60, 4, 12

type pairInput struct {
	op             string
	ov, nv, ot, nt int
}
type pairOutput struct {
	value, tag int
	ok         bool
}

var pairModel = porcupine.Model{
	Init: func() any { return [2]int{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.([2]int), input.(pairInput), output.(pairOutput)
		switch in.op {
		case "load":
			return s == [2]int{out.value, out.tag}, s
		case "store":
			return true, [2]int{in.nv, in.nt}
		case "swap":
			want := s == [2]int{in.ov, in.ot}
			if want {
				s = [2]int{in.nv, in.nt}
			}
			return want == out.ok, s
		default:
			want := s[0] == in.ov
			if want {
				s[1] = in.nt
			}
			return want == out.ok, s
		}
	},
}

func TestPairsAreLinearizable(t *testing.T) {
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			for range rounds {
				p := kind.make()
				requireLinearizable(t, pairModel, record(goroutines, opsEach, func(r *rand.Rand) (any, any) {
					// Few values, so that most swaps have a chance.
					in := pairInput{ov: r.IntN(2), nv: r.IntN(2), ot: r.IntN(2), nt: r.IntN(2)}
					var out pairOutput
					switch r.IntN(5) {
					case 0:
						in.op = "load"
						out.value, out.tag = p.Load()
					case 1:
						in.op = "store"
						p.Store(in.nv, in.nt)
					case 2:
						in.op = "attempt"
						out.ok = p.Attempt(in.ov, in.nt)
					default:
						in.op = "swap"
						out.ok = p.CompareAndSwap(in.ov, in.nv, in.ot, in.nt)
					}
					return in, out
				}))
			}
		})
	}
}

type stackInput struct {
	op    string
	value int
}
type stackOutput struct {
	value int
	ok    bool
}

var stackModel = porcupine.Model{
	Init: func() any { return []int(nil) },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.([]int), input.(stackInput), output.(stackOutput)
		top := len(s) - 1
		switch in.op {
		case "push":
			return true, append(slices.Clone(s), in.value)
		case "len":
			return out.value == len(s), s
		}
		if top < 0 {
			return !out.ok, s
		}
		if !out.ok || out.value != s[top] {
			return false, s
		}
		if in.op == "peek" {
			return true, s
		}
		return true, s[:top]
	},
	Equal: func(a, b any) bool { return slices.Equal(a.([]int), b.([]int)) },
}

func TestAStackIsLinearizable(t *testing.T) {
	for range rounds {
		var s cas.Stack[int]
		requireLinearizable(t, stackModel, record(goroutines, opsEach, func(r *rand.Rand) (any, any) {
			in := stackInput{value: r.IntN(1000)}
			var out stackOutput
			switch r.IntN(6) {
			case 0:
				in.op = "len"
				out.value = s.Len()
			case 1:
				in.op = "peek"
				out.value, out.ok = s.Peek()
			case 2, 3:
				in.op = "pop"
				out.value, out.ok = s.Pop()
			default:
				in.op = "push"
				s.Push(in.value)
			}
			return in, out
		}))
	}
}
