//go:build lockexplore

package explore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
)

func abba(x *X) {
	var a, b fair.Mutex
	x.Go("one", func() {
		a.Lock()
		b.Lock()
		b.Unlock()
		a.Unlock()
	})
	x.Go("two", func() {
		b.Lock()
		a.Lock()
		a.Unlock()
		b.Unlock()
	})
}

func TestTwoLocksInTwoOrdersDeadlock(t *testing.T) {
	r := search(t, configure(nil), abba)
	require.NotNil(t, r.finding)
	require.Equal(t, Deadlock, r.finding.Kind)
	t.Log(r.report())
	for range 20 {
		again := search(t, configure([]Option{Replay(schedule(r.list))}), abba)
		require.NoError(t, again.err)
		again.schedules = r.schedules
		require.Equal(t, r.report(), again.report())
	}
}

func TestACounterUnderALockIsCorrect(t *testing.T) {
	r := search(t, configure(nil), func(x *X) {
		var m reentrant.Mutex
		n := 0
		for range 3 {
			x.Go("adds", func() {
				m.Lock()
				n++
				m.Unlock()
			})
		}
		x.Wait()
		x.Check(n == 3, "n is %d", n)
	})
	require.Nil(t, r.finding)
	t.Log(r.schedules, r.complete)
}
