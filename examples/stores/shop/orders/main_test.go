package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheStockRefusesAPausedShopsWrite(t *testing.T) {
	var out strings.Builder
	require.NoError(t, run(t.Context(), &out))
	require.Equal(t, "the second shop sold one piece: true\n"+
		"the late write of the first shop was refused: true\n"+
		"pieces left: 4\n", out.String())
}
