//go:build !race

package explore

// raceEnabled says that the race detector is built in.
const raceEnabled = false
