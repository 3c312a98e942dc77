// Package record observes locks in use: which goroutines wait for which lock and for how long,
// which goroutines hold it, and which acquisitions fail. It wraps any [locks.TryLocker], local or
// distributed, of this module or not. A lock that is not wrapped costs the same as before.
//
//	r := record.New(record.Options{})
//	lock := r.Wrap("accounts", new(reentrant.Mutex))
//
// Then [Recorder.Stats] returns counters and histograms of waits and holds for each name, in a
// form that suits any metrics system, and [Recorder.Holds] returns the present holds. On
// request a Recorder also keeps the last events ([Options.Events]), calls functions for each of
// them ([Options.Hook], [Recorder.Listen]), and logs long waits and holds ([Options.Logger]).
//
// The modules record/prom and record/otel export all of this to Prometheus and OpenTelemetry.
//
// While an execution trace is being taken, every acquisition that may wait is a region
// "wait for NAME", and every hold a task "hold NAME". Open them with go tool trace. Without a trace
// this costs one atomic load.
//
// # What is not seen
//
// A Recorder sees only calls of the wrapper. A condition releases its lock and acquires it again
// without the wrapper: the Recorder counts the lock as held meanwhile. The same is true of a
// read-write lock that is downgraded or upgraded, and of a lost lease until its holder unlocks.
//
// Any goroutine may release a lock without owners. A release by another goroutine ends the
// oldest hold. If the goroutine of that hold has acquired the lock again meanwhile, the two
// holds count as one in [Stats.Holds].
package record
