// Package cas has variables that are changed by compare-and-swap: java.util.concurrent.atomic's
// stamped and markable references, a stamped number that never allocates, an optimistic lock, and
// a stack.
//
// # ABA
//
// A compare-and-swap asks whether a variable has the value that was read from it, not whether it
// still has. If it went from A to B and back to A in between, the swap succeeds, and whatever was
// concluded from the first A may be wrong by then. A number that goes up with every change, the
// stamp or version, tells 1A from 3A.
//
// Where A is a pointer that the loop itself holds, and every change allocates, Go has no ABA: the
// collector does not hand out memory again that somebody still points to, so a pointer that was
// seen before is the same object. That is all that [Stack] relies on. ABA is back as soon as the
// program recycles memory itself: nodes in a [sync.Pool], slots in an array that are named by
// index. The example of this package breaks a list of free slots that way, and repairs it with
// [Packed].
//
// # Which one
//
//   - [Packed]: 32 bits and a stamp of 32 bits. One compare-and-swap, no allocation. The stamp
//     wraps.
//   - [Stamped]: a pointer and a stamp of 64 bits. One allocation a change.
//   - [Marked]: a pointer and a bit, such as "this node is being removed".
//   - [Versioned]: any value at all, read and replaced as a whole, with a retry loop made ready.
//   - [Stack]: last in, first out.
//
// Several variables become one by making them the fields of a struct: a Versioned of that struct
// changes all of them at once, or none.
//
// # Memory order
//
// All operations are those of [sync/atomic]: sequentially consistent, and an operation that
// changes a variable synchronizes before each one that observes the change. An operation that
// fails has observed the value that it failed for.
//
// All methods are lock-free: when one has to try again, another one has got somewhere.
package cas
