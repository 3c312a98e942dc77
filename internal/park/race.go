//go:build race

package park

const race = true
