//go:build unix

package main

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/term"
)

// forwardedSignals go to the command. The others act on withlock alone: SIGTSTP stops it, and
// with it the renewal of the lock.
var forwardedSignals = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
	syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH,
}

// endingSignal returns the exit code of a process that sig ends, or 0 if sig is for the command
// alone.
func endingSignal(sig os.Signal) int {
	if slices.Contains([]os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}, sig) {
		return exitSignal + int(sig.(syscall.Signal))
	}
	return 0
}

// child is the process of the command and, unless the command may read the terminal, its process
// group. A process of another group would be stopped if it read the terminal.
type child struct {
	cmd   *exec.Cmd
	group bool
}

func newChild(cmd *exec.Cmd) *child {
	c := &child{cmd, !term.IsTerminal(int(os.Stdin.Fd()))}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: c.group}
	endWithParent(cmd.SysProcAttr)
	return c
}

// start starts the command from a thread that lives as long as the caller does not call forget. On
// Linux, the kernel kills the command at the end of that thread.
func (c *child) start() error {
	runtime.LockOSThread()
	return c.cmd.Start()
}

// forget lets the thread go, once the command has ended.
func (c *child) forget() { runtime.UnlockOSThread() }

func (c *child) pid() int { return c.cmd.Process.Pid }

// signal sends sig to the command and its group. A terminal has sent its own signals already to a
// command that can read it.
func (c *child) signal(sig os.Signal) {
	switch {
	case c.group:
		_ = syscall.Kill(-c.pid(), sig.(syscall.Signal)) // it may have ended
	case sig != syscall.SIGINT && sig != syscall.SIGQUIT && sig != syscall.SIGWINCH:
		_ = c.cmd.Process.Signal(sig)
	}
}

func (c *child) terminate() { c.signal(syscall.SIGTERM) }
func (c *child) kill()      { c.signal(syscall.SIGKILL) }

// waitForGroup waits until no process of the group is left, or until limit.
func (c *child) waitForGroup(limit <-chan time.Time) {
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for c.group && syscall.Kill(-c.pid(), 0) == nil {
		select {
		case <-look.C:
		case <-limit:
			return
		}
	}
}

// signalOf returns the number of the signal that ended the command, or 0.
func signalOf(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return int(status.Signal())
	}
	return 0
}
