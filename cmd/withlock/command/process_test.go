//go:build unix

package command

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/internal/test/testbed"
)

// hang is a limit that only a hang reaches.
const hang = testbed.Hang

// On a busy machine a guard gets its own signal late, and would give the command a second one. The
// guard works in an init function, which runs after this.
var _ = func() time.Duration { patience = 2 * time.Second; return patience }()

// asPatient makes the program wait for the store's answers for as long as it can.
const asPatient = "WITHLOCK_TEST_PATIENT"

// A script that tells its end, and a script that ends with its process.
const (
	traps = `trap 'echo got TERM; exit 5' TERM; echo up "$LOCK_NAME" "$LOCK_TOKEN"; sleep 1000 & wait`
	naps  = `echo up; exec sleep 1000`
)

// process is the program in a process of its own. Its output includes the command's output.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	lines  chan string // closed when neither the program nor the command is left
	exited chan struct{}
	stderr notes
	up     string
}

// notes is the output of a process so far.
type notes struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (n *notes) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.Write(p)
}

func (n *notes) String() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text.String()
}

func start(t *testing.T, url string, args ...string) *process {
	t.Helper()
	return startWith(t, func(*exec.Cmd) {}, url, args...)
}

// startPatient is start for a short -wait, with a store that may be slow on a busy machine.
func startPatient(t *testing.T, url string, args ...string) *process {
	t.Helper()
	return startWith(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, asPatient+"=1") }, url, args...)
}

// run runs a program to its end. On a busy machine a store may not answer in time. Then run runs
// another program.
func run(t *testing.T, url string, args ...string) *process {
	t.Helper()
	for end := time.Now().Add(hang); ; {
		p := start(t, url, args...)
		if p.code() != exitUnreachable {
			return p
		}
		require.Eventually(t, func() bool { return p.stderr.String() != "" }, hang, time.Millisecond)
		require.Contains(t, p.stderr.String(), "no answer in time")
		require.True(t, time.Now().Before(end), "the store does not answer in time")
	}
}

// hold starts a program that holds its lock, and whose command says up in its first line, which is
// up in the process. Otherwise hold is like run.
func hold(t *testing.T, url, up string, args ...string) *process {
	t.Helper()
	for end := time.Now().Add(hang); ; {
		require.True(t, time.Now().Before(end), "the store does not answer in time")
		p := start(t, url, args...)
		select {
		case line, ok := <-p.lines:
			if ok {
				require.Contains(t, line, up)
				p.up = line
				return p
			}
			<-p.exited
			require.Eventually(t, func() bool { return p.stderr.String() != "" }, hang, time.Millisecond)
			require.Contains(t, p.stderr.String(), "no answer in time")
		case <-time.After(hang):
			require.FailNow(t, "no output")
		}
	}
}

// startWith is start with a function that prepares the program.
func startWith(t *testing.T, prepare func(*exec.Cmd), url string, args ...string) *process {
	t.Helper()
	p := &process{
		t: t, cmd: exec.Command(os.Args[0], args...), lines: make(chan string, 1000), exited: make(chan struct{}),
	}
	p.cmd.Env = append(os.Environ(), asProgram+"=1", "WITHLOCK_STORE="+url)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // without the terminal of these tests
	r, w, err := os.Pipe()
	require.NoError(t, err)
	p.cmd.Stdout = w
	errs, errw, err := os.Pipe()
	require.NoError(t, err)
	p.cmd.Stderr = errw
	prepare(p.cmd)
	require.NoError(t, p.cmd.Start())
	w.Close()
	errw.Close()
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(&p.stderr, errs)
	}()
	go func() {
		defer close(p.lines)
		for scan := bufio.NewScanner(r); scan.Scan(); {
			p.lines <- scan.Text()
		}
	}()
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.exited
		r.Close() // also if a grandchild has the other end
		errs.Close()
		<-read
		for range p.lines {
		}
		if t.Failed() {
			t.Logf("withlock %q wrote:\n%s", args, p.stderr.String())
		}
	})
	return p
}

// line returns the next line of the output.
func (p *process) line() string {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		require.True(p.t, ok, "no more output")
		return line
	case <-time.After(hang):
		require.FailNow(p.t, "no output")
		return ""
	}
}

// says waits until the program has written text to its standard error.
func (p *process) says(text string) {
	p.t.Helper()
	said := func() bool { return strings.Contains(p.stderr.String(), text) }
	require.Eventually(p.t, said, hang, 10*time.Millisecond, text)
}

// eof waits until neither the program nor the command is left.
func (p *process) eof() {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		require.False(p.t, ok, "unexpected output %q", line)
	case <-time.After(hang):
		require.FailNow(p.t, "the command lives on")
	}
}

// code waits for the end of the program, and returns its exit code.
func (p *process) code() int {
	p.t.Helper()
	select {
	case <-p.exited:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(hang):
		require.FailNow(p.t, "the program lives on")
		return 0
	}
}

func (p *process) signal(s syscall.Signal) { require.NoError(p.t, p.cmd.Process.Signal(s)) }

func TestADoubtOfTheStoreDoesNotChangeTheExitCodeOfTheCommand(t *testing.T) {
	t.Parallel()
	for _, code := range []int{0, 3} {
		p := startWith(t, func(cmd *exec.Cmd) { cmd.Env = append(cmd.Env, asDoubtful+"=1") }, "doubtful:it",
			"run", "-name", "it", "--", "sh", "-c", fmt.Sprintf("exit %d", code))
		if code == 0 {
			p.says("acquisitions in doubt: 1")
		}
		p.eof()
		require.Equal(t, code, p.code())
	}
}
