# Names for the scripts of .ci. CONTRIBUTING.md says how long they take.

.PHONY: setup check flaky ci fuzz benchmarks

# Once after a clone: a go.work that joins all modules, and what their tests need of other modules.
setup:
	.ci/setup
	go mod download

# After each change: format, vet and tests of the packages that differ from main, or of P="./fair ./spin".
check:
	.ci/check $(P)

# The tests of a package many times on a busy machine: make flaky P="./fair -n 50"
flaky:
	.ci/flaky $(P)

# Everything, or parts: make ci P="lint core"
ci:
	.ci/run $(P)

fuzz:
	.ci/fuzz

benchmarks:
	.ci/benchmarks
