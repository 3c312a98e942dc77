package burst

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestOnlyALargeMapIsDroppedAndOnlyOnceItIsEmpty(t *testing.T) {
	var p Peak
	p.Grew(kept)
	require.False(t, p.IsOver(0), "a small map is kept")
	p.Grew(kept + 1)
	p.Grew(1)
	require.False(t, p.IsOver(1), "a map with entries is kept")
	require.True(t, p.IsOver(0))
	require.False(t, p.IsOver(0), "the next map is small")
}
