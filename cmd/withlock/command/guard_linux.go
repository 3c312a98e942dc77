package command

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// thisProgram is also right after the file was replaced.
func thisProgram() (string, error) { return "/proc/self/exe", nil }

// endWithParent makes the kernel kill the command if its parent is killed.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// adopt makes this process the parent of all its descendants whose own parent ends.
func adopt() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)   // since Linux 3.4
	_ = os.WriteFile("/proc/self/comm", []byte(guardName), 0) // instead of exe
}

// relative is a process and its process group.
type relative struct{ pid, group int }

// descendants returns the processes that this process has started, directly or not.
func descendants() (all []relative) {
	self := os.Getpid()
	if pid, _ := os.Readlink("/proc/self"); pid != strconv.Itoa(self) {
		return nil // the numbers are those of another PID namespace
	}
	entries, _ := os.ReadDir("/proc")
	children := make(map[int][]relative)
	for _, e := range entries {
		stat, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue // no process, or none any more
		}
		var p relative
		var state rune
		var parent int
		p.pid, _ = strconv.Atoi(e.Name())
		// The name of the program is in parentheses, and may have any characters.
		_, err = fmt.Sscanf(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " %c %d %d", &state, &parent, &p.group)
		if err == nil {
			children[parent] = append(children[parent], p)
		}
	}
	all = children[self]
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i].pid]...)
	}
	return all
}
