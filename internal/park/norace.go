//go:build !race

package park

// race says that the race detector is built in.
const race = false
