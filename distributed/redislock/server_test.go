package redislock_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/testbed"
)

// server is a redis-server of the test's own.
type server struct {
	addr string
	path string
	args []string
	proc *testbed.Process
	bus  string // of a cluster: the port of the others
}

// startServer runs redis-server on a free port of the loopback interface until the test ends. Without the program the test is
// skipped, but for continuous integration, where it fails.
func startServer(tb testing.TB, args ...string) *server {
	tb.Helper()
	path := testbed.Lookup(tb, "redis-server")
	port := testbed.Port(tb)
	dir := tb.TempDir()
	s := &server{addr: fmt.Sprintf("127.0.0.1:%d", port), path: path, args: append([]string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--dir", dir, "--logfile", filepath.Join(dir, "log"),
	}, args...)}
	s.restart(tb)
	return s
}

// kill ends the server with no chance for it to do anything.
func (s *server) kill() {
	s.proc.Kill()
}

// restart starts the server, which has ended, with no memory of what was before.
func (s *server) restart(tb testing.TB) {
	tb.Helper()
	s.proc = testbed.Start(tb, exec.Command(s.path, s.args...))
	c := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
	defer c.Close()
	require.Eventually(tb, func() bool { return c.Ping(context.Background()).Err() == nil }, 10*time.Second, 5*time.Millisecond)
}

// connect returns a client of addr that is closed with the test, after what is registered later. It gives up soon.
func connect(tb testing.TB, addr string) *redis.Client {
	tb.Helper()
	c := redis.NewClient(&redis.Options{
		Addr:                  addr,
		DialTimeout:           200 * time.Millisecond,
		DialerRetries:         1,
		ReadTimeout:           200 * time.Millisecond,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
	})
	tb.Cleanup(func() { c.Close() })
	return c
}

// pause stops the server, which keeps its memory and its connections, until resume.
func (s *server) pause(testing.TB)  { s.proc.Pause() }
func (s *server) resume(testing.TB) { s.proc.Resume() }
