//go:build !race

package park

const race = false
