// Package synchronizer is for locks of one's own: AbstractQueuedSynchronizer of
// java.util.concurrent.locks in the shape of Go. A program gives rules, two functions of a word.
// It gets a lock with a queue, contexts, time limits, inspection, and both policies.
//
//	type rules struct{} // of a mutex: the word is 1 while it is held
//
//	func (rules) Acquire(w, _ uint64) (uint64, bool) { return 1, w == 0 }
//	func (rules) Release(w, _ uint64) (uint64, bool) { return 0, w == 1 }
//
//	type Mutex struct{ s synchronizer.Sync[rules] }
//
//	func (m *Mutex) Lock()   { m.s.Acquire(1) }
//	func (m *Mutex) Unlock() { m.s.Release(1) }
//
// The examples of [Sync] are a mutex, a boolean latch, a count-down latch, a semaphore, a
// read-write lock, a gate, a bounded counter, and conditions. Prefer the locks of this module
// where one fits: they are faster, know their owners, and find deadlocks.
//
// # Exclusive and shared
//
// Sync does not distinguish them. Under rules that count readers, a reader can follow a reader. A
// release goes through the waiters in their order, and admits each of them until the rules refuse
// one. So one release can admit several waiters, which AbstractQueuedSynchronizer calls
// propagation. An acquisition that changes nothing, such as that of an open latch, writes
// nothing.
//
// # Order
//
// Under fair.FIFO, nobody overtakes a waiter. That holds for what the rules would allow, too: an
// acquisition that waits for more than is free does not let small ones pass it. Otherwise small
// ones could keep it waiting for ever. So some of a word can be free while goroutines wait. A
// goroutine comes to the queue when its call has found the queue empty or has entered it. Two
// calls at the same time may come in either order.
//
// Under fair.NonFair, a goroutine that the rules admit overtakes the waiters, but not for ever:
// see [New]. Under contention that is several times as fast, since the goroutine that runs goes
// on, while a waiter has still to be woken.
//
// # The end of a wait
//
// A wait ends by a grant, or by its context or time limit. Both happen with the guard held: a
// grant takes the waiter out of the queue, and so does the end of a limit, so the second of the
// two comes too late. AcquireContext returns nil if the grant was the first. If the first waiter
// leaves, advance looks at the next one. The rules may allow what that asks for, and a wake-up of
// the former must not get lost.
//
// # A wait, step by step
//
//  1. The goroutine looks at gate and at the word. If gate is not closed, and the rules allow it,
//     it changes the word by compare-and-swap, and has acquired.
//  2. Otherwise it takes the guard, and is appended to the queue. If it is the first there,
//     advance sets gate, and then looks at the word again: the last release may have come in
//     between. It parks. Without a limit it gives the guard back when it parks, and not before.
//  3. A release changes the word, and then looks at gate. If goroutines wait, it takes the guard
//     and calls advance.
//  4. Under FIFO, advance acquires for the first waiter, by compare-and-swap of the word. It
//     takes the waiter out of the queue, and goes on with the next one. All of them are unparked
//     at last.
//  5. Under NonFair, advance unparks the first waiter, which stays in the queue, and races for
//     the word when it runs (compete). If it loses, it parks again, still first. After too many
//     lost races, or too long a wait, the word is reserved for it: gate is closed, and 4 goes for
//     it.
//  6. If the limit ends first, the waiter takes the guard (leave). A waiter that is still in the
//     queue leaves it. One that is not was granted what it asked for: it takes the unpark that
//     comes with it.
//
// # State
//
// The table of the legal values of gate, and the rule of each flag, are in sync.go. The table of
// a waiter's states is in queue.go, and the invariants are at advance. The word itself is the
// rules' own: the engine has no bit in it. So the queue is mirrored by a second word, where the
// locks of this module have flags in their only one.
//
// # Why no wake-up is lost
//
// Take a first waiter that sleeps, and a release that makes its acquisition possible. The waiter,
// or advance for it, has first set gate, and then seen a word at which the rules refused it. The
// release has first changed the word, and then looked at gate. All four steps are atomic, and
// atomics in Go are sequentially consistent. If the waiter did not see the word of the release,
// the release comes after the waiter's look, and sees gate: it calls advance. If advance is under
// way in another goroutine, the guard puts one after the other, and the last one sees the last
// word.
//
// A release that sees awake in gate leaves the rest to the first waiter. That waiter is unparked,
// or about to be, and looks at the word with the guard held. It acquires; or it leaves, and calls
// advance; or it loses, and advance clears awake and looks at the word once more before the
// waiter sleeps. So a release that saw awake comes before that last look.
//
// A waiter that is not the first need not be looked at. It becomes the first when the former
// first one is admitted, leaves, or is refused. Each of these calls advance, which looks at the
// word after that.
//
// Acquisitions look at no waiter, because the rules promise that no acquisition helps one.
//
// Each unpark belongs to one step out of the state waiting, which is made with the guard held,
// and each park takes one. A waiter whose limit ends after such a step takes the unpark before
// its node is used again.
//
// # Checks in tests
//
// In programs built with the race detector, Sync calls the rules twice each time, and panics if
// the results differ. It finds rules that count calls, read a clock, or look at other state.
// Rules that write to shared memory are a data race, which the detector itself reports. Without
// the detector there is no check and no cost.
//
// # Synctest
//
// A Sync may be used in and across bubbles of testing/synctest. Waiters are durably blocked. As
// with everything that blocks in a bubble, a goroutine outside must not release to a waiter in
// the bubble.
//
// # Model
//
// The file rules.pml in internal/syncq/model has this protocol in Promela. Its run.sh searches
// all schedules of small cases, and shows that each of a list of one-line mistakes breaks a
// property.
package synchronizer
