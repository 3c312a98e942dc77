package spin_test

import (
	"fmt"
	"sync/atomic"

	"github.com/jucgo/locks/spin"
)

// A goroutine that has next to nothing to wait for spins; one that waits for longer gives way.
func ExampleBackoff() {
	var ready atomic.Bool
	go ready.Store(true)

	var b spin.Backoff
	for !ready.Load() {
		b.Pause()
	}
	fmt.Println("ready")
	// Output: ready
}
