package rwlock

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/syncq"
)

// A waiter that is awake and has still to run relies on the flags of the word.
func TestANewcomerKeepsTheFlagsOfAnAwakeWaiter(t *testing.T) {
	for name, hold := range map[string]struct {
		lock   func(rw *RWMutex) bool
		unlock func(rw *RWMutex)
		reads  bool
	}{
		"Lock":     {func(rw *RWMutex) bool { rw.Lock(); return true }, (*RWMutex).Unlock, false},
		"TryLock":  {(*RWMutex).TryLock, (*RWMutex).Unlock, false},
		"RLock":    {func(rw *RWMutex) bool { rw.RLock(); return true }, (*RWMutex).RUnlock, true},
		"TryRLock": {(*RWMutex).TryRLock, (*RWMutex).RUnlock, true},
	} {
		t.Run(name, func(t *testing.T) {
			value := syncq.Value(goid.Get())
			if hold.reads {
				value = syncq.OneShared
			}
			for _, table := range []bool{false, true} {
				var rw RWMutex
				if table {
					rw.RLock()
					rw.RUnlock()
				}
				rw.s.Word.Store(syncq.Awake)
				require.True(t, hold.lock(&rw))
				require.Equal(t, syncq.Awake|value, rw.s.Word.Load())
				hold.unlock(&rw)
				require.Equal(t, syncq.Awake, rw.s.Word.Load())
			}
		})
	}
}
