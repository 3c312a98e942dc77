// Package explore runs a program under many schedules of its locks in a test, and prints and
// replays the schedule that fails, like loom and shuttle for Rust, and Coyote for .NET.
//
//	func TestTransfers(t *testing.T) {
//		explore.Run(t, func(x *explore.X) {
//			a, b := newAccount(10), newAccount(10)
//			x.Go("there", func() { transfer(a, b, 1) })
//			x.Go("back", func() { transfer(b, a, 2) })
//			x.Wait()
//			x.Check(a.balance+b.balance == 20, "money is lost")
//		})
//	}
//
// The program uses the locks of this module as it always does. One of its goroutines runs at a
// time. Each operation of a lock, of a condition, and of package cas is a decision: any goroutine
// that can run may be next. So are [X.Step], and the end of a wait with a time limit.
//
// # Findings
//
// A run ends with a finding if it deadlocks, loses a wake-up ([LostWakeup]), panics, fails a check,
// leaves a goroutine blocked ([Leak]), or does not end within [DefaultSteps] ([Endless]). See the
// constants of type [Kind]. The report has the shortest schedule that shows it: who holds what, who
// waits where, a table with a column for each goroutine, and the option [Replay] that runs this
// schedule again.
//
// # How the decisions get in
//
// An uncontended Lock is one inlined instruction, and no program pays for a hook in it. So the
// locks announce their operations only in a build with the tag lockexplore. [Run] sees to that:
// in tests without the tag it builds the package's tests again with it, and runs the test in that
// process. The command is go test. A debugger, and a profile of coverage, need go test -tags
// lockexplore.
//
// # What it searches
//
// By default Run tries the schedules with no preemption, then with one, then with two, see
// [DefaultPreemptions]. A preemption is a change away from a goroutine that could go on; most
// mistakes need at most two. Then it tries the schedules with three preemptions, and goes on with
// random priorities, until it has tried [DefaultSchedules] or [DefaultTime] is over. If it has not
// tried all schedules with two by then, it goes on with these for eight seconds. A program with
// more than 1,000 decisions a run gets forty schedules at random first. See [Preemptions], [PCT],
// [Random].
//
// After 2,500 schedules it leaves out schedules that differ from another schedule in the order of
// operations on different locks alone. After 2,500 more it also leaves out when a goroutine begins
// to wait for a lock that another goroutine holds. A hand-off to a waiter then counts as a
// preemption. Five goroutines with three critical sections each of one lock have 32,760 such
// schedules with two preemptions. The effects of atomics on other goroutines are left out too. Run
// leaves out nothing in a program whose goroutines wait outside of locks.
//
// The log says how far the search went. If it was not complete, a line on the standard error says
// so as well. With the option [Complete] the test fails instead. With the option [Keep], failing
// schedules are kept in files, and tried first.
//
// The log says "all" only for programs whose locks alone decide what they do. If one schedule leads
// to different operations in two runs, something besides the explorer decides: a select, the order
// of a map, a random number, or time. The log and the report then say so, and Run searches by
// repetition. [X.Select] and [X.Choose] make such a choice a decision. The log also gives the
// reason if a goroutine has waited outside of locks, or time has passed. A run does not always show
// an atomic.
//
// # Time
//
// Each run is in a testing/synctest bubble. Its clock moves when no goroutine can run. While a
// goroutine waits for a lock or a condition with a time limit, the passing of time is a decision
// too. The limit may end before the lock is free or after it. If a run has shown that the program
// has timers, or an operation has a context with a deadline, time may pass beside work as well.
// Some runs look for timers, also those in which a goroutine has waited outside of locks beside
// others. A context that is cancelled may end between an operation and the next statement.
//
// # What it does not see
//
//   - Operations of sync/atomic, and reads and writes of plain variables, do not count as
//     decisions. Put X.Step between them, or run with -race: the scheduler hides no data race from
//     the detector.
//   - A goroutine must not wait for a sync.Mutex or sync.RWMutex while its holder is stopped at a
//     decision. Such a run does not go on. It fails the test after three seconds with the lines of
//     its goroutines, unless it is a replay. Locks of this module in their place lack this limit.
//   - No time passes while a goroutine waits for a sync.Once. A singleton.Lazy lacks this limit.
//   - Goroutines that a channel, a timer or a sync.WaitGroup wakes go on at once, beside the
//     running goroutine, until their next operation of a lock.
//   - Goroutines that were not started with [X.Go] are seen from their first operation of a lock
//     on.
//   - A panic in a goroutine that was not started with X.Go ends the process with the tag, as in
//     each program. The trace of Go has its line, and the schedule is missing. The process of go
//     test reports the panic for this test, and runs the other tests.
//   - Locks on a store announce nothing. See [Lease] for a lock that is lost by decision.
//
// # What else there is
//
// Package deadlock finds the cycles that a test or a program runs into. Command lockvet finds
// mistakes that the source shows, without a run. See docs/guides/finding-mistakes.md.
package explore
