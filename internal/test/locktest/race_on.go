//go:build race

package locktest

// Race reports whether the race detector is on. It dies of more than 8128 goroutines, and
// makes allocations of its own.
const Race = true
