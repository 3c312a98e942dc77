//go:build unix

package command

import (
	"encoding/binary"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// The command is the child of a guard, which is this program once more, in a process of its own.
// When withlock is killed, the guard kills all that the command has started. On Linux, a process
// without its parent becomes the guard's child. So nothing that the command has started gets away.
//
// Orders and reports have a pipe each. A report is a number of 32 bits: first the command's process
// id, or its errno below 0. Then the wait status of the command. An order is a byte:
//
//	leave        end, and leave alone what still runs
//	last + n     send signal n to all that the command has started, and end when nothing is left
//	n            send signal n to the command and its process group
//	end of file  kill all that the command has started, and end
const (
	leave byte = 0
	last  byte = 128
)

// guardName is the name by which this program is a guard. It differs from withlock, so that killall
// does not kill both.
const guardName = "lockguard"

// guard is the state of the process.
type guard struct {
	pid   int                     // of the command
	group bool                    // the command has a process group of its own
	got   chan os.Signal          // what the guard itself got
	heard map[os.Signal]time.Time // when it got it
	gone  chan struct{}           // closed when nothing of the command is left
}

// guardIfAsked is all that a guard does, if this process is one.
func guardIfAsked() {
	if len(os.Args) > 4 && os.Args[0] == guardName {
		guardCommand(os.Args[1], os.Args[2], os.Args[3], os.Args[4:])
		os.Exit(0)
	}
}

func guardCommand(ordersFD, reportsFD, file string, argv []string) {
	orders, reports := inherited(ordersFD), inherited(reportsFD)
	report := func(n int32) { _ = binary.Write(reports, binary.LittleEndian, n) }
	g := &guard{
		group: syscall.Getpgrp() == os.Getpid(), // as newChild has chosen
		got:   make(chan os.Signal, 16), heard: make(map[os.Signal]time.Time), gone: make(chan struct{}),
	}
	catch(g.got) // a signal to a whole group or service does not end the guard
	adopt()
	// On Linux, the kernel kills the command at the end of this thread: if the guard is killed.
	runtime.LockOSThread()
	attr := &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: g.group},
	}
	endWithParent(attr.Sys)
	var err error
	g.pid, err = syscall.ForkExec(file, argv, attr)
	if err != nil {
		errno, _ := err.(syscall.Errno)
		report(-int32(errno))
		return
	}
	report(int32(g.pid))
	go g.reap(func(status syscall.WaitStatus) { report(int32(status)) })
	g.obey(orders)
}

// inherited returns the file of a descriptor that the command must not inherit.
func inherited(fd string) *os.File {
	n, _ := strconv.Atoi(fd)
	syscall.CloseOnExec(n)
	return os.NewFile(uintptr(n), "pipe")
}

// reap waits for all children, and tells the status of the command.
func (g *guard) reap(ended func(syscall.WaitStatus)) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case pid == g.pid:
			ended(status)
		case err != nil && err != syscall.EINTR: // no child is left
			for g.group && syscall.Kill(-g.pid, 0) == nil { // where others have adopted some
				time.Sleep(10 * time.Millisecond)
			}
			close(g.gone)
			return
		}
	}
}

// obey carries out the orders until the guard must end.
func (g *guard) obey(from *os.File) {
	orders := make(chan byte)
	go func() {
		defer close(orders)
		for b := make([]byte, 1); ; orders <- b[0] {
			if n, _ := from.Read(b); n == 0 {
				return
			}
		}
	}()
	var gone <-chan struct{}
	for {
		select {
		case sig := <-g.got:
			g.heard[sig] = time.Now()
		case <-gone:
			return
		case order, ok := <-orders:
			switch {
			case !ok:
				g.kill()
				return
			case order == leave:
				return
			case order >= last:
				g.signal(syscall.Signal(order-last), true)
				gone = g.gone
			case g.group || g.away() || !g.shared(syscall.Signal(order)):
				g.signal(syscall.Signal(order), false)
			}
		}
	}
}

// away reports whether the command has left the guard's process group, as timeout(1) does. Then it
// does not get what the group gets.
func (g *guard) away() bool {
	group, err := syscall.Getpgid(g.pid)
	return err == nil && group != syscall.Getpgrp()
}

// patience is how long shared waits. Tests change it.
var patience = 50 * time.Millisecond

// shared reports whether the guard has got sig, too: then it was for the whole process group, which
// is also the command's, such as Ctrl-C at the terminal. It waits a little for the signal.
func (g *guard) shared(sig os.Signal) bool {
	limit := time.After(patience)
	for time.Since(g.heard[sig]) > time.Second {
		select {
		case sig := <-g.got:
			g.heard[sig] = time.Now()
		case <-limit:
			return false
		}
	}
	return true
}

// signal sends sig to the command and its group, or to all that the command has started. It reports
// whether a process got it.
func (g *guard) signal(sig syscall.Signal, all bool) (got bool) {
	to, own := []int{g.pid}, syscall.Getpgrp()
	if g.group {
		to, own = []int{-g.pid}, g.pid
	}
	for _, p := range descendants() {
		switch in := p.group == own; {
		case p.pid == g.pid, in && g.group: // among to already
		case in, all:
			to = append(to, p.pid)
		}
	}
	for _, pid := range to {
		got = syscall.Kill(pid, sig) == nil || got // some have ended, others belong to another user
	}
	return got
}

// kill kills all that the command has started, also what appears meanwhile.
func (g *guard) kill() {
	for g.signal(syscall.SIGKILL, true) {
		select {
		case <-g.gone:
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
	select {
	case <-g.gone:
	case <-time.After(time.Second): // another user's processes are left
	}
}
