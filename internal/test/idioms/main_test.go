// Package idioms has the examples of the documentation of java.util.concurrent.locks, Semaphore and
// CountDownLatch as tests. The comment of each test has its place and name in Java. Somebody who
// comes from Java finds there the Go form of each example.
package idioms

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
