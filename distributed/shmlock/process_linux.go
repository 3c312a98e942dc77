package shmlock

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// process returns the start time of a process in clock ticks since boot, and whether it is a
// zombie. known is false if /proc does not tell.
func process(pid int) (start uint64, zombie, known bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil { // it has just ended, or is hidden
		return 0, false, false
	}
	// The second field is the program's name in parentheses, which may contain anything.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return 0, false, false
	}
	start, err = strconv.ParseUint(string(fields[19]), 10, 64) // the 22nd
	if err != nil {
		return 0, false, false
	}
	return start & (1<<(64-startAt) - 1), fields[0][0] == 'Z' || fields[0][0] == 'X', true
}

// namespace names the PID namespace and the time namespace, by which the kernel shifts start times.
// Either is 0 if it is unknown. The kernel gives namespaces numbers of 32 bits.
func namespace() uint64 {
	var of [2]uint64
	for i, path := range [...]string{"/proc/self/ns/pid", "/proc/self/ns/time"} {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err == nil {
			of[i] = st.Ino
		}
	}
	return of[0] | of[1]<<32
}
