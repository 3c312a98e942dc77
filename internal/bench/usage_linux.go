package bench

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Usage is the processor time that was used so far. Two of them tell how much of it others took.
type Usage struct {
	at        time.Time
	all, mine time.Duration // by everything on the machine, by this process and those that it started
	known     bool
}

// tick is the unit of /proc/stat for programs, on all architectures that Go runs on.
const tick = 10 * time.Millisecond

// TakeUsage reads /proc/stat. Time that a hypervisor took for other machines counts as used. The
// time of a child process counts once the child has ended.
func TakeUsage() Usage {
	u := Usage{at: time.Now()}
	stat, err := os.ReadFile("/proc/stat")
	var mine, children syscall.Rusage
	if err != nil || syscall.Getrusage(syscall.RUSAGE_SELF, &mine) != nil ||
		syscall.Getrusage(syscall.RUSAGE_CHILDREN, &children) != nil {
		return u
	}
	line, _, _ := bytes.Cut(stat, []byte("\n"))
	f := strings.Fields(string(line)) // cpu user nice system idle iowait irq softirq steal ...
	if len(f) < 9 || f[0] != "cpu" {
		return u
	}
	for _, i := range []int{1, 2, 3, 6, 7, 8} {
		ticks, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil {
			return u
		}
		u.all += time.Duration(ticks) * tick
	}
	for _, r := range []*syscall.Rusage{&mine, &children} {
		u.mine += time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	u.known = true
	return u
}

// Since returns what others took from before to u.
func (u Usage) Since(before Usage) Busy {
	elapsed := u.at.Sub(before.at)
	if !u.known || !before.known || elapsed <= 0 {
		return Busy{}
	}
	others := (u.all - before.all) - (u.mine - before.mine)
	// The two clocks differ by some ticks for each processor.
	share := max(0, float64(others)/float64(elapsed)/float64(runtime.NumCPU()))
	return Busy{Known: true, Others: share, TooBig: share > BusyLimit}
}
