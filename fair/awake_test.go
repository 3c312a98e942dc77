package fair

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/syncq"
)

// An awake waiter without a processor relies on the flags of the word.
func TestNewcomerKeepsTheFlagsOfAnAwakeWaiter(t *testing.T) {
	for name, lock := range map[string]func(m *BargingMutex) bool{
		"Lock":       func(m *BargingMutex) bool { m.Lock(); return true },
		"TryLock":    (*BargingMutex).TryLock,
		"TryLockFor": func(m *BargingMutex) bool { return m.TryLockFor(0) },
	} {
		t.Run(name, func(t *testing.T) {
			var m BargingMutex
			m.s.Word.Store(syncq.Awake)
			require.True(t, lock(&m))
			require.Equal(t, syncq.Awake|syncq.Taken, m.s.Word.Load())
			m.Unlock()
			require.Equal(t, syncq.Awake, m.s.Word.Load())
		})
	}
}
