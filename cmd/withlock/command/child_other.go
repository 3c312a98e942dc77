//go:build !unix

package command

import (
	"os"
	"os/exec"
	"os/signal"
)

// Such a system sends no signal but an interrupt, and gives that to the command by itself.
var forwardedSignals = []os.Signal{os.Interrupt}

func catch(c chan<- os.Signal) { signal.Notify(c, forwardedSignals...) }

// guardIfAsked does nothing: such a system lacks guards.
func guardIfAsked() {}

func endingSignal(os.Signal) int { return exitSignal + 2 }

func reaped(os.Signal) bool { return false }

// child is the process of the command, without its children.
type child struct {
	cmd   *exec.Cmd
	pid   int
	code  int           // the exit code, once ended is closed
	ended chan struct{} // closed when the command has ended
	gone  chan struct{} // the same
}

func newChild(file string, argv, env []string, _ *os.File) *child {
	ended := make(chan struct{})
	cmd := &exec.Cmd{Path: file, Args: argv, Env: env, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr}
	return &child{cmd: cmd, ended: ended, gone: ended}
}

func (c *child) start() error {
	if err := c.cmd.Start(); err != nil {
		return err
	}
	c.pid = c.cmd.Process.Pid
	go func() {
		_ = c.cmd.Wait()
		c.code = c.cmd.ProcessState.ExitCode()
		close(c.ended)
	}()
	return nil
}

func (c *child) signal(os.Signal) {}
func (c *child) leave()           {}
func (c *child) finish()          {}
func (c *child) terminate()       { c.kill() }
func (c *child) kill()            { _ = c.cmd.Process.Kill() }
