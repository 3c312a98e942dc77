package testbed

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// SQLServer is a PostgreSQL, a MariaDB or a MySQL of the test's own. It trusts every client on
// the loopback interface, and does not protect its data from a crash of the machine.
type SQLServer struct {
	*Process
	tb    testing.TB
	addr  string
	cmd   *exec.Cmd
	ready func(addr string) error
	// stop ends the server as an administrator does, abort at once.
	stop, abort syscall.Signal
}

func newServer(tb testing.TB, port string, ready func(addr string) error, stop, abort syscall.Signal) *SQLServer {
	return &SQLServer{tb: tb, addr: net.JoinHostPort("127.0.0.1", port), ready: ready, stop: stop, abort: abort}
}

// Addr returns the address where the server listens.
func (s *SQLServer) Addr() string { return s.addr }

// StartPostgres runs a PostgreSQL server with env added to its environment until the test ends,
// and returns when ready does without an error. The user is postgres. Without the program, the
// test is treated as by [Missing].
func StartPostgres(tb testing.TB, ready func(addr string) error, env ...string) *SQLServer {
	tb.Helper()
	const bin = "/usr/lib/postgresql/*/bin"
	initdb, postgres := Lookup(tb, "initdb", bin), Lookup(tb, "postgres", bin)
	dir := home(tb)
	data := filepath.Join(dir, "data")
	carryOut(tb, as(tb, "postgres", dir, initdb, "-D", data, "-A", "trust", "-U", "postgres", "--no-sync"))
	port := strconv.Itoa(Port(tb))
	s := newServer(tb, port, ready, syscall.SIGINT, syscall.SIGQUIT)
	s.cmd = as(tb, "postgres", dir, postgres, "-D", data, "-p", port, "-h", "127.0.0.1", "-k", dir, "-c", "fsync=off",
		"-c", "synchronous_commit=off", "-c", "full_page_writes=off", "-c", "max_connections=800",
		"-c", "log_min_messages=panic",
		"-c", "log_destination=stderr")
	s.cmd.Env = append(os.Environ(), env...)
	s.run()
	return s
}

// StartMariaDB runs a MariaDB server with env added to its environment until the test ends, and
// returns when ready does without an error. The user is root, and there is a database "test".
// Without the program, the test is treated as by [Missing].
func StartMariaDB(tb testing.TB, ready func(addr string) error, env ...string) *SQLServer {
	tb.Helper()
	return startMariaDB(tb, ready, env)
}

// StartSecureMariaDB is [StartMariaDB] with a server that accepts nothing but TLS. Its
// certificate, and the certificate that clients may use, are in the files, see [Certificate].
func StartSecureMariaDB(tb testing.TB, ready func(addr string) error, authority, certificate, key string) *SQLServer {
	tb.Helper()
	return startMariaDB(tb, ready, nil, "--require-secure-transport=ON", "--ssl-ca="+authority,
		"--ssl-cert="+certificate, "--ssl-key="+key)
}

func startMariaDB(tb testing.TB, ready func(addr string) error, env []string, args ...string) *SQLServer {
	tb.Helper()
	install, mariadbd := Lookup(tb, "mariadb-install-db"), Lookup(tb, "mariadbd", "/usr/sbin")
	dir := home(tb)
	// A server that starts removes the temporary tables of other servers in its temporary
	// directory, and this server has temporary tables too.
	data, temp := "--datadir="+filepath.Join(dir, "data"), "--tmpdir="+dir
	carryOut(tb, as(tb, "mysql", dir, install, "--no-defaults", data, temp, "--auth-root-authentication-method=normal"))
	port := strconv.Itoa(Port(tb))
	s := newServer(tb, port, ready, syscall.SIGTERM, syscall.SIGKILL)
	s.cmd = as(tb, "mysql", dir, mariadbd, append([]string{
		"--no-defaults", data, temp, "--port=" + port, "--bind-address=127.0.0.1",
		"--socket=" + filepath.Join(dir, "s"), "--pid-file=" + filepath.Join(dir, "pid"), "--skip-name-resolve",
		"--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=64M", "--max-connections=400",
		"--innodb-buffer-pool-load-at-startup=OFF", "--log-warnings=0"}, args...)...)
	s.cmd.Env, s.cmd.Stderr = append(os.Environ(), env...), complaints{}
	s.run()
	return s
}

