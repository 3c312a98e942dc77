//go:build amd64 || arm64

package pause

// Pause executes n times, or not at all if n is 0, the processor's instruction for loops that
// wait for another core. It is assembly because Go has no intrinsic for it outside the runtime.
//
//   - amd64: PAUSE. It takes some 30 ns on today's processors and some 3 ns on older processors,
//     leaves the core's resources to its sibling, and saves the pipeline flush when the awaited
//     write arrives.
//   - arm64: ISB SY. YIELD, which is meant for this, does nothing on cores without hardware
//     threads, and that is nearly all of them. ISB waits until the pipeline has drained, 10 to
//     20 ns; the Go runtime and the standard library of Rust took the same way.
//
//go:noescape
func Pause(n uint32)
