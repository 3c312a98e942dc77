//go:build unix

package bench

import (
	"syscall"
	"time"
)

// processTime returns how much processor time this process has used.
func processTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
