//go:build !race

package syncq

const raceEnabled = false
