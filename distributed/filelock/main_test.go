package filelock_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	testbed.Play(roles)
	const child = "github.com/jucgo/locks/internal/test/testbed.start.func1.1"
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(child))
}
