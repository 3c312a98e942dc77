package scenarios

import (
	"context"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheReportOfTheSchedulesIsRead(t *testing.T) {
	e, err := exploreFourLines(t.Context())
	require.NoError(t, err)
	require.Equal(t, same([]string{"step", "main", "Ann", "Bob"}), e.schedule.Head)
	require.GreaterOrEqual(t, len(e.schedule.Rows), 8, "%s", e.report)
	for i, row := range e.schedule.Rows {
		require.Len(t, row, 4)
		filled := 0
		for _, cell := range row {
			if !cell.IsZero() {
				filled++
			}
		}
		require.Equal(t, 2, filled, "row %d has its number and one operation: %q", i, row)
	}
	require.Contains(t, e.report, "the balance is 1")
	require.Contains(t, e.report, e.replay)
	require.Greater(t, e.all, e.losing)
	require.Positive(t, e.losing)
	require.Positive(t, e.right)
}

func TestWithoutTheGoCommandNoScheduleIsTried(t *testing.T) {
	t.Setenv("PATH", "")
	_, err := exploreFourLines(t.Context())
	require.ErrorIs(t, err, exec.ErrNotFound)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = exploreFourLines(ctx)
	require.Error(t, err)
}

func TestAnotherOutputIsNoReport(t *testing.T) {
	_, err := readExplored("ok\n")
	require.Error(t, err)
}
