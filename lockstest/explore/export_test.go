package explore

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/sched"
)

// SetHang sets how long a run may take.
func SetHang(d time.Duration) { hang = d }

// SetStall sets how long a goroutine of a run may wait for a lock of package sync.
func SetStall(d time.Duration) { stall = d }

// Given is the environment variable with the tests of this package, built with the tag, for a
// process that need not build them.
const Given = "LOCKS_EXPLORE_GIVEN"

func init() {
	if binary := os.Getenv(Given); binary != "" {
		built.users, built.binary = 1, binary
	}
}

// Tagged returns the tests of this package, built with the tag.
func Tagged(t *testing.T) string {
	t.Helper()
	if sched.On {
		self, err := os.Executable()
		require.NoError(t, err)
		return self
	}
	binary, err := tagged(t)
	require.NoError(t, err)
	return binary
}
