package suite

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/test/testbed"
)

// Server is a redis-server of the test's own.
type Server struct {
	*testbed.Process
	Addr string
	path string
	args []string
	env  []string
	bus  string // of a cluster: the port of the others
}

// StartServer runs redis-server on a free port of the loopback interface until the test ends.
// Without the program the test is skipped, but for continuous integration, where it fails.
func StartServer(tb testing.TB, args ...string) *Server {
	tb.Helper()
	return StartServerEnv(tb, nil, args...)
}

// StartServerEnv is StartServer with more in the environment.
func StartServerEnv(tb testing.TB, env []string, args ...string) *Server {
	tb.Helper()
	path := testbed.Lookup(tb, "redis-server")
	port, dir := testbed.Port(tb), tb.TempDir()
	s := &Server{Addr: fmt.Sprintf("127.0.0.1:%d", port), path: path, env: env, args: append([]string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--dir", dir, "--logfile", filepath.Join(dir, "log"),
	}, args...)}
	s.Restart(tb)
	return s
}

// Addr returns the address of a server without data: the server of LOCKS_REDIS_URL, on which tests
// take turns, or a server that ends with the test. The test must not stop the server, nor change
// its settings.
func Addr(tb testing.TB) string {
	tb.Helper()
	given, ok := testbed.Given(tb, "LOCKS_REDIS_URL")
	if !ok {
		return StartServer(tb).Addr
	}
	c := redis.NewClient(&redis.Options{Addr: given.Host})
	defer c.Close()
	flush(tb, c)
	return given.Host
}

// Restart starts the server, which has ended, without the data of before.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	cmd := exec.Command(s.path, s.args...)
	if s.env != nil {
		cmd.Env = append(cmd.Environ(), s.env...)
	}
	s.Process = testbed.Start(tb, cmd)
	c := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1})
	defer c.Close()
	require.Eventually(tb, func() bool { return c.Ping(Background).Err() == nil }, Hang, 5*time.Millisecond)
}

// Connect returns a client of addr that is closed with the test, after what is registered later.
func Connect(tb testing.TB, addr string) *redis.Client {
	tb.Helper()
	return ConnectFor(tb, addr, reply)
}

// ConnectFor is Connect for a client that waits for a reply for so long.
func ConnectFor(tb testing.TB, addr string, reply time.Duration) *redis.Client {
	tb.Helper()
	c := redis.NewClient(Options(addr, reply))
	tb.Cleanup(func() { c.Close() })
	return c
}

// Options returns the options of a client that waits for a reply for so long.
func Options(addr string, reply time.Duration) *redis.Options {
	return &redis.Options{
		Addr:                  addr,
		DialTimeout:           reply,
		DialerRetries:         1,
		ReadTimeout:           reply,
		ContextTimeoutEnabled: true,
		DisableIdentity:       true,
	}
}
