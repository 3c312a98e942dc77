package keyed

import (
	"context"
	"reflect"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/condition"
)

// copied returns a copy of c, which vet would refuse.
func copied(c *condition.Cond) *condition.Cond {
	another := new(condition.Cond)
	reflect.ValueOf(another).Elem().Set(reflect.ValueOf(c).Elem())
	return another
}

func TestACopiedConditionKeepsItsKey(t *testing.T) {
	var ms Mutexes[int]
	filled := copied(ms.Of(1).NewCond())
	for range 3 {
		runtime.GC()
		time.Sleep(time.Millisecond) // the clean-ups have a goroutine of their own
		require.Equal(t, 1, ms.Len())
	}
	ms.Of(1).Lock()
	done := make(chan error)
	go func() {
		ms.Of(1).Lock()
		filled.Signal()
		ms.Of(1).Unlock()
		done <- nil
	}()
	require.NoError(t, filled.WaitContext(context.Background()))
	ms.Of(1).Unlock()
	require.NoError(t, <-done)
	runtime.KeepAlive(filled)

	filled = nil
	require.Eventually(t, func() bool {
		runtime.GC()
		return ms.Len() == 0
	}, time.Minute, time.Millisecond)
}
