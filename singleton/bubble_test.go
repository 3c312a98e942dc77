package singleton

import (
	"context"
	"runtime/pprof"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

func TestLabelsDoNotChangeABubblesName(t *testing.T) {
	t.Setenv("GODEBUG", "tracebacklabels=1") // the default of a program with go 1.27 in its go.mod
	require.Empty(t, bubble())
	labels := pprof.Labels("query", "[1], synctest bubble 2]")
	pprof.Do(t.Context(), labels, func(context.Context) { require.Empty(t, bubble()) })
	synctest.Test(t, func(t *testing.T) {
		name := bubble()
		require.Regexp(t, `^\d+$`, name)
		pprof.Do(t.Context(), labels, func(context.Context) { require.Equal(t, name, bubble()) })
	})
}
