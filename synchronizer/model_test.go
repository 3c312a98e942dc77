package synchronizer_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/synchronizer"
)

const modelSize = 5

// ask is a wait in the model, with its outcome.
type ask struct {
	n      uint64
	cancel context.CancelFunc
	done   bool // written by its goroutine, read after synctest.Wait
	err    error
}

// The model is the free permits and the queue. After each operation all goroutines rest, so that
// the outcome is certain.
func TestSyncAgreesWithItsModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			s := synchronizer.New(permitRules{modelSize}, modelSize, locks.FIFO)
			free, held := uint64(modelSize), uint64(0)
			var queue, ended []*ask
			admit := func() {
				for len(queue) > 0 && queue[0].n <= free {
					free -= queue[0].n
					held += queue[0].n
					ended, queue = append(ended, queue[0]), queue[1:]
				}
			}
			weight := rapid.Uint64Range(1, modelSize)
			rt.Repeat(map[string]func(*rapid.T){
				"acquire": func(rt *rapid.T) {
					ctx, cancel := context.WithCancel(t.Context())
					a := &ask{n: weight.Draw(rt, "n"), cancel: cancel}
					go func() { a.err = s.AcquireContext(ctx, a.n); a.done = true }()
					queue = append(queue, a)
					admit()
				},
				"try": func(rt *rapid.T) {
					n := weight.Draw(rt, "n")
					want := len(queue) == 0 && n <= free
					if s.TryAcquire(n) != want {
						rt.Fatalf("TryAcquire(%d) is not %v", n, want)
					}
					if want {
						free, held = free-n, held+n
					}
				},
				"wait in vain": func(rt *rapid.T) {
					n := weight.Draw(rt, "n")
					want := len(queue) == 0 && n <= free
					if s.AcquireFor(n, time.Second) != want {
						rt.Fatalf("AcquireFor(%d) is not %v", n, want)
					}
					if want {
						free, held = free-n, held+n
					}
				},
				"release": func(rt *rapid.T) {
					n := weight.Draw(rt, "n")
					if s.Release(n) != (n <= held) {
						rt.Fatalf("Release(%d) of %d is not %v", n, held, n <= held)
					}
					if n <= held {
						free, held = free+n, held-n
						admit()
					}
				},
				"cancel": func(rt *rapid.T) {
					if len(queue) == 0 {
						rt.Skip()
					}
					i := rapid.IntRange(0, len(queue)-1).Draw(rt, "i")
					a := queue[i]
					a.cancel()
					queue = slices.Delete(queue, i, i+1)
					admit()
					synctest.Wait()
					if !a.done || a.err == nil {
						rt.Fatalf("the cancelled wait returned %v, %v", a.done, a.err)
					}
				},
				"": func(rt *rapid.T) {
					synctest.Wait()
					if s.Word() != free || s.QueueLength() != len(queue) || s.HasQueued() != (len(queue) > 0) {
						rt.Fatalf("%d free and %d wait, want %d and %d", s.Word(), s.QueueLength(), free, len(queue))
					}
					for _, a := range ended {
						if !a.done || a.err != nil {
							rt.Fatalf("an admitted wait for %d returned %v, %v", a.n, a.done, a.err)
						}
						a.cancel()
					}
					ended = nil
					for _, a := range queue {
						if a.done {
							rt.Fatalf("a wait for %d returned %v before its turn", a.n, a.err)
						}
					}
				},
			})
			for _, a := range queue {
				a.cancel()
			}
		})
	})
}

// call is an operation in a history.
type call struct {
	op string
	n  uint64
	ok bool
}

// linear is a semaphore of modelSize whose operations take effect one after the other. The state
// is the free permits. A wait with a limit may fail at any time, and so may a try, if others
// wait.
var linear = porcupine.Model{
	Init: func() any { return uint64(modelSize) },
	Step: func(state, _, output any) (bool, any) {
		free, c := state.(uint64), output.(call)
		switch {
		case c.op == "word":
			return c.n == free, free
		case c.op == "release":
			return c.ok, free + c.n
		case !c.ok:
			return true, free
		}
		return c.n <= free, free - c.n
	},
	Equal: func(a, b any) bool { return a == b },
}

func TestConcurrentHistoriesAreLinearizable(t *testing.T) {
	const clients, rounds, operations = 4, 60, 12
	for _, p := range policies {
		for range rounds {
			s := synchronizer.New(permitRules{modelSize}, modelSize, p)
			var mu sync.Mutex
			var history []porcupine.Operation
			var clock atomic.Int64
			var wg sync.WaitGroup
			for client := range clients {
				wg.Go(func() {
					record := func(do func() call) call {
						began := clock.Add(1)
						c := do()
						ended := clock.Add(1)
						mu.Lock()
						history = append(history, porcupine.Operation{
							ClientId: client, Call: began, Output: c, Return: ended,
						})
						mu.Unlock()
						return c
					}
					for range operations {
						n := rand.Uint64N(modelSize) + 1
						got := record(func() call {
							switch rand.IntN(3) {
							case 0:
								return call{"try", n, s.TryAcquire(n)}
							case 1:
								d := time.Duration(rand.IntN(20)) * time.Microsecond
								return call{"limited", n, s.AcquireFor(n, d)}
							}
							s.Acquire(n)
							return call{"acquire", n, true}
						})
						record(func() call { return call{"word", s.Word(), true} })
						if got.ok {
							record(func() call { return call{"release", n, s.Release(n)} })
						}
					}
				})
			}
			wg.Wait()
			require.True(t, porcupine.CheckOperations(linear, history), "%v %v", p, history)
		}
	}
}
