package main

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	locksdebug "github.com/jucgo/locks/debug/locks"
)

// The goroutines of the incident wait until the process of the test ends.
func TestThePageShowsTheCycleAndTheLockOfTheClerk(t *testing.T) {
	server := httptest.NewServer(locksdebug.Handler())
	defer server.Close()
	trouble()
	ask := func() string {
		answer, err := server.Client().Get(server.URL)
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return string(text)
	}
	text := ask()
	for !strings.Contains(text, "CYCLE of 2") || !strings.Contains(text, "which has exited; 3 waiters") {
		time.Sleep(time.Millisecond)
		text = ask()
	}
	require.Contains(t, text, "nothing inside can end it")
	require.Contains(t, text, "ORPHAN till is held by goroutine")
	require.Contains(t, text, ".transfer main.go")
}
