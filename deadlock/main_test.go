package deadlock_test

import (
	"testing"

	"go.uber.org/goleak"
)

// Where the runtime can tell leaked goroutines, a test leaks some.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/jucgo/locks/deadlock_test.leakedWaiter"))
}
