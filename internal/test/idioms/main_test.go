// Package idioms has the examples of the documentation of java.util.concurrent.locks, and those of
// Semaphore and CountDownLatch, as tests. The comment of each one has its place and name in Java. A
// program that comes from Java finds there what becomes of its code.
package idioms

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
