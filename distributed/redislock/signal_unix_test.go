//go:build unix

package redislock_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// pause stops the server, which keeps its memory and its connections, until resume.
func (s *server) pause(tb testing.TB)  { require.NoError(tb, s.cmd.Process.Signal(syscall.SIGSTOP)) }
func (s *server) resume(tb testing.TB) { require.NoError(tb, s.cmd.Process.Signal(syscall.SIGCONT)) }
