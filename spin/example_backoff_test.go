package spin_test

import (
	"fmt"
	"sync/atomic"

	"github.com/jucgo/locks/spin"
)

// A goroutine spins if its wait is short, and yields its processor if the wait takes longer.
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

// The waiter of a lock spins for as long as a hand-off takes. Then the waiter parks on a channel.
func ExampleBackoff_Spun() {
	wake := make(chan struct{})
	go close(wake)

	var b spin.Backoff
	for !b.Spun() {
		select {
		case <-wake:
			fmt.Println("woken while it spun")
			return
		default:
			b.Pause()
		}
	}
	<-wake
	fmt.Println("woken")
}
