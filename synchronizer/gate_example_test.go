package synchronizer_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jucgo/locks/synchronizer"
)

// gateRules: the word is 1 while the gate is open. The argument of a release is the next word.
type gateRules struct{}

func (gateRules) Acquire(w, _ uint64) (uint64, bool)    { return w, w == 1 }
func (gateRules) Release(_, next uint64) (uint64, bool) { return next, true }

// Gate lets goroutines through while it is open. Unlike a latch it can be closed again.
type Gate struct {
	s synchronizer.Sync[gateRules]
}

func (g *Gate) Open()                           { g.s.Release(1) }
func (g *Gate) Close()                          { g.s.Release(0) }
func (g *Gate) Pass(d time.Duration) bool       { return g.s.AcquireFor(0, d) }
func (g *Gate) Await(ctx context.Context) error { return g.s.AcquireContext(ctx, 0) }

func ExampleSync_gate() {
	var g Gate
	fmt.Println(g.Pass(0))
	g.Open()
	fmt.Println(g.Pass(0), g.Pass(0))
	g.Close()
	fmt.Println(g.Pass(time.Millisecond))
	// Output:
	// false
	// true true
	// false
}
