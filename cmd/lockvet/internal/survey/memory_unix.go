//go:build unix && !darwin

package main

import (
	"os"
	"syscall"
)

// memoryOf returns the greatest resident memory of a process in bytes.
func memoryOf(p *os.ProcessState) int64 {
	if usage, ok := p.SysUsage().(*syscall.Rusage); ok {
		return int64(usage.Maxrss) << 10
	}
	return 0
}
