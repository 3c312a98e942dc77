//go:build amd64 || arm64

package prefetch

import "unsafe"

// Goroutine fetches what a parked goroutine touches first when it runs again: the beginning of the runtime's
// descriptor of it, which is at descriptor, and its stack from the line before frame on, half a kilobyte up. Both come from another processor's
// cache, or from afar, if it ran there or long ago, and it would wait for one line after the other.
//
// It does not wait for the memory, and takes some 4 ns. Any address will do, also one that is not mapped, so it does not
// matter that a stack may have moved since.
//
//go:noescape
func Goroutine(descriptor, frame uintptr)

// Frame returns an address in the frame of its caller, or right below it.
func Frame() uintptr {
	var here byte
	return uintptr(unsafe.Pointer(&here))
}
