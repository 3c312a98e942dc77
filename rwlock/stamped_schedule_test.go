package rwlock

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The test plays the waiters: they were told, and do not run yet.
func TestAWokenStampedWaiterIsUnparkedOnce(t *testing.T) {
	var l StampedLock
	held := l.WriteLock()
	var a, b stampedWaiter
	writer := stampedWaiter{write: true} // so that the readers are not sent
	l.guard.Lock()
	for _, n := range []*stampedWaiter{&a, &b, &writer} {
		n.place.Init()
		l.push(n)
	}
	first, k := l.settle(false)
	l.guard.Unlock()
	require.Zero(t, k, "%v", first)

	l.UnlockWrite(held)
	require.True(t, a.woken)
	a.place.Park()
	l.guard.Lock()
	first, k = l.settle(false)
	l.guard.Unlock()
	require.Zero(t, k, "the first waiter has its unpark")
	require.Nil(t, first)

	r := l.TryReadLock()
	require.NotZero(t, r)
	l.guard.Lock()
	first, k = l.settle(false)
	l.guard.Unlock()
	require.Equal(t, 1, k)
	require.Same(t, &b, first, "both are admitted, and only one of them sleeps")
	for _, st := range []Stamp{r, a.granted, b.granted} {
		l.UnlockRead(st)
	}
	st, _ := l.look(&writer, false)
	l.UnlockWrite(st)
	require.NoError(t, VerifyStamped(&l))
	require.False(t, l.IsReadLocked())
}
