package cas

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Two pairs with the same contents are the same to the caller, but not to a pointer swap.
func TestACompareAndSwapPassesAnEqualPair(t *testing.T) {
	type ref = reference[int, uint64]
	x, y := new(int), new(int)
	for _, tc := range []struct {
		name    string
		ref     *int
		tag     uint64
		swapped bool
	}{
		{"an equal pair", x, 1, true},
		{"another reference", y, 1, false},
		{"another tag", x, 2, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var r ref
			r.store(x, 1)
			stale := r.p.Load()
			r.store(tc.ref, tc.tag) // between the read and the swap
			require.Equal(t, tc.swapped, r.swapFrom(stale, x, y, 1, 3))
			got, tag := r.load()
			if tc.swapped {
				require.Same(t, y, got)
				require.EqualValues(t, 3, tag)
			} else {
				require.Same(t, tc.ref, got)
				require.Equal(t, tc.tag, tag)
			}
		})
	}
}
