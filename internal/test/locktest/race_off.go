//go:build !race

package locktest

// Race reports whether the race detector is on.
const Race = false
