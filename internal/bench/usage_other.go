//go:build !linux

package bench

// Usage is empty: this system does not tell the processor time of everything on the machine.
type Usage struct{}

// TakeUsage returns the zero Usage.
func TakeUsage() Usage { return Usage{} }

// Since returns the zero Busy.
func (Usage) Since(Usage) Busy { return Busy{} }
