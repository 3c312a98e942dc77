//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// killTogether makes the end of cmd's context kill all processes that cmd starts: JMH, Maven and
// cargo start further processes.
func killTogether(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
