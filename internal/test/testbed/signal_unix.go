//go:build unix

package testbed

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Pause stops the process, which keeps its memory and its connections, until [Process.Resume]. On
// Linux it returns when all threads have stopped: one that runs may otherwise answer yet.
func (p *Process) Pause() {
	p.tb.Helper()
	p.Signal(syscall.SIGSTOP)
	for end := time.Now().Add(Hang); !p.stopped(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			p.tb.Fatal("the process does not stop")
		}
	}
}

// stopped reports whether no thread of the process runs.
func (p *Process) stopped() bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
	for _, thread := range threads {
		stat, err := os.ReadFile(thread)
		ended := err != nil || strings.Contains(string(stat), ") Z ")
		if !ended && !strings.Contains(string(stat), ") T ") {
			return false
		}
	}
	return true
}

// Resume ends a [Process.Pause].
func (p *Process) Resume() {
	p.tb.Helper()
	p.Signal(syscall.SIGCONT)
}
