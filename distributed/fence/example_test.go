package fence_test

import (
	"errors"
	"fmt"

	"github.com/jucgo/locks/distributed/fence"
)

// Two writers: the first was paused, and the second got its lock meanwhile. The tokens would come
// from their holds.
func ExampleGate() {
	var gate fence.Gate
	account := "empty"
	write := func(token uint64, text string) {
		err := gate.Do("account", token, func() error {
			account = text
			return nil
		})
		if errors.Is(err, fence.ErrStale) {
			fmt.Println("refused:", text)
		}
	}
	write(33, "by the first")
	write(34, "by the second")
	write(33, "by the first, late")
	fmt.Println(account)
	// Output:
	// refused: by the first, late
	// by the second
}

// A resource that was restored from a backup remembers no token. The backup has the highest one, so
// that a holder from before the restoration stays refused.
func ExampleGate_Raise() {
	var gate fence.Gate
	gate.Raise("ledger", 33) // as stored with the ledger
	fmt.Println("highest:", gate.Highest("ledger"))

	err := gate.Check("ledger", 32)
	fmt.Println("stale:", errors.Is(err, fence.ErrStale))
	// Output:
	// highest: 33
	// stale: true
}
