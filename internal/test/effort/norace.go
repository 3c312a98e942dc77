//go:build !race

package effort

// share is the divisor of a search that nobody asked for as a whole.
const share = 4
