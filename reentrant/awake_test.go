package reentrant

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/syncq"
)

// An awake waiter without a processor relies on the flags of the word.
func TestNewcomerKeepsTheFlagsOfAnAwakeWaiter(t *testing.T) {
	for name, lock := range map[string]func(m *Mutex) bool{
		"Lock":       func(m *Mutex) bool { m.Lock(); return true },
		"TryLock":    (*Mutex).TryLock,
		"TryLockFor": func(m *Mutex) bool { return m.TryLockFor(0) },
	} {
		t.Run(name, func(t *testing.T) {
			var m Mutex
			m.s.Word.Store(syncq.Awake)
			require.True(t, lock(&m))
			require.Equal(t, syncq.Awake|syncq.Value(goid.Get()), m.s.Word.Load())
			m.Unlock()
			require.Equal(t, syncq.Awake, m.s.Word.Load())
		})
	}
}
