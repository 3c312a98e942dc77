// Package locksdebug shows the locks of the process that it runs in, as net/http/pprof shows its
// profiles: which goroutines wait for which locks, for how long, and which waits can never end.
//
//	mux.Handle("/debug/locks", locksdebug.Handler())
//
// The handler answers with a page for a browser, with text for curl, and with JSON:
//
//	curl http://localhost:6060/debug/locks
//	curl http://localhost:6060/debug/locks?format=json
//
// The clause of the package is locksdebug, and not locks as the path ends: a program that uses this
// package uses package locks too.
//
// # Do not make it public
//
// The answer has the names of locks, the functions and source files of goroutines, and the names
// of hosts. Each answer stops the program for a moment. Importing the package registers nothing:
// the program says where the handler is. Put the handler where only operators can reach it, such
// as on a port of localhost, or behind an authentication. The page of the handler loads nothing
// from any other address, and other sites cannot frame it.
//
// # What is shown without registration
//
//   - Each lock with an owner that has a waiter, with its holders, and with its queue in order.
//     These are the locks of packages reentrant, rwlock (RWMutex), keyed and named, and the local
//     queues of leased locks.
//   - Cycles of waits and locks of exited goroutines among these, see package deadlock. If
//     [deadlock.Record] is on, the places where the locks were acquired are shown too.
//   - Each owner with all that it holds and waits for.
//   - Each lease that a client of a store has in this process: the time left, the last renewal, and
//     renewals without an answer. The store is not asked.
//
// Waits that began before the first call of [Handler] are shown without their time.
//
// A key of package keyed is shown by its value, and a pointer key by its type and its address. The
// handler calls no method of a key, and reads no memory that a key points to.
//
// # What the program registers
//
//   - [WithRecorder] adds the holds and waits that a [record.Recorder] knows, with their times and
//     names: of any lock, also of [sync.Mutex] and of packages fair and spin. Waits need
//     [record.Options.Waits]. The history of each name is shown as well: acquisitions, and
//     quantiles of waits and holds, the most contended name first. Holds and waits that have not
//     ended count with their time so far.
//   - [WithInspector] adds what Inspect of a lock returns. A lock on a store asks the store: its
//     holder may be another process.
//
// # Cost
//
// From the first call of Handler on, a contended wait of a lock with an owner reads the clock once
// more. An acquisition without a wait costs the same as before.
//
// If any lock is held or any goroutine waits, a request stops the world once to take the stacks
// of all goroutines. With 10,000 waiters the stop takes 140 to 270 ms. The answer says how long
// the stop took. The page refreshes itself less often, if its answers stop the program for more
// than 1 % of the time. With more than 50,000 goroutines no stacks are taken, and orphans are not
// looked for. The page lists 200 locks at most. Requests take turns. The answer shows one lock
// after the other, so a lock may have changed while the next lock was read.
//
// # The profile of holds
//
// [HeldProfile] returns the profile locks.held, in which a Recorder with [record.Options.Held]
// keeps the stack of each hold:
//
//	r := record.New(record.Options{Held: locksdebug.HeldProfile()})
//
// Then go tool pprof and /debug/pprof/locks.held of net/http/pprof show where the present holds
// began.
package locksdebug
