package comingfrom

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/test/testbed"
)

// The page shows an annotated Java method, which compiles with the version of ShedLock that the
// page names. The Java programs of the other pages are compiled by the tests of
// distributed/interop.
func TestTheJavaOfShedLockCompiles(t *testing.T) {
	mvn := testbed.Lookup(t, "mvn")
	var out []byte
	var err error
	for try := range 3 { // what is not here yet comes over a network
		time.Sleep(time.Duration(try) * 10 * time.Second)
		cmd := exec.CommandContext(t.Context(), mvn, "-q", "-B", "-Dstyle.color=never", "clean", "compile")
		cmd.Dir = "shedlock"
		if out, err = cmd.CombinedOutput(); err == nil {
			return
		}
	}
	require.NoError(t, err, string(out))
}
