package filelock_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	testbed.Play(roles)
	goleak.VerifyTestMain(m, testbed.Children())
}
