package scenarios

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// accessed finds what a report says of an access, and the line of it in get.
var accessed = regexp.MustCompile(`(?i)(read|write) at 0x\w+ by goroutine \d+:\n +main\.get\(\)\n +main\.go:(\d+)`)

// The texts quote the race detector; this test asks it.
func TestTheRaceDetectorNamesFirstCheckAndAssignment(t *testing.T) {
	report, err := raceReport(t.Context())
	if err != nil {
		require.Empty(t, os.Getenv("CI"), "%v", err)
		t.Skip(err) // No C compiler, or a platform without the detector.
	}
	lines := strings.Split(plain, "\n")
	accesses := map[string]string{}
	for _, access := range accessed.FindAllStringSubmatch(report, -1) {
		number, err := strconv.Atoi(access[2])
		require.NoError(t, err)
		accesses[strings.ToLower(access[1])] = strings.TrimSpace(lines[number-1])
	}
	require.Len(t, accesses, 2, report)
	assert.Contains(t, accesses["read"], "if instance == nil { // the first check")
	assert.Contains(t, accesses["write"], "instance = &config")
	assert.NotContains(t, report, os.TempDir(), "folders are left out")
}

func TestWithoutTheRaceDetectorTheReasonIsTold(t *testing.T) {
	t.Setenv("PATH", "")
	_, err := raceReport(t.Context())
	require.ErrorIs(t, err, exec.ErrNotFound)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = raceReport(ctx)
	require.Error(t, err)
}
