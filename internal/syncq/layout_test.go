//go:build go1.26 && !go1.27 && gc && (amd64 || arm64) && !race && !msan && !asan && !goexperiment.goroutineleakprofile && !locks_nolinkname

package syncq

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Each line that a hand-over has to fetch from another processor adds to the time in which nobody holds the lock.
func TestAHandOverTouchesOneCacheLineOfTheLockAndOneOfEachWaiter(t *testing.T) {
	const line = 64
	var n node
	require.LessOrEqual(t, unsafe.Offsetof(n.wake)+unsafe.Sizeof(n.wake), uintptr(line))
	require.LessOrEqual(t, unsafe.Sizeof(n), uintptr(2*line), "so that nodes begin with a line")

	var s Sync
	require.LessOrEqual(t, unsafe.Offsetof(s.pace)+unsafe.Offsetof(s.pace.ahead)+1, uintptr(line))
	require.LessOrEqual(t, unsafe.Sizeof(s), uintptr(96), "so that at least half of it is in one line, wherever it is")
}
