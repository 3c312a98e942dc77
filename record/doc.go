// Package record watches locks at work: who waits for which lock and for how long, who holds
// it, and which acquisitions came to nothing. It wraps any [locks.TryLocker], local or
// distributed, ours or not; a lock that is not wrapped costs what it always did.
//
//	r := record.New(record.Options{})
//	lock := r.Wrap("accounts", new(reentrant.Mutex))
//
// From then on [Recorder.Stats] has counters and histograms of waits and holds for each name,
// in a form that any metrics system takes. On request a Recorder also keeps the last events
// ([Options.Events]), calls a function for each ([Options.Hook]), and logs those that took long
// ([Options.Logger]).
//
// While an execution trace is being taken, every acquisition that may wait is a region
// "wait for NAME", and every hold a task "hold NAME", for go tool trace to show. While none is, that
// costs one atomic load.
//
// # What is not seen
//
// Only what goes through the wrapper. A condition gives its lock up and takes it again on
// the inside: to the recorder the lock is held all the while. The same is true of a
// read-write lock that is downgraded or upgraded, and of a lease that is lost until its
// holder unlocks.
package record
