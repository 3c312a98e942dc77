package locktest

import (
	"context"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/syncq"
)

// Barging checks how long a newcomer can overtake a waiter that is awake and has no processor. The
// kinds are of locks that stay what they are while nobody waits, so not of package keyed.
var Barging = []Situation{
	{"an awake waiter is overtaken for little more than a millisecond", func(t *testing.T, k Kind) {
		for name, lock := range map[string]func(ctx context.Context, l Lock) bool{
			"Lock":           func(_ context.Context, l Lock) bool { l.Lock(); return true },
			"TryLock":        func(_ context.Context, l Lock) bool { return l.TryLock() },
			"TryLockFor":     func(_ context.Context, l Lock) bool { return l.TryLockFor(time.Hour) },
			"LockContext":    func(ctx context.Context, l Lock) bool { return l.LockContext(ctx) == nil },
			"TryLockContext": func(ctx context.Context, l Lock) bool { ok, _ := l.TryLockContext(ctx); return ok },
		} {
			if !k.FIFO {
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { overtake(t, k.New(), lock) })
				})
			}
		}
	}},
}

// engine returns the synchronizer of l, which begins the field s of each lock of this module.
func engine(l Lock) *syncq.Sync {
	return (*syncq.Sync)(reflect.ValueOf(l.NewCond().Locker()).Elem().FieldByName("s").Addr().UnsafePointer())
}

// overtake has the test play a waiter that is woken and never runs. lock acquires l again and
// again.
func overtake(t *testing.T, l Lock, lock func(context.Context, Lock) bool) {
	l.Lock()
	s := engine(l)
	w, waits := syncq.Begin(s, syncq.Owned(1<<40))
	require.True(t, waits)
	l.Unlock()
	<-w.Permits()
	for range 200 {
		require.True(t, lock(t.Context(), l), "the waiter has not waited for long")
		l.Unlock()
	}
	require.False(t, w.Granted())

	time.Sleep(syncq.MaxBarging)
	for n := 0; !w.Granted(); n++ {
		require.Less(t, n, 1000, "the lock is never reserved for the waiter")
		require.True(t, lock(t.Context(), l))
		l.Unlock()
	}
	require.False(t, l.TryLock())
	require.False(t, w.Woken())
	require.Equal(t, syncq.Acquired, w.Finish())
	require.True(t, s.Unlock())
	require.False(t, l.IsLocked())
}
