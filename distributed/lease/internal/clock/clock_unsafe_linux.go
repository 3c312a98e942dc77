package clock

import (
	"syscall"
	"time"
	"unsafe"
)

const (
	clockMonotonic = 1
	clockBoottime  = 7
)

// systemSuspended returns how long the machine was suspended since it was started: CLOCK_BOOTTIME
// minus CLOCK_MONOTONIC. The result is never too large. It is too small by the time between the
// two readings.
func systemSuspended() (d time.Duration) {
	for range 5 {
		before := clock(clockMonotonic)
		boot := clock(clockBoottime)
		after := clock(clockMonotonic)
		d = max(d, boot-after)
		if after-before < time.Millisecond {
			break
		}
	}
	return d
}

// clock reads a clock of the system, in 0.2 to 1.5 microseconds.
func clock(id uintptr) time.Duration {
	var t syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id, uintptr(unsafe.Pointer(&t)), 0)
	return time.Duration(t.Nano())
}
