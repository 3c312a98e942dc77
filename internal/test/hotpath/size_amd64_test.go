//go:build !race

package hotpath

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
	"github.com/jucgo/locks/rwlock"
	"github.com/jucgo/locks/spin"
)

func TestLocksFitIntoOneCacheLine(t *testing.T) {
	for name, size := range map[string]uintptr{
		"fair.Mutex":         unsafe.Sizeof(fair.Mutex{}),
		"fair.RWMutex":       unsafe.Sizeof(fair.RWMutex{}),
		"fair.BargingMutex":  unsafe.Sizeof(fair.BargingMutex{}),
		"reentrant.Mutex":    unsafe.Sizeof(reentrant.Mutex{}),
		"rwlock.RWMutex":     unsafe.Sizeof(rwlock.RWMutex{}),
		"rwlock.StampedLock": unsafe.Sizeof(rwlock.StampedLock{}),
		"spin.Mutex":         unsafe.Sizeof(spin.Mutex{}),
	} {
		require.LessOrEqual(t, size, uintptr(64), name)
	}
}
