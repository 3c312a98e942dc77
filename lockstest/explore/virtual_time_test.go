package explore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/fair"
)

func TestAWaitForALockLetsVirtualTimePass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m fair.Mutex
		m.Lock()
		go func() {
			time.Sleep(time.Hour)
			m.Unlock()
		}()
		began := time.Now()
		require.False(t, m.TryLockFor(time.Minute), "it is held for an hour")
		m.Lock()
		require.Equal(t, time.Hour, time.Since(began))
		m.Unlock()
	})
}
