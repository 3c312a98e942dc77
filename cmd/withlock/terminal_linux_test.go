package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// terminal returns both ends of a new terminal: that of the person, and that of the programs.
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
	person, programs := terminal(t)
	return startWith(t, func(cmd *exec.Cmd) {
		cmd.Stdin = programs
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	}, url, args...), person
}

func TestACommandAtATerminalReadsItAndIsToldOfALoss(t *testing.T) {
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

func TestAnInterruptAtATerminalReachesTheCommandOnce(t *testing.T) {
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
