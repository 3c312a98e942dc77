package command

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// terminal returns both ends of a new terminal: the person's end, and the programs' end.
func terminal(t *testing.T) (person, programs *os.File) {
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { person.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	programs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { programs.Close() })
	return person, programs
}

// startAt starts the program as the foreground of a terminal.
func startAt(t *testing.T, url string, args ...string) (p *process, person *os.File) {
	return startIn(t, "", url, args...)
}

// startIn is startAt in a script of a shell with jobs, where "$@" is the program. Without script,
// there is no shell.
func startIn(t *testing.T, script, url string, args ...string) (p *process, person *os.File) {
	person, programs := terminal(t)
	return startWith(t, func(cmd *exec.Cmd) {
		cmd.Stdin = programs
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		if script != "" {
			cmd.Args = append([]string{"bash", "--norc", "-i", "-c", script, "bash", cmd.Path}, cmd.Args[1:]...)
			cmd.Path = "/bin/bash"
		}
	}, url, args...), person
}

// types has the person type text.
func types(t *testing.T, person *os.File, text string) {
	_, err := person.WriteString(text)
	require.NoError(t, err)
}

func TestATerminalCommandReadsAndLearnsOfLoss(t *testing.T) {
	t.Parallel()
	url := redisStore(t)
	script := "read line; echo $line; " + traps
	holder, person := startAt(t, url, "run", "-name", "a", "-ttl", longTTL, "--", "sh", "-c", script)
	_, err := person.WriteString("hello\n") // a process of a background group would be stopped
	require.NoError(t, err)
	require.Equal(t, "hello", holder.line())
	require.Contains(t, holder.line(), "up a")
	require.Zero(t, start(t, url, "force", "-yes", "a").code())
	require.Equal(t, "got TERM", holder.line())
	require.Equal(t, exitLost, holder.code())
}

func TestATerminalInterruptReachesTheCommandOnce(t *testing.T) {
	t.Parallel()
	script := `trap 'echo got INT' INT; trap 'echo got USR1; exit 3' USR1; echo up; sleep 1000 & while :; do wait; done`
	holder, person := startAt(t, fileStore(t), "run", "-name", "a", "--", "sh", "-c", script)
	require.Equal(t, "up", holder.line())
	_, err := person.WriteString("\x03") // Ctrl-C
	require.NoError(t, err)
	require.Equal(t, "got INT", holder.line())
	holder.signal(syscall.SIGUSR1) // withlock forwards it after anything that it makes of the interrupt
	require.Equal(t, "got USR1", holder.line())
	require.Equal(t, 3, holder.code())
}

func TestAnInterruptReachesACommandOutsideTheGroup(t *testing.T) {
	t.Parallel()
	holder, person := startAt(t, fileStore(t), "run", "-name", "a", "--", "timeout", "1000", "sh", "-c", ticking)
	holder.line()
	types(t, person, "\x03")
	require.Equal(t, "got INT", holder.line())
}

func TestChangesOfTheTerminalsSizeDelayNothing(t *testing.T) {
	t.Parallel()
	holder, person := startAt(t, fileStore(t), "run", "-name", "a", "--", "sh", "-c", "echo up; read line")
	require.Equal(t, "up", holder.line())
	for i := range 3000 {
		size := &unix.Winsize{Row: 24, Col: uint16(80 + i%2)}
		require.NoError(t, unix.IoctlSetWinsize(int(person.Fd()), unix.TIOCSWINSZ, size))
		time.Sleep(time.Millisecond) // else the signals become one
	}
	types(t, person, "\n")
	require.Zero(t, holder.code())
}

func TestACommandReadsTheTerminalBehindAPipe(t *testing.T) {
	t.Parallel()
	holder, person := startIn(t, `echo input | "$@"`, fileStore(t), "run", "-name", "a", "--",
		"sh", "-c", "echo up; read line </dev/tty; echo $line; cat") // as less does
	require.Equal(t, "up", holder.line())
	types(t, person, "hello\n")
	require.Equal(t, "hello", holder.line())
	require.Equal(t, "input", holder.line())
	require.Zero(t, holder.code())
}

// ticking tells its process id, and then each signal.
const ticking = `for s in INT QUIT TERM; do trap "echo got $s" $s; done
trap 'echo got USR1; exit 3' USR1; echo $$; while :; do sleep 0.1; done`

func TestATerminalStopStopsTheCommandToo(t *testing.T) {
	t.Parallel()
	holder, person := startIn(t, `"$@" </dev/null; echo stopped; read go; echo gone; fg >/dev/null; echo code $?`,
		fileStore(t), "run", "-name", "a", "--", "sh", "-c", ticking)
	pid := holder.line()
	types(t, person, "\x1a") // Ctrl-Z
	require.Equal(t, "stopped", holder.line())
	stopped := func() bool {
		text, err := os.ReadFile("/proc/" + pid + "/stat")
		require.NoError(t, err)
		// A shell whose new process is stopped before it begins its program waits in state D.
		return strings.Contains(string(text), ") T ") || strings.Contains(string(text), ") D ")
	}
	require.Eventually(t, stopped, hang, 10*time.Millisecond)
	types(t, person, "\n")
	require.Equal(t, "gone", holder.line())
	require.Eventually(t, func() bool { return !stopped() }, hang, 10*time.Millisecond)
	types(t, person, "\x03")
	require.Equal(t, "got INT", holder.line())
	n, err := strconv.Atoi(pid)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(n, syscall.SIGUSR1))
	require.Equal(t, "got USR1", holder.line())
	require.Equal(t, "code 3", holder.line())
}

