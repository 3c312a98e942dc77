package prefetch

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAnyAddressMayBeFetched(t *testing.T) {
	var here byte
	mapped := uintptr(unsafe.Pointer(&here))
	for _, a := range []uintptr{0, 1, 63, mapped, mapped + 1, math.MaxUint32, math.MaxUint / 2, math.MaxUint/2 + 1, math.MaxUint - 63, math.MaxUint} {
		Goroutine(a, mapped)
		Goroutine(mapped, a)
	}
}

func TestAFrameIsWhereItsCallerIs(t *testing.T) {
	const near = 512 // the most that a caller's frame has here, and that is fetched of it
	var here byte
	frame := Frame()
	if frame == 0 {
		return // a processor of which no instruction for it is known
	}
	mine := uintptr(unsafe.Pointer(&here))
	require.Less(t, max(frame, mine)-min(frame, mine), uintptr(near))
}
