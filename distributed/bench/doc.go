// Package bench compares the distributed locks with other libraries, which only this module depends
// on: go test -bench . See README.md for the meaning of the figures.
package bench
