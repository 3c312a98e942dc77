// Package bench measures locks: the cost of an acquisition, and the waits that the goroutines
// have for it.
//
// The cost of a contended lock says little by itself. A lock is at its fastest when one goroutine
// acquires it over and over, past all waiters. Therefore each contest here also reports how fair
// the lock was: the waits, Jain's index of the acquisitions of each goroutine, and the longest
// streak of one goroutine past others.
//
//	go test -bench . ./bench
//	go run ./bench/fairness
//	go run ./bench/compare
//
// The first runs all benchmarks. The second compares fair and other locks in half a minute. The
// third, a module of its own, compares all workloads with the locks of other libraries.
package bench
