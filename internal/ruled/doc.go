// Package ruled is the engine of packages synchronizer and semaphore: a word that changes by rules,
// and a queue of waiters. Package synchronizer has the promises of the rules and of the two
// policies.
//
// # A wait, step by step
//
//  1. The goroutine looks at gate and at the word. If gate is not closed, and the rules allow the
//     acquisition, the goroutine changes the word by compare-and-swap, and has acquired.
//     Under NonFair, a goroutine that was refused tries again for a short while (spin).
//  2. Otherwise the goroutine takes the guard, and appends its node to the queue. If the node is
//     the first there, advance sets gate, and then looks at the word again: the last release may
//     have come in between. The goroutine parks. Without a limit, it gives the guard back when it
//     parks, and not before.
//  3. A release changes the word, and then looks at gate. If goroutines wait, the release takes the
//     guard and calls advance.
//  4. Under FIFO, advance acquires for the first waiter, by compare-and-swap of the word. It takes
//     the waiter out of the queue, and goes on with the next waiter. The caller of advance unparks
//     all these waiters when it has released the guard.
//  5. Under NonFair, advance unparks the first waiter, which stays in the queue, and races for the
//     word when it runs (compete). A waiter that loses parks again, still first. After too many
//     lost races, or too long a wait, the word is reserved for the waiter: gate is closed, and
//     advance acquires for it as in step 4. Goroutines that pass the word to each other may keep an
//     awake waiter from a processor, and so from losing a race. So one in so many releases past an
//     awake waiter looks whether the wait was too long (pass).
//  6. If the limit ends first, the waiter takes the guard (Leave). A waiter that is still in the
//     queue leaves the queue. Any other waiter was granted or refused before it took the guard. If
//     an unpark was sent, or is about to be sent, the waiter takes the unpark.
//
// # State
//
// The table of the legal values of gate, and the rule of each flag, are in sync.go. The table of a
// waiter's states is in queue.go, and the invariants are at advance. All bits of the word belong to
// the rules. Therefore the engine has a second word, gate, which mirrors the queue. The other locks
// of this module have flags in their only word.
//
// # Why no wake-up is lost
//
// Take a first waiter that sleeps, and a release that makes its acquisition possible. The waiter,
// or advance for it, has first set gate, and then seen a word at which the rules refused it. The
// release has first changed the word, and then looked at gate. All four steps are atomic, and
// atomics in Go are sequentially consistent. If the waiter did not see the word of the release,
// the release comes after the waiter's look, and sees gate: it calls advance. If advance is under
// way in another goroutine, the guard orders the two calls, and the last call sees the last word.
//
// A release that sees awake in gate leaves the rest to the first waiter. The first waiter is
// unparked, or about to be, and looks at the word with the guard held. Then it acquires, or leaves
// and calls advance, or loses. After a lost race, advance clears awake, and looks at the word once
// more before the waiter sleeps. So a release that saw awake comes before that last look.
//
// A release need not look at a waiter behind the first. Such a waiter becomes the first when the
// first waiter is admitted, leaves, or is refused. Each of these events calls advance, which then
// looks at the word for the new first waiter.
//
// Acquisitions do not look at waiters, because the rules promise that no acquisition helps a
// waiter.
//
// A pass that reserves the word clears awake while the first waiter is awake, and calls advance,
// which looks at the word. So a release that saw awake comes before that look, and each later one
// calls advance. A release that admits the awake waiter sends no unpark: the waiter finds in
// compete that it is granted. A waiter that runs before such a release parks, still reserved.
//
// Each step out of the state waiting is made with the guard held, and has one unpark. Each park
// takes one unpark. A waiter whose limit ends after such a step takes the unpark all the same. The
// only step without an unpark is in compete: advance may admit the waiter that called compete,
// which is awake.
//
// # Model
//
// The file rules.pml in internal/syncq/model has this protocol in Promela. Its run.sh searches
// all schedules of small cases, and shows that each of a list of one-line mistakes breaks a
// property.
package ruled
