package redislock_test

import (
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
	*testbed.Process
	addr string
	path string
	args []string
	env  []string
	bus  string // of a cluster: the port of the others
}

// startServer runs redis-server on a free port of the loopback interface until the test ends. Without the program the test is
// skipped, but for continuous integration, where it fails.
func startServer(tb testing.TB, args ...string) *server {
	tb.Helper()
	return startServerEnv(tb, nil, args...)
}

// startServerEnv is startServer with more in the environment.
func startServerEnv(tb testing.TB, env []string, args ...string) *server {
	tb.Helper()
	path := testbed.Lookup(tb, "redis-server")
	port, dir := testbed.Port(tb), tb.TempDir()
	s := &server{addr: fmt.Sprintf("127.0.0.1:%d", port), path: path, env: env, args: append([]string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--dir", dir, "--logfile", filepath.Join(dir, "log"),
	}, args...)}
	s.restart(tb)
	return s
}

// restart starts the server, which has ended, with no memory of what was before.
func (s *server) restart(tb testing.TB) {
	tb.Helper()
	cmd := exec.Command(s.path, s.args...)
	if s.env != nil {
		cmd.Env = append(cmd.Environ(), s.env...)
	}
	s.Process = testbed.Start(tb, cmd)
	c := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
	defer c.Close()
	require.Eventually(tb, func() bool { return c.Ping(background).Err() == nil }, 30*time.Second, 5*time.Millisecond)
}

// connect returns a client of addr that is closed with the test, after what is registered later.
func connect(tb testing.TB, addr string) *redis.Client {
	tb.Helper()
	return connectFor(tb, addr, 5*time.Second)
}

// connectFor is connect for a client that waits for a reply for so long.
func connectFor(tb testing.TB, addr string, reply time.Duration) *redis.Client {
	tb.Helper()
	c := redis.NewClient(options(addr, reply))
	tb.Cleanup(func() { c.Close() })
	return c
}

func options(addr string, reply time.Duration) *redis.Options {
	return &redis.Options{
		Addr:                  addr,
		DialTimeout:           reply,
		DialerRetries:         1,
		ReadTimeout:           reply,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
	}
}
