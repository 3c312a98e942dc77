package etcdlock_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/jucgo/locks/distributed/internal/testbed"
)

func TestMain(m *testing.M) {
	testbed.Play(map[string]testbed.Role{})
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/jucgo/locks/distributed/internal/testbed.start.func1.1"))
}
