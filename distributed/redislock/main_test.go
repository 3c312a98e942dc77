package redislock_test

import (
	"testing"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/distributed/internal/testbed"
)

func TestMain(m *testing.M) {
	testbed.Play(map[string]testbed.Role{"buy by majority": buyByMajority})
	logging.Disable() // of servers that are stopped on purpose
	// The thread that starts child processes lasts as long as this one.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/jucgo/locks/distributed/internal/testbed.start.func1.1"))
}
