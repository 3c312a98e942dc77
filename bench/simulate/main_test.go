package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEachNumberOfProcessorsHasALine(t *testing.T) {
	var out, errs bytes.Buffer
	require.Zero(t, run([]string{"-procs", "1,2", "-span", "1e5"}, &out, &errs))
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	require.Len(t, lines, 5)
	require.Empty(t, errs.String())
}

func TestWrongFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"-procs", "0"}, {"-procs", "x"}, {"-per", "0"}, {"-atomic", "0"},
		{"-inside", "-1"}, {"-inside", "NaN"}, {"-jitter", "2"},
		{"more"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, 2, run(args, &out, &errs), "%q", args)
		require.Contains(t, errs.String(), "simulate: ")
		require.Empty(t, out.String())
	}
	var out bytes.Buffer
	require.Zero(t, run([]string{"-h"}, &out, &out))
	require.Contains(t, out.String(), "-procs")
}
