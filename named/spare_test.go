package named

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/reentrant"
)

// of returns what l's key has now.
func of(l *Lock) (e *entry) {
	l.inspect(func(m *reentrant.Mutex) { e = l.set.shard(l.key).entries[l.key] })
	return e
}

func TestALockServesNoOtherKeyWhileAReleaseOfItIsUnderWay(t *testing.T) {
	ls := New()
	a, b := ls.For("a"), ls.For("b")
	a.Lock()
	late := ls.visit("a") // somebody's who is about to release it too
	a.Unlock()
	b.Lock()
	require.NotSame(t, late, of(b))
	b.Unlock()
	require.Equal(t, 1, ls.Len())
	ls.leave("a", late, 1)
	require.Zero(t, ls.Len())
}

// Its key is read without a lock, when deadlock detection reports what it found.
func TestALockThatDeadlockDetectionKnowsServesNoOtherKey(t *testing.T) {
	ls := New()
	a, b := ls.For("a"), ls.For("b")
	a.Lock()
	known := of(a)
	var wg sync.WaitGroup
	wg.Go(func() { a.TryLockFor(time.Millisecond) })
	wg.Wait()
	a.Unlock()
	b.Lock()
	require.NotSame(t, known, of(b))
	b.Unlock()
	require.Equal(t, "a", known.kind.Key)
}
