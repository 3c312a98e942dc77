//go:build unix

package testbed

import "syscall"

// Pause stops the process, which keeps its memory and its connections, until [Process.Resume].
func (p *Process) Pause() {
	p.tb.Helper()
	p.Signal(syscall.SIGSTOP)
}

// Resume ends a [Process.Pause].
func (p *Process) Resume() {
	p.tb.Helper()
	p.Signal(syscall.SIGCONT)
}
