package locksdebug

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestThePageRefreshesLessOftenIfStopping(t *testing.T) {
	require.Equal(t, 5, refreshSeconds(5*time.Second, 0.01))
	require.Equal(t, 27, refreshSeconds(5*time.Second, 0.27))
	require.Zero(t, refreshSeconds(0, 0.27), "never stays never")
}
