package testbed

import (
	"path"
	"strings"
	"testing"
	"time"
)

// ConformanceLease returns the lease for the locks of a check of lockstest, which tb is. The
// checks of a loss wait for the renewal that finds it out. All others would fail if the lease
// ended on a machine that is busy: there it is longer than any of them takes.
func ConformanceLease(tb testing.TB) time.Duration {
	if strings.Contains(path.Base(tb.Name()), "Loss") {
		return 3 * time.Second
	}
	return time.Minute
}
