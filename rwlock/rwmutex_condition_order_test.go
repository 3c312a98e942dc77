package rwlock_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/internal/test/locktest"
	"github.com/jucgo/locks/rwlock"
)

func TestForeignConditionIsReportedBeforeAMissingHold(t *testing.T) {
	var rw, other rwlock.RWMutex
	own, foreign := rw.NewCond(), other.NewCond()
	queries := func(c *condition.Cond) []func() {
		return []func(){func() { rw.HasWaiters(c) }, func() { rw.WaitQueueLength(c) }}
	}
	check := func(c *condition.Cond, want error) {
		for _, query := range queries(c) {
			locktest.PanicsWith(t, want, query)
		}
	}
	check(nil, locks.ErrForeign)
	check(foreign, locks.ErrForeign)
	check(own, locks.ErrNotHeld)
	rw.Lock()
	check(nil, locks.ErrForeign)
	check(foreign, locks.ErrForeign)
	require.Zero(t, rw.WaitQueueLength(own))
	rw.Unlock()
	rw.RLock()
	check(own, locks.ErrNotHeld) // reading is not enough
	rw.RUnlock()
}

func TestReadersAndStampedViewsHaveNoConditions(t *testing.T) {
	var rw rwlock.RWMutex
	var l rwlock.StampedLock
	for _, view := range []any{rw.ReadLocker(), rw.RLocker(), l.ReadLocker(), l.WriteLocker()} {
		_, ok := view.(interface{ NewCond() *condition.Cond })
		require.False(t, ok)
		func() {
			defer func() {
				err, _ := recover().(error)
				require.ErrorIs(t, err, errors.ErrUnsupported, "%v", view)
			}()
			condition.New(view.(sync.Locker))
		}()
	}
	require.NotNil(t, condition.New(rw.WriteLocker().(sync.Locker)))
}
