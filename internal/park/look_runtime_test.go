//go:build go1.26 && !go1.27 && gc && !wasm && !race && !msan && !asan && !goexperiment.goroutineleakprofile && !locks_nolinkname

package park

// lookAgain has the next wait that is timed find out whether there is a block profile.
func lookAgain() { looked.Store(0) }
