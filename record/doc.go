// Package record watches locks at work: which goroutines wait for which lock and for how long,
// which hold it, and which acquisitions fail. It wraps any [locks.TryLocker], local or
// distributed, of this module or not. A lock that is not wrapped costs what it always did.
//
//	r := record.New(record.Options{})
//	lock := r.Wrap("accounts", new(reentrant.Mutex))
//
// From then on [Recorder.Stats] has counters and histograms of waits and holds for each name,
// in a form that any metrics system takes. On request a Recorder also keeps the last events
// ([Options.Events]), calls a function for each of them ([Options.Hook]), and logs long waits and
// holds ([Options.Logger]).
//
// While an execution trace is being taken, every acquisition that may wait is a region
// "wait for NAME", and every hold a task "hold NAME". Open them with go tool trace. Without a trace
// this costs one atomic load.
//
// # What is not seen
//
// A Recorder sees only calls of the wrapper. A condition releases its lock and acquires it again
// past the wrapper: to the Recorder the lock is held all the while. The same is true of a
// read-write lock that is downgraded or upgraded, and of a lost lease until its holder unlocks.
//
// A lock without owners may be released by any goroutine. Such a release ends the oldest hold. If
// the goroutine that is charged with it has acquired the lock again meanwhile, both holds count
// as one in [Stats.Holds].
package record
