//go:build !windows

package main

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// On Windows a process cannot be interrupted, but only be killed.
func TestAnInterruptedProgramReleasesItsLocks(t *testing.T) {
	temporaries(t)
	spec := "sqlite:" + filepath.Join(t.TempDir(), "db") // a lock of the dead would last for half a minute
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	args := []string{"-store", spec, "-processes", "2", "-tickets", "1000000"}
	err := run(ctx, args, strings.NewReader(""), watcher{"sold ticket 9", cancel}, io.Discard)
	require.ErrorIs(t, err, context.Canceled)
	s, err := openStore(t.Context(), spec)
	require.NoError(t, err)
	defer s.Close(t.Context())
	l := s.Locker("tickets")
	ok, err := l.TryLockContext(t.Context())
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, l.UnlockContext(t.Context()))
}
