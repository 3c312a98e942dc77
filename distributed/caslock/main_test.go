package caslock_test

import (
	"flag"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/jucgo/locks/internal/test/effort"
)

func TestMain(m *testing.M) {
	// The command line may set it again.
	if err := flag.Set("leasetest.long", effort.Part(3*time.Second).String()); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}
