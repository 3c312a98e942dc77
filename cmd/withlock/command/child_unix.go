//go:build unix

package command

import (
	"encoding/binary"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
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

// catch sends the signals of the process to c, except those that its parent ignored. A command of
// nohup ignores SIGHUP, and a background command of a script SIGINT and SIGQUIT. Go only tells of
// the first two.
func catch(c chan<- os.Signal) {
	if signal.Ignored(syscall.SIGINT) {
		signal.Ignore(syscall.SIGQUIT)
	}
	for _, sig := range forwardedSignals {
		if !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
	if os.Getpid() == 1 {
		signal.Notify(c, syscall.SIGCHLD)
	}
}

// reaped waits for the ended children of process 1, which are other programs' orphans, if sig tells
// of one.
func reaped(sig os.Signal) bool {
	if sig != syscall.SIGCHLD {
		return false
	}
	for {
		if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); pid <= 0 && err != syscall.EINTR {
			return true
		}
	}
}

// child is the command and its guard, whose protocol is told there.
type child struct {
	guard   *exec.Cmd
	lock    *os.File // for the command, or nil
	orders  *os.File
	reports *os.File
	pid     int           // of the command
	code    int           // its exit code, once ended is closed
	ended   chan struct{} // closed when the command has ended
	gone    chan struct{} // closed when the guard has ended, too
}

func newChild(file string, argv, env []string, lock *os.File) *child {
	return &child{
		guard: &exec.Cmd{
			Args: append([]string{guardName, "", "", file}, argv...), Env: env,
			Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
			SysProcAttr: &syscall.SysProcAttr{Setpgid: !atTerminal()},
		},
		lock: lock, ended: make(chan struct{}), gone: make(chan struct{}),
	}
}

// atTerminal reports whether the process has a terminal. Then the command stays in its process
// group: the terminal and the shell signal, stop and continue both, and the command can read.
func atTerminal() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err == nil {
		tty.Close()
	}
	return err == nil
}

// start starts the guard, which starts the command.
func (c *child) start() (err error) {
	if c.guard.Path, err = thisProgram(); err != nil {
		return err
	}
	orders, out, err := os.Pipe()
	if err != nil {
		return err
	}
	defer orders.Close()
	in, reports, err := os.Pipe()
	if err != nil {
		out.Close()
		return err
	}
	defer reports.Close() // so that the end of the guard is the end of the reports
	c.orders, c.reports = out, in
	c.guard.Args[1], c.guard.Args[2] = keptOnExec(orders), keptOnExec(reports)
	if c.lock != nil {
		keptOnExec(c.lock)
	}
	if err = c.guard.Start(); err == nil {
		if c.pid, err = c.report(); err == nil && c.pid > 0 {
			go c.watch()
			return nil
		}
		_ = c.guard.Wait()
	}
	if err == nil {
		err = syscall.Errno(-c.pid)
	}
	out.Close()
	in.Close()
	return &os.PathError{Op: "fork/exec", Path: c.guard.Args[3], Err: err}
}

// keptOnExec makes new processes inherit f, and returns the number of its descriptor. The number
// stays the same there: a descriptor that the command gets from the caller may have another number.
func keptOnExec(f *os.File) string {
	fd := f.Fd()
	_, _ = unix.FcntlInt(fd, unix.F_SETFD, 0)
	return strconv.Itoa(int(fd))
}

// report returns the next report of the guard.
func (c *child) report() (int, error) {
	var n int32
	err := binary.Read(c.reports, binary.LittleEndian, &n)
	return int(n), err
}

// watch waits for the end of the command, and then for the end of its guard.
func (c *child) watch() {
	n, err := c.report()
	switch status := syscall.WaitStatus(n); {
	case err != nil: // the guard was killed
		c.killGroup()
		c.code = exitSignal + int(syscall.SIGKILL)
	case status.Signaled():
		c.code = exitSignal + int(status.Signal())
	default:
		c.code = status.ExitStatus()
	}
	close(c.ended)
	_, _ = io.Copy(io.Discard, c.reports)
	_ = c.guard.Wait() // as process 1, reap may have been faster
	c.orders.Close()
	c.reports.Close()
	close(c.gone)
}

// killGroup kills the command and its process group, if it has one of its own.
func (c *child) killGroup() {
	to := c.pid
	if c.guard.SysProcAttr.Setpgid {
		to = -to
	}
	_ = syscall.Kill(to, syscall.SIGKILL)
}

// order sends an order to the guard, which may have ended.
func (c *child) order(order byte) { _, _ = c.orders.Write([]byte{order}) }

// signal sends sig to the command and its process group, unless that was signalled as a whole.
func (c *child) signal(sig os.Signal) { c.order(byte(sig.(syscall.Signal))) }

// leave ends the guard, and nothing else.
func (c *child) leave() { c.order(leave) }

// finish lets the guard end when nothing of the command is left.
func (c *child) finish() { c.order(last) }

// terminate sends SIGTERM to all that the command has started, and is finish.
func (c *child) terminate() { c.order(last + byte(syscall.SIGTERM)) }

// kill kills all that the command has started.
func (c *child) kill() {
	c.orders.Close()
	_ = c.guard.Process.Signal(syscall.SIGCONT) // it may be stopped
}
