//go:build !linux

package testbed

import "os/exec"

func dieWithParent(*exec.Cmd) {}

func start(cmd *exec.Cmd) error { return cmd.Start() }
