//go:build amd64 || arm64

package pause

// Pause executes n pause instructions, or none: PAUSE on amd64, where one takes some 30 ns
// on today's processors, and YIELD on arm64. They leave the core's resources to its
// sibling and save the pipeline flush when the awaited write arrives. It is assembly because
// Go has no intrinsic for it outside the runtime.
//
//go:noescape
func Pause(n uint32)
