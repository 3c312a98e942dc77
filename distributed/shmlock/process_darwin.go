package shmlock

import "golang.org/x/sys/unix"

// stateZombie is SZOMB of sys/proc.h.
const stateZombie = 5

// process returns the start time of a process in milliseconds, and whether it is a zombie.
func process(pid int) (start uint64, zombie, known bool) {
	p, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(p.Proc.P_pid) != pid {
		return 0, false, false
	}
	at := uint64(p.Proc.P_starttime.Sec)*1000 + uint64(p.Proc.P_starttime.Usec)/1000
	return at & (1<<(64-startAt) - 1), p.Proc.P_stat == stateZombie, true
}
