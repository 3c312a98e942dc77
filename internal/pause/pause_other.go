//go:build !amd64 && !arm64

package pause

import "sync/atomic"

var sink atomic.Uint32

// Pause spends about the time of n pause instructions where there is none to use.
func Pause(n uint32) {
	for range n {
		for range 8 {
			sink.Load() // not optimised away
		}
	}
}
