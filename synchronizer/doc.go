// Package synchronizer is for locks of one's own: AbstractQueuedSynchronizer of
// java.util.concurrent.locks in the shape of Go. A program provides rules, which are two
// functions of a word. The program gets a lock with a queue, contexts, time limits, inspection,
// and both policies.
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
// Sync does not distinguish exclusive and shared acquisitions. Under rules that count readers, a
// reader can follow a reader. A release goes through the waiters in their order, and admits each
// waiter until the rules refuse one. Therefore one release can admit several waiters, which
// AbstractQueuedSynchronizer calls propagation. An acquisition that does not change the word,
// such as a wait for an open latch, writes nothing.
//
// # Order
//
// Under locks.FIFO, no acquisition overtakes a waiter, even if the rules would allow the
// acquisition. A large acquisition that waits does not let small acquisitions pass, which could
// keep it waiting for ever. Therefore part of a word can be free while goroutines wait. A
// goroutine has arrived when its call has found the queue empty or has entered the queue. Two
// calls at the same time may arrive in either order.
//
// Under locks.NonFair, a goroutine that the rules admit overtakes the waiters, but not for ever:
// see [New]. Under contention NonFair is several times as fast as FIFO: the running goroutine goes
// on, but a waiter must be woken first.
//
// # The end of a wait
//
// A wait ends by a grant, or by its context or time limit. Both take the waiter out of the queue
// with the guard held. Therefore the second of the two comes too late. AcquireContext returns nil
// if the grant came first. If the first waiter leaves, advance looks at the next waiter: the
// rules may allow the next waiter's acquisition, and a wake-up of the leaving waiter must not get
// lost.
//
// # Checks in tests
//
// In programs built with the race detector, Sync calls the rules twice each time, and panics if the
// results differ. This check finds rules that count calls, read a clock, or look at other state.
// Rules that write to shared memory are a data race, which the detector itself reports. Without the
// detector the check does not run, and costs nothing.
//
// # Synctest
//
// A Sync may be used in and across bubbles of testing/synctest. Waiters are durably blocked. As
// with everything that blocks in a bubble, a goroutine outside must not release to a waiter in
// the bubble.
//
// # Engine
//
// Package internal/ruled has the protocol of a Sync, the tables of its states, and the reason why
// no wake-up is lost. Package semaphore is on the same engine.
package synchronizer
