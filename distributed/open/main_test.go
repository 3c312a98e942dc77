package open_test

import (
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	_ "github.com/jucgo/locks/distributed/open/all"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	testbed.Play(map[string]testbed.Role{"buy": buy})
	logging.Disable() // of servers that cannot be reached on purpose
	for _, name := range []string{"PGPASSWORD", "PGUSER", "PGHOST", "PGPORT", "PGSERVICE", "PGSSLMODE"} {
		os.Unsetenv(name)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/jucgo/locks/internal/test/testbed.start.func1.1"))
}
