// Package bench measures locks: what an acquisition costs, and what those who
// wait get for it.
//
// The cost of a contended lock says little by itself. A lock is at its fastest
// when it lets one goroutine have it over and over, past all who wait; so
// whatever measures a contended lock here reports how fair it was in the same
// breath: the wait of an acquisition, Jain's index of the acquisitions of each
// goroutine, and the longest streak of one goroutine past others.
//
//	go test -bench . ./bench
//	go run ./bench/fairness
//
// The first runs all benchmarks, the second the comparison of fair and other
// locks for people in a hurry.
package bench
