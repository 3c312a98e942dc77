package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/testbed"
)

// stores has the flag for each store, but for mem:. Those of real servers start one, which ends with the test; without the
// program the test is skipped, but for continuous integration, where it fails.
var stores = []struct {
	name string
	spec func(tb testing.TB) string
}{
	{"files", func(testing.TB) string { return "file:" }},
	{"files in a given directory", func(tb testing.TB) string { return "file:" + filepath.Join(tb.TempDir(), "locks") }},
	{"SQLite", func(testing.TB) string { return "sqlite:" }},
	{"SQLite in a given file", func(tb testing.TB) string { return "sqlite:" + filepath.Join(tb.TempDir(), "a %3f? #b.db") }},
	{"embedded Redis", func(testing.TB) string { return "redis:" }},
	{"Redis", func(tb testing.TB) string { return "redis:" + startRedisServer(tb) }},
	{"Redis with a password", func(tb testing.TB) string {
		return "redis://:" + secret + "@" + startRedisServer(tb, "--requirepass", secret) + "/1"
	}},
	{"PostgreSQL", func(tb testing.TB) string {
		return "postgres://postgres:" + secret + "@" + startPostgres(tb) + "/postgres?sslmode=disable"
	}},
	{"MariaDB", func(tb testing.TB) string { return "mysql:root@tcp(" + startMariaDB(tb) + ")/test" }},
	{"ZooKeeper", func(tb testing.TB) string { return "zk:" + testbed.StartZooKeeper(tb).Addr() }},
	{"etcd", func(tb testing.TB) string { return "etcd:" + startEtcd(tb) }},
}

// secret is a password, which nobody may be told.
const secret = "geheim"

func startRedisServer(tb testing.TB, args ...string) string {
	tb.Helper()
	path := testbed.Lookup(tb, "redis-server")
	port, dir := testbed.Port(tb), tb.TempDir()
	testbed.Start(tb, exec.Command(path, append([]string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir,
		"--logfile", filepath.Join(dir, "log"),
	}, args...)...))
	return listening(tb, port)
}

// listening returns the address of a port when somebody listens there.
func listening(tb testing.TB, port int) string {
	tb.Helper()
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	require.Eventually(tb, func() bool {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			c.Close()
		}
		return err == nil
	}, 30*time.Second, 5*time.Millisecond)
	return addr
}

// serving returns the address of a port when the store there can be opened.
func serving(tb testing.TB, port int, spec func(addr string) string) string {
	tb.Helper()
	addr := listening(tb, port)
	require.Eventually(tb, func() bool {
		s, err := open(tb.Context(), spec(addr))
		if err == nil {
			s.Close(tb.Context())
		}
		return err == nil
	}, 30*time.Second, 20*time.Millisecond)
	return addr
}

// home returns a directory that is not inside of one that only root may enter, as tb.TempDir's is.
func home(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("/tmp", "example")
	require.NoError(tb, err)
	tb.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// as returns a command that runs as a user who is not root, and owns dir.
func as(tb testing.TB, name, dir, program string, args ...string) *exec.Cmd {
	tb.Helper()
	if os.Getuid() != 0 {
		return exec.Command(program, args...)
	}
	u, err := user.Lookup(name)
	require.NoError(tb, err)
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	require.NoError(tb, os.Chown(dir, uid, gid))
	setpriv := testbed.Lookup(tb, "setpriv")
	args = append([]string{"--reuid", name, "--regid", name, "--clear-groups", "--pdeathsig", "KILL", program}, args...)
	return exec.Command(setpriv, args...)
}

func startPostgres(tb testing.TB) string {
	tb.Helper()
	const bin = "/usr/lib/postgresql/*/bin"
	initdb, postgres := testbed.Lookup(tb, "initdb", bin), testbed.Lookup(tb, "postgres", bin)
	dir, port := home(tb), testbed.Port(tb)
	data := filepath.Join(dir, "data")
	out, err := as(tb, "postgres", dir, initdb, "-D", data, "-A", "trust", "-U", "postgres", "--no-sync").CombinedOutput()
	require.NoError(tb, err, string(out))
	p := testbed.Start(tb, as(tb, "postgres", dir, postgres, "-D", data, "-p", strconv.Itoa(port), "-h", "127.0.0.1", "-k", dir,
		"-c", "fsync=off", "-c", "log_min_messages=panic"))
	tb.Cleanup(func() { // before it is killed, so that it leaves no shared memory
		p.Signal(syscall.SIGQUIT)
		p.Wait()
	})
	return serving(tb, port, func(addr string) string { return "postgres://postgres@" + addr + "/postgres?sslmode=disable" })
}

func startMariaDB(tb testing.TB) string {
	tb.Helper()
	install, mariadbd := testbed.Lookup(tb, "mariadb-install-db"), testbed.Lookup(tb, "mariadbd", "/usr/sbin")
	dir, port := home(tb), testbed.Port(tb)
	data := filepath.Join(dir, "data")
	init := as(tb, "mysql", dir, install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal")
	out, err := init.CombinedOutput()
	require.NoError(tb, err, string(out))
	testbed.Start(tb, as(tb, "mysql", dir, mariadbd, "--no-defaults", "--datadir="+data, fmt.Sprint("--port=", port),
		"--bind-address=127.0.0.1", "--socket="+filepath.Join(dir, "s"), "--pid-file="+filepath.Join(dir, "pid"), "--skip-name-resolve",
		"--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M"))
	return serving(tb, port, func(addr string) string { return "mysql:root@tcp(" + addr + ")/test" })
}

func startEtcd(tb testing.TB) string {
	tb.Helper()
	path := testbed.Lookup(tb, "etcd")
	port := testbed.Port(tb)
	client, peer := fmt.Sprint("http://127.0.0.1:", port), fmt.Sprint("http://127.0.0.1:", testbed.Port(tb))
	testbed.Start(tb, exec.Command(path, "--name", "n", "--data-dir", tb.TempDir(), "--unsafe-no-fsync", "--logger", "zap",
		"--log-level", "fatal", "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
		"--initial-advertise-peer-urls", peer, "--initial-cluster", "n="+peer))
	return serving(tb, port, func(addr string) string { return "etcd:" + addr })
}
