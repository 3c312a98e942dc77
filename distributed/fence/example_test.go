package fence_test

import (
	"errors"
	"fmt"

	"github.com/jucgo/locks/distributed/fence"
)

// Two writers: the first was paused, and the second got its lock meanwhile. The
// tokens would be those of their holds.
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
