package all_test

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
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_REGION": "", "AWS_DEFAULT_REGION": "", "AWS_PROFILE": "",
		"AWS_ENDPOINT_URL": "", "AWS_ENDPOINT_URL_S3": "",
		"STORAGE_EMULATOR_HOST": "",
	} {
		os.Setenv(name, value)
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/jucgo/locks/internal/test/testbed.start.func1.1"))
}
