//go:build !go1.26 || go1.27 || !gc || wasm || race || msan || asan || goexperiment.goroutineleakprofile || locks_nolinkname

package park

func lookAgain() {}
