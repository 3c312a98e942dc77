//go:build !unix

package testbed

// Pause is not available here.
func (p *Process) Pause() { p.tb.Skip("a process cannot be paused on this system: skipped") }

// Resume is not available here.
func (p *Process) Resume() { p.Pause() }
