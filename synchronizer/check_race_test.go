//go:build race

package synchronizer_test

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/synchronizer"
)

// countingRules look at more than their arguments.
type countingRules struct{ calls *atomic.Uint64 }

func (r countingRules) Acquire(w, _ uint64) (uint64, bool) { return w, r.calls.Add(1)%2 == 0 }
func (r countingRules) Release(w, _ uint64) (uint64, bool) { return r.calls.Add(1), true }

func TestRulesThatChangeTheirMindPanic(t *testing.T) {
	s := synchronizer.New(countingRules{new(atomic.Uint64)}, 0, locks.FIFO)
	const refused = "synchronizer: synchronizer_test.countingRules.Acquire(0, 7) " +
		"returned 0 first and 0 then: rules must be functions of their arguments"
	require.PanicsWithValue(t, refused, func() { s.TryAcquire(7) })
	require.Panics(t, func() { s.Release(7) })
}
