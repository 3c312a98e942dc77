package suite

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// UncontendedPairsAllocateLittle fails if an uncontended lock and unlock allocate
// more objects than most says, by kind.
func UncontendedPairsAllocateLittle(t *testing.T, on Driver, most map[string]float64) {
	c := on.Open(t, Addr(t))
	for name, n := range most {
		l := AnyKind[name](c, name)
		pair := func() {
			_ = l.LockContext(Background)
			_ = l.UnlockContext(Background)
		}
		for range 300 { // also, tokens get as large as tokens that need memory
			pair()
		}
		if allocs := testing.AllocsPerRun(300, pair); !raceEnabled { // under which pools forget what they have
			require.LessOrEqual(t, allocs, n, name)
		}
	}
}
