package testbed

import (
	"bufio"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// Lookup returns where program is: in the PATH or in one of dirs, which may be patterns.
// Without it the test is skipped, with a line that says so, but for continuous integration,
// where it fails.
func Lookup(tb testing.TB, program string, dirs ...string) string {
	tb.Helper()
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	for _, dir := range dirs {
		found, _ := filepath.Glob(filepath.Join(dir, program))
		for _, path := range slices.Backward(found) { // the newest version first
			if path, err := exec.LookPath(path); err == nil {
				return path
			}
		}
	}
	Missing(tb, program)
	return ""
}

// builds are the files of the servers of .ci/servers, which end with their versions. A server that
// was built for another version is missing.
var builds = map[string]string{
	"consul-1.14":        "consul-1.14.11",
	"etcd-3.5":           "etcd-3.5.35",
	"etcd-3.6":           "etcd-3.6.16",
	"fake-gcs":           "fake-gcs-1.56.1",
	"k8s-apiserver-0.37": "k8s-apiserver-0.37.2",
	"kumo-server":        "kumo-0.33.1",
	"moto-server":        "moto-5.2.5/moto-server",
	"mysql-server":       "mysql-server",
	"nats-2.15":          "nats-2.15.2",
	"versitygw":          "versitygw-1.8.0",
}

// Built returns where a server of .ci/servers is, which has the name there. Without it, the test is
// treated as by [Missing].
func Built(tb testing.TB, name string) string {
	tb.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		tb.Fatal(err)
	}
	path, err := exec.LookPath(filepath.Join(cache, "locks-servers", builds[name]))
	if err != nil {
		Missing(tb, name)
	}
	return path
}

// Missing ends the test because something is not installed: it is skipped, but for continuous
// integration, where it fails.
func Missing(tb testing.TB, what string) {
	tb.Helper()
	if os.Getenv("CI") != "" {
		tb.Fatalf("%s is not installed", what)
	}
	tb.Skipf("%s is not installed: skipped", what)
}

// Port returns a port of the loopback interface that no process listens on. It is the caller's
// until the test ends: no other call of Port returns it, of whatever process, and it is none of
// those that the system gives to connections.
func Port(tb testing.TB) int {
	tb.Helper()
	for range 1000 {
		port := 10000 + rand.IntN(22000)
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		// UDP has ports of its own. Therefore a UDP port reserves the TCP port of the same
		// number, and leaves it free for the server.
		claim, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			claim.Close()
			continue
		}
		l.Close()
		tb.Cleanup(func() { claim.Close() })
		return port
	}
	tb.Fatal("no free port")
	return 0
}

// Process is a child process. It is killed with the test, and with the process of the test,
// where the system can do that.
type Process struct {
	tb    testing.TB
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string
	done  chan struct{}
}

// Start runs cmd until the test ends. [Process.Line] reads the standard output of cmd, unless
// cmd.Stdout is set.
func Start(tb testing.TB, cmd *exec.Cmd) *Process {
	tb.Helper()
	p := &Process{tb: tb, cmd: cmd, lines: make(chan string, 1<<16), done: make(chan struct{})}
	dieWithParent(cmd)
	var out io.ReadCloser
	var err error
	if cmd.Stdout == nil {
		if out, err = cmd.StdoutPipe(); err != nil {
			tb.Fatal(err)
		}
	}
	if cmd.Stdin == nil {
		if p.stdin, err = cmd.StdinPipe(); err != nil {
			tb.Fatal(err)
		}
	}
	if err := start(cmd); err != nil {
		tb.Fatalf("start of %s: %v", cmd.Path, err)
	}
	go func() {
		defer close(p.done)
		defer cmd.Wait()
		defer close(p.lines)
		if out == nil {
			return
		}
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
	}()
	tb.Cleanup(p.Kill)
	return p
}

// Pid returns the number of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Line returns the next line of the standard output. It fails the test if none comes within
// [Hang].
func (p *Process) Line() string {
	p.tb.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok {
			p.tb.Fatalf("%s ended, and no line came", p.cmd.Path)
		}
		return line
	case <-time.After(Hang):
		p.tb.Fatalf("no line from %s", p.cmd.Path)
	}
	return ""
}

// Lines returns the channel of the lines of the standard output, which is closed at its end.
func (p *Process) Lines() <-chan string { return p.lines }

// Say writes a line to the standard input.
func (p *Process) Say(line string) {
	p.tb.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.tb.Fatalf("writing to %s: %v", p.cmd.Path, err)
	}
}

// Signal sends a signal.
func (p *Process) Signal(s os.Signal) {
	p.tb.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.tb.Fatalf("signal to %s: %v", p.cmd.Path, err)
	}
}

// Kill ends the process with no chance for it to do anything, and waits for its end. It may be
// called again.
func (p *Process) Kill() {
	p.cmd.Process.Kill()
	if p.stdin != nil {
		p.stdin.Close()
	}
	<-p.done
}

// Wait waits for the end of the process, closes its standard input before, and returns whether
// it went well.
func (p *Process) Wait() bool {
	if p.stdin != nil {
		p.stdin.Close()
	}
	<-p.done
	return p.cmd.ProcessState.Success()
}

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }
