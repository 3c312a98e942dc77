//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package shmlock

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// self returns the word of this process.
func self() (uint64, error) {
	pid := os.Getpid()
	if pid >= 1<<pidBits {
		return 0, fmt.Errorf("process number %d has more than %d bits", pid, pidBits)
	}
	start, _, _ := process(pid)
	return idOf(pid, start), nil
}

// alive reports whether the process of the word lives. It returns true if the answer is unknown.
func alive(word uint64) bool {
	pid, start := partsOf(word)
	if pid == 0 { // orphan
		return false
	}
	if unix.Kill(pid, 0) == unix.ESRCH {
		return false
	}
	now, zombie, known := process(pid)
	return !known || !zombie && (start == 0 || now == 0 || now == start)
}
