# Names for the scripts of .ci. CONTRIBUTING.md says how long they take.

.PHONY: check ci fuzz benchmarks

# After each change: format, vet and tests of the packages that differ from main, or of P="./fair ./spin".
check:
	.ci/check $(P)

# Everything, or parts: make ci P="lint core"
ci:
	.ci/run $(P)

fuzz:
	.ci/fuzz

benchmarks:
	.ci/benchmarks
