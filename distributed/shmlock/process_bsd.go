//go:build freebsd || netbsd || openbsd || dragonfly

package shmlock

// process knows nothing here beyond the number.
func process(int) (start uint64, zombie, known bool) { return 0, false, false }