// StartMySQL runs a MySQL server with env added to its environment until the test ends, and
// returns when ready does without an error. The user is root, and there is a database "test".
// The server is the mysql-server of .ci/servers. Without it, the test is treated as by [Missing].
func StartMySQL(tb testing.TB, ready func(addr string) error, env ...string) *SQLServer {
	tb.Helper()
	mysqld := Built(tb, "mysql-server")
	dir := home(tb)
	first := filepath.Join(dir, "first.sql")
	const users = "CREATE DATABASE test; CREATE USER root@'127.0.0.1'; " +
		"GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n"
	if err := os.WriteFile(first, []byte(users), 0o644); err != nil {
		tb.Fatal(err)
	}
	port := strconv.Itoa(Port(tb))
	// Other users cannot enter the cache folder of root. Root's server must be told to run as root.
	common := []string{"--no-defaults", "--user=root", "--datadir=" + filepath.Join(dir, "data"), "--tmpdir=" + dir,
		"--log-error-verbosity=1"}
	if os.Getuid() != 0 {
		common = slices.Delete(common, 1, 2)
	}
	carryOut(tb, exec.Command(mysqld, append(common, "--initialize-insecure", "--init-file="+first)...))
	s := newServer(tb, port, ready, syscall.SIGTERM, syscall.SIGKILL)
	s.cmd = exec.Command(mysqld, append(common,
		"--port="+port, "--bind-address=127.0.0.1", "--socket="+filepath.Join(dir, "s"),
		"--pid-file="+filepath.Join(dir, "pid"), "--skip-name-resolve", "--mysqlx=OFF", "--secure-file-priv=NULL",
		"--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0", "--innodb-buffer-pool-size=64M",
		"--max-connections=400")...)
	s.cmd.Env = append(os.Environ(), env...)
	s.run()
	return s
}

// StartPgbouncer runs a pooler in front of the PostgreSQL server at addr until the test ends,
// and returns when ready does without an error. It gives each transaction a session that is
// free. Settings, such as "server_round_robin = 1", are added to its configuration. Without the
// program, the test is treated as by [Missing].
func StartPgbouncer(tb testing.TB, addr string, ready func(addr string) error, settings ...string) *SQLServer {
	tb.Helper()
	program := Lookup(tb, "pgbouncer", "/usr/sbin")
	dir := home(tb)
	host, to, err := net.SplitHostPort(addr)
	if err != nil {
		tb.Fatal(err)
	}
	port := strconv.Itoa(Port(tb))
	lines := []string{
		"[databases]",
		"* = host=" + host + " port=" + to + " user=postgres",
		"[pgbouncer]",
		"pool_mode = transaction",
		"auth_type = any",
		"listen_addr = 127.0.0.1",
		"listen_port = " + port,
		"unix_socket_dir =",
		"ignore_startup_parameters = extra_float_digits",
	}
	config := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(config, []byte(strings.Join(append(lines, settings...), "\n")+"\n"), 0o644); err != nil {
		tb.Fatal(err)
	}
	s := newServer(tb, port, ready, syscall.SIGINT, syscall.SIGTERM)
	s.cmd = as(tb, "postgres", dir, program, "-q", config)
	s.cmd.Env = os.Environ()
	s.run()
	return s
}

// run starts the server with the data on its disk, and returns when the server answers.
func (s *SQLServer) run() {
	s.tb.Helper()
	cmd := exec.Command(s.cmd.Path, s.cmd.Args[1:]...)
	cmd.Env, cmd.Stderr = s.cmd.Env, s.cmd.Stderr
	p := Start(s.tb, cmd)
	s.tb.Cleanup(func() { // before it is killed: a PostgreSQL that is leaves shared memory
		select {
		case <-p.Done():
		default:
			p.Signal(s.abort)
			p.Wait()
		}
	})
	s.Process = p
	for end := time.Now().Add(Hang); ; time.Sleep(20 * time.Millisecond) {
		err := s.ready(s.addr)
		if err == nil {
			return
		}
		select {
		case <-p.Done():
			s.tb.Fatalf("%s has ended, and did not answer: %v", cmd.Args, err)
		default:
		}
		if time.Now().After(end) {
			s.tb.Fatalf("%s does not answer: %v", cmd.Args, err)
		}
	}
}

// Restart ends the server as an administrator does, and starts it again.
func (s *SQLServer) Restart() {
	s.tb.Helper()
	s.Signal(s.stop)
	s.Wait()
	s.run()
}

// home returns a directory that other users can enter. The parent of tb.TempDir's is root's.
func home(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "locks")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// as returns a command. If this process is root's, the command runs as the user called name, who
// then owns dir.
func as(tb testing.TB, name, dir, program string, args ...string) *exec.Cmd {
	tb.Helper()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		return exec.Command(program, args...)
	}
	u, err := user.Lookup(name)
	if err != nil {
		tb.Fatal(err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		tb.Fatal(err)
	}
	args = append([]string{"--reuid", name, "--regid", name, "--clear-groups", "--pdeathsig", "KILL", program}, args...)
	return exec.Command(Lookup(tb, "setpriv"), args...)
}

// carryOut waits for cmd, which ends by itself.
func carryOut(tb testing.TB, cmd *exec.Cmd) {
	tb.Helper()
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%s: %v: %s", cmd.Args, err, out)
	}
}

// complaints logs what MariaDB says when it fails.
type complaints struct{}

func (complaints) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		has := func(text string) bool { return bytes.Contains(line, []byte(text)) }
		// Error 123 refuses a transaction what has changed since it began: an answer like others.
		if !has("Got error 123 ") && (has("[ERROR]") || has("signal") || has("assert")) {
			fmt.Fprintf(os.Stderr, "%s", line)
		}
	}
	return len(p), nil
}
