package bench

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, testbed.Children())
}
