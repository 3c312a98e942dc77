//go:build !linux

package redislock_test

import "syscall"

func deathSignal() *syscall.SysProcAttr { return nil }
