package redlock_test

import (
	"flag"
	"testing"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	logging.Disable() // of servers that are stopped on purpose
	testbed.Play(map[string]testbed.Role{
		"buy by majority": buyByMajority, "both databases": bothDatabases,
	})
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		f.Value.Set("12") // the tests sleep most of the time
	}
	goleak.VerifyTestMain(m,
		testbed.Children(),
		// A closed client that is looking for its server notices within a second that it is closed.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}
