package redislock_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// server is a redis-server of the test's own.
type server struct {
	addr string
	cmd  *exec.Cmd
}

// startServer runs redis-server on a free port of the loopback interface until the test ends. Without the program the test is
// skipped, but for continuous integration, where it fails.
func startServer(tb testing.TB, args ...string) *server {
	tb.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") == "true" {
			tb.Fatal("redis-server is not installed")
		}
		tb.Skip("redis-server is not installed: skipped")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(tb, err)
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	dir := tb.TempDir()
	cmd := exec.Command(path, append([]string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no",
		"--dir", dir, "--logfile", filepath.Join(dir, "log"),
	}, args...)...)
	cmd.SysProcAttr = deathSignal()
	require.NoError(tb, cmd.Start())
	s := &server{fmt.Sprintf("127.0.0.1:%d", port), cmd}
	tb.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	c := redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
	defer c.Close()
	require.Eventually(tb, func() bool { return c.Ping(context.Background()).Err() == nil }, 10*time.Second, 5*time.Millisecond)
	return s
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
