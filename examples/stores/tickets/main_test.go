package main

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// build returns the command.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tickets")
	if runtime.GOOS == "windows" {
		path += ".exe"
	}
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	require.NoError(t, err, string(out))
	return path
}

func TestEachTicketIsSoldOnceUnderTheLock(t *testing.T) {
	tickets := build(t)
	out, err := exec.Command(tickets).CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "200 different numbers, the last one is 200")
	out, err = exec.Command(tickets, "-buyers", "7", "-processes", "3").CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "7 different numbers, the last one is 7")
}

func TestWithoutTheLockNumbersAreSoldTwice(t *testing.T) {
	tickets := build(t)
	require.Eventually(t, func() bool {
		out, err := exec.Command(tickets, "-unlocked").CombinedOutput()
		require.NoError(t, err, string(out))
		return !strings.Contains(string(out), "200 different numbers")
	}, time.Minute, time.Millisecond)
}

func TestWrongFlagsAndServersAreAnError(t *testing.T) {
	tickets := build(t)
	for _, args := range [][]string{
		{"-processes", "0"}, {"-buyers", "0"}, {"-processes", "300"}, {"more"}, {"-redis", "127.0.0.1:1"},
	} {
		out, err := exec.Command(tickets, args...).CombinedOutput()
		require.Error(t, err, "%q", args)
		require.Contains(t, string(out), "tickets: ")
	}
}
