// Package waits finds deadlocks among the waits for locks of this module, refuses waits that would
// close a cycle, and records where locks were acquired. It is the [syncq.Watcher] of programs that
// import package deadlock. Other programs pay one atomic load a contended wait for it.
//
// # The graph
//
// Its vertices are waits in the queues of locks, not parties: an explicit owner may wait in
// several goroutines at once. A wait in a condition's queue is not a vertex. It becomes one when
// a signal or its limit moves it to the lock's queue. The edges out of a wait are the events that
// must happen before it can end well:
//
//   - Of an exclusive wait: to the waits of the lock's holders, in any mode.
//   - Of a shared wait for a lock that is held exclusively: to the wait of the holder.
//   - Of any other shared wait: to the nearest exclusive wait ahead of it in the queue, which
//     no shared wait is let past, under either policy.
//
// A wait ends well only when all its edges are gone, so every cycle is a deadlock. A limit that
// ends one of its waits opens the cycle. An explicit owner that holds a lock, and acts in another
// goroutine meanwhile, opens it too.
//
// Other edges along a queue are left out. They add no deadlock, only longer descriptions of the
// same deadlock. Take a wait behind other waits that the holders keep out as well. All these waits
// have edges to the holders, and no other way out of the queue.
//
// # Three looks
//
// The locks are looked at one after the other, so an edge can be gone when the next edge is seen.
// Therefore there are three looks: the first finds waits, the second finds their edges, and the
// third finds the same waits again, by their [syncq.WaitID]. Each look begins after the previous
// look has ended. Say that the first look ends at t1 and the third begins at t2.
//
//   - A wait seen at the first look and at the third was in its queue from t1 to t2. Meanwhile
//     its goroutine released nothing, and acquired nothing: a waiter that acquires the lock takes
//     the word and leaves the queue with the guard held, so no look sees one of these changes
//     without the other.
//   - So, if the goroutine was seen to hold a lock at the second look, it held that lock from t1 to
//     t2.
//   - A wait that was ahead of another wait at the second look was ahead of it from t1 to t2,
//     because waits join at the end only.
//   - The nearest exclusive wait ahead may give up between two looks. The next exclusive wait ahead
//     keeps the same waits out, and waits for the same holders. So "nearest" means the nearest of
//     the waits that all three looks saw.
//
// Take a cycle of which all waits are seen at the first look and at the third, and all edges at the
// second. That cycle stood from t1 to t2. And the looks see each cycle that stands when they begin,
// and lasts. The second point is not true for an explicit owner, since the owner may act in another
// goroutine: it surely had its holds at the second look only.
//
// # Refusal
//
// While waits are refused, they begin one at a time: a wait joins the queue and searches for
// cycles through itself with one mutex held ([watcher.Begin]). Of the waits that make up a cycle,
// the last wait to begin finds the others in their queues, and all edges in place, as no other
// goroutine of the cycle runs. Only the nearest exclusive wait ahead of a shared wait may leave,
// if it has a limit, even during the search. Then the search looks for the nearest again. The
// next exclusive wait was ahead before, and waits for the same holders. Therefore no new cycle
// arises when an exclusive wait leaves after the search.
//
// The last wait to begin leaves, and so the cycle does not come about. No wait before it was
// refused for this cycle, which did not exist then. Thus exactly one wait is refused for a cycle,
// and, by the three looks, no wait without a cycle.
//
// Three kinds of wait cannot be refused. A condition's waiter that comes back to the lock must
// not return without it. A lock that an explicit owner holds may be released by another of its
// goroutines. And some locks do not know of refusal. The search of a wait that can be refused
// sees these waits too. A cycle through the hold of an explicit owner is never a reason to
// refuse: a goroutine that shares the owner may be about to release.
package waits