func TestABackgroundJobReadsOnceInTheForeground(t *testing.T) {
	t.Parallel()
	holder, person := startIn(t, `"$@" & read go; fg >/dev/null; echo code $?`, fileStore(t), "run", "-name", "a", "--",
		"sh", "-c", "echo up; sleep 0.5; read line; echo $line; exit 3")
	require.Equal(t, "up", holder.line())
	types(t, person, "\n")
	types(t, person, "hello\n")
	require.Equal(t, "hello", holder.line())
	require.Equal(t, "code 3", holder.line())
}

func TestASignalAtATerminalReachesTheCommand(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM} {
		holder, person := startAt(t, fileStore(t), "run", "-name", "a", "--", "sh", "-c", ticking)
		holder.line()
		holder.signal(sig)
		want := "got " + strings.TrimPrefix(unix.SignalName(sig), "SIG")
		require.Equal(t, want, holder.line())
		require.NoError(t, syscall.Kill(-holder.cmd.Process.Pid, sig)) // as kill %1 does
		require.Equal(t, want, holder.line())
		if sig != syscall.SIGTERM {
			types(t, person, map[syscall.Signal]string{syscall.SIGINT: "\x03", syscall.SIGQUIT: "\x1c"}[sig])
			require.Equal(t, want, holder.line())
		}
		holder.signal(syscall.SIGUSR1)
		require.Equal(t, "got USR1", holder.line())
		require.Equal(t, 3, holder.code())
	}
}

func TestAnInterruptedTerminalLeaderEndsAsItsCommand(t *testing.T) {
	t.Parallel()
	script := "trap 'echo got INT; exit 4' INT; " + traps
	for _, interrupt := range []func(p *process, person *os.File){
		func(p *process, _ *os.File) { p.signal(syscall.SIGINT) },
		func(_ *process, person *os.File) { types(t, person, "\x03") },
	} {
		leader, person := startAt(t, fileStore(t), "lead", "-name", "a", "--", "sh", "-c", script)
		require.Contains(t, leader.line(), "up a")
		interrupt(leader, person)
		require.Equal(t, "got INT", leader.line())
		require.Equal(t, 4, leader.code())
	}
}

func TestATerminalLossEndsTheCommandsWholeTree(t *testing.T) {
	t.Parallel()
	url := redisStore(t)
	holder, _ := startIn(t, `"$@"; echo code $?`, url, "run", "-name", "a", "-ttl", longTTL,
		"-grace", "100ms", "--", "sh", "-c", "sleep 1000 & setsid sleep 1000 & echo up; cat")
	require.Equal(t, "up", holder.line())
	require.Zero(t, start(t, url, "force", "-yes", "a").code())
	require.Equal(t, fmt.Sprint("code ", exitLost), holder.line()) // the shell still runs
	holder.eof()
}

func TestKillingATerminalJobEndsTheWholeTree(t *testing.T) {
	t.Parallel()
	holder, _ := startIn(t, `"$@" & wait`, fileStore(t), "run", "-name", "a", "--",
		"sh", "-c", "sleep 1000 & echo $PPID; wait")
	var parent int
	_, err := fmt.Sscan(holder.line(), &parent)
	require.NoError(t, err)
	group, err := syscall.Getpgid(parent)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(-group, syscall.SIGKILL))
	holder.eof()
}

func TestAnIgnoredSignalStaysIgnored(t *testing.T) {
	t.Parallel()
	// As nohup, and as a background command of a script.
	holder := startWith(t, func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"sh", "-c", `trap '' HUP INT QUIT; "$@"`, "sh", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	}, fileStore(t), "run", "-name", "a", "--", "sh", "-c",
		"grep SigIgn /proc/$$/status /proc/$PPID/status; echo up; "+ticking)
	for _, who := range []string{"command", "guard"} {
		var ignored uint64
		fields := strings.Fields(holder.line())
		_, err := fmt.Sscanf(fields[len(fields)-1], "%x", &ignored)
		require.NoError(t, err)
		require.EqualValues(t, 0b111, ignored&0b111, who) // HUP, INT, QUIT
	}
	require.Equal(t, "up", holder.line())
	holder.line() // ticking tells its process
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1} {
		require.NoError(t, syscall.Kill(childOf(t, holder.cmd.Process.Pid), sig))
	}
	require.Equal(t, "got USR1", holder.line())
	require.Equal(t, 3, holder.code())
}

// childOf returns the only child of a process.
func childOf(t *testing.T, pid int) (child int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	require.NoError(t, err)
	_, err = fmt.Sscan(string(text), &child)
	require.NoError(t, err)
	return child
}
