//go:build go1.26 && !go1.27 && gc && !wasm && !race && !msan && !asan && !goexperiment.goroutineleakprofile && !locks_nolinkname

package park

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// lookAgain has the next wait that is timed find out whether there is a block profile.
func lookAgain() { looked.Store(0) }

func TestTheFirstWaitAndEvery64thFromThereAreTimed(t *testing.T) {
	defer profiled.Store(profiled.Swap(false))
	looked.Store(cputicks() + 1<<62) // nobody finds out meanwhile that there is a profile
	defer looked.Store(0)
	p := new(Place)
	var timed []int
	for i := range 3 * looks {
		p.Begin()
		if p.began > 0 {
			timed = append(timed, i)
		}
		p.Reset()
	}
	require.Equal(t, []int{0, looks, 2 * looks}, timed)
}
