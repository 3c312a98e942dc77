//go:build !amd64 && !arm64

package prefetch

// Goroutine does nothing here.
func Goroutine(descriptor, frame uintptr) {}

// Frame returns 0 here.
func Frame() uintptr { return 0 }
