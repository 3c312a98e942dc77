//go:build lockexplore

package explore

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/cas"
)

// between is an option: other goroutines may run inside of an operation of package cas, such as
// between its load and its swap.
func between(c *config) { c.inner = true }

// variable is a variable of package cas. It has an operation for each function of do, whose result
// is comparable.
type variable struct {
	do    []func(arg int) any
	last  []int                      // operations that read what is left
	model func() []func(arg int) any // the same operations of a variable for one goroutine
}

// call is one call of an operation.
type call struct {
	op, arg      int
	began, ended int64
	result       any
}

// fits reports whether the calls have the results of the model in an order in which no call comes
// before a call that had ended when it began.
func fits(calls []call, v variable, before []call) bool {
	if len(calls) == 0 {
		return true
	}
	for i, c := range calls {
		if slices.ContainsFunc(calls, func(other call) bool { return other.ended < c.began }) {
			continue
		}
		model := v.model()
		for _, b := range before {
			model[b.op](b.arg)
		}
		if model[c.op](c.arg) != c.result {
			continue
		}
		rest := slices.Delete(slices.Clone(calls), i, i+1)
		if fits(rest, v, append(slices.Clip(before), c)) {
			return true
		}
	}
	return false
}

// searchOrders searches programs of two goroutines: one makes two calls, and the other one makes a
// call meanwhile. Their operations are decisions. The last calls come after that.
func searchOrders(t *testing.T, newVariable func() variable) {
	t.Helper()
	r := correct(t, func(x *X) {
		v := newVariable()
		var clock atomic.Int64
		calls := make([]call, 3+len(v.last))
		perform := func(i, op, arg int) {
			c := call{op: op, arg: arg, began: clock.Add(1)}
			c.result = v.do[op](arg)
			c.ended = clock.Add(1)
			calls[i] = c
		}
		x.Go("one", func() {
			perform(0, x.Choose(len(v.do)), 0)
			perform(1, x.Choose(len(v.do)), 1)
		})
		x.Go("two", func() { perform(2, x.Choose(len(v.do)), 0) })
		x.Wait()
		for i, op := range v.last {
			perform(3+i, op, 0)
		}
		x.Check(fits(calls, v, nil), "no order of the calls explains their results: %v", calls)
	}, between, Preemptions(1))
	require.NotEmpty(t, r.complete)
	t.Log(r.schedules, r.complete)
}

func TestAStackHasOneOrderUnderAllSchedules(t *testing.T) {
	searchOrders(t, func() variable {
		var s cas.Stack[int]
		pop := func(value int, ok bool) any { return fmt.Sprint(value, ok) }
		return variable{
			do: []func(int) any{
				func(arg int) any { s.Push(arg); return nil },
				func(int) any { return pop(s.Pop()) },
				func(int) any { return s.Len() },
			},
			last: []int{2, 1, 1},
			model: func() []func(int) any {
				var values []int
				return []func(int) any{
					func(arg int) any { values = append(values, arg); return nil },
					func(int) any {
						if len(values) == 0 {
							return pop(0, false)
						}
						top := values[len(values)-1]
						values = values[:len(values)-1]
						return pop(top, true)
					},
					func(int) any { return len(values) },
				}
			},
		}
	})
}

// pairOps are the operations of a variable that is a number and a tag.
type pairOps struct {
	load    func() (value, tag int)
	store   func(value, tag int)
	swap    func(old, value, oldTag, tag int) bool
	attempt func(value, tag int) bool
}

// pairs are variables of a number and a tag, which are 0.
var pairs = map[string]func() pairOps{
	"Packed": func() pairOps {
		var p cas.Packed
		return pairOps{
			func() (int, int) { value, stamp := p.Load(); return int(value), int(stamp) },
			func(value, tag int) { p.Store(uint32(value), uint32(tag)) },
			func(old, value, oldTag, tag int) bool {
				return p.CompareAndSwap(uint32(old), uint32(value), uint32(oldTag), uint32(tag))
			},
			func(value, tag int) bool { return p.AttemptStamp(uint32(value), uint32(tag)) },
		}
	},
	"Stamped": func() pairOps {
		s := cas.NewStamped(&targets[0], 0)
		return pairOps{
			func() (int, int) { ref, stamp := s.Load(); return *ref, int(stamp) },
			func(value, tag int) { s.Store(&targets[value], uint64(tag)) },
			func(old, value, oldTag, tag int) bool {
				return s.CompareAndSwap(&targets[old], &targets[value], uint64(oldTag), uint64(tag))
			},
			func(value, tag int) bool { return s.AttemptStamp(&targets[value], uint64(tag)) },
		}
	},
	"Marked": func() pairOps {
		m := cas.NewMarked(&targets[0], false)
		return pairOps{
			func() (int, int) {
				ref, mark := m.Load()
				if mark {
					return *ref, 1
				}
				return *ref, 0
			},
			func(value, tag int) { m.Store(&targets[value], tag == 1) },
			func(old, value, oldTag, tag int) bool {
				return m.CompareAndSwap(&targets[old], &targets[value], oldTag == 1, tag == 1)
			},
			func(value, tag int) bool { return m.AttemptMark(&targets[value], tag == 1) },
		}
	},
}

// targets are what the references of pairs lead to.
var targets = [2]int{0, 1}

func TestAPairHasOneOrderUnderAllSchedules(t *testing.T) {
	for name, newPair := range pairs {
		t.Run(name, func(t *testing.T) {
			searchOrders(t, func() variable {
				p := newPair()
				return variable{
					do: []func(int) any{
						func(int) any { value, tag := p.load(); return [2]int{value, tag} },
						func(arg int) any { return p.swap(arg, 1-arg, arg, 1-arg) },
						func(arg int) any { return p.swap(arg, arg, 1-arg, arg) },
						func(arg int) any { return p.attempt(arg, 1-arg) },
						func(arg int) any { p.store(arg, arg); return nil },
					},
					last: []int{0},
					model: func() []func(int) any {
						var is [2]int
						change := func(from, to [2]int) bool {
							if is != from {
								return false
							}
							is = to
							return true
						}
						return []func(int) any{
							func(int) any { return is },
							func(arg int) any { return change([2]int{arg, arg}, [2]int{1 - arg, 1 - arg}) },
							func(arg int) any { return change([2]int{arg, 1 - arg}, [2]int{arg, arg}) },
							func(arg int) any {
								return change([2]int{arg, is[1]}, [2]int{arg, 1 - arg})
							},
							func(arg int) any { is = [2]int{arg, arg}; return nil },
						}
					},
				}
			})
		})
	}
}

func TestAVersionedHasOneOrderUnderAllSchedules(t *testing.T) {
	searchOrders(t, func() variable {
		var v cas.Versioned[int]
		loaded := func(value int, version uint64) any { return fmt.Sprint(value, version) }
		return variable{
			do: []func(int) any{
				func(int) any { return loaded(v.Load()) },
				func(arg int) any { return v.Store(arg + 1) },
				func(arg int) any { return v.CompareAndSwap(uint64(arg), arg+10) },
			},
			last: []int{0},
			model: func() []func(int) any {
				value, version := 0, uint64(0)
				set := func(to int) { value, version = to, version+1 }
				return []func(int) any{
					func(int) any { return loaded(value, version) },
					func(arg int) any { set(arg + 1); return version },
					func(arg int) any {
						if version != uint64(arg) {
							return false
						}
						set(arg + 10)
						return true
					},
				}
			},
		}
	})
}
