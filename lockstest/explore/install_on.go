//go:build lockexplore

package explore

import "github.com/jucgo/locks/internal/sched"

// install makes x the scheduler of the locks, or ends that if x is nil.
func install(x *X) {
	if x == nil {
		sched.Set(nil)
		return
	}
	sched.Set(hooks{x})
}
