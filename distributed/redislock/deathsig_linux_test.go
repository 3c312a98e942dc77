package redislock_test

import "syscall"

// deathSignal has a child process killed when the test is.
func deathSignal() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
