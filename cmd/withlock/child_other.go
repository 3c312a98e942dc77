//go:build !unix

package main

import (
	"os"
	"os/exec"
	"time"
)

// Such a system sends no signal but an interrupt, and gives that to the command by itself.
var forwardedSignals = []os.Signal{os.Interrupt}

func endingSignal(os.Signal) int { return exitSignal + 2 }

// child is the process of the command, without its children.
type child struct{ cmd *exec.Cmd }

func newChild(cmd *exec.Cmd) *child { return &child{cmd} }

func (c *child) start() error                  { return c.cmd.Start() }
func (c *child) forget()                       {}
func (c *child) pid() int                      { return c.cmd.Process.Pid }
func (c *child) signal(os.Signal)              {}
func (c *child) terminate()                    { c.kill() }
func (c *child) kill()                         { _ = c.cmd.Process.Kill() }
func (c *child) waitForGroup(<-chan time.Time) {}
func signalOf(*os.ProcessState) int            { return 0 }
