package main

import "syscall"

// endWithParent makes the kernel kill the command if withlock is killed. This reaches only the
// command itself, not its children.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
