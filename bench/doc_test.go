// Package bench_test holds the benchmarks of the locks:
//
//	go test -bench . ./bench
//
// The harness and the workloads are in internal/bench.
package bench_test
