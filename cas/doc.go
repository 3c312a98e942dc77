// Package cas has variables that are changed by compare-and-swap: the stamped and markable
// references of java.util.concurrent.atomic, a stamped number that never allocates, an
// optimistic lock, and a stack.
//
// # ABA
//
// A compare-and-swap checks whether a variable has the value that was read from it. It does not
// check whether the variable had this value all the time. If the variable changed from A to B
// and back to A, the swap succeeds, although conclusions from the first A may be wrong. A number
// that grows with every change, the stamp or version, tells the two apart.
//
// If A is a pointer that the loop itself holds, and every change allocates, Go has no ABA. The
// collector does not reuse memory while a pointer to it exists, so an equal pointer is the same
// object. [Stack] relies on this. ABA returns as soon as the program reuses memory itself: nodes
// in a [sync.Pool], or slots of an array that are named by index. The example of this package
// shows a list of free slots that breaks this way, and its repair with [Packed].
//
// # Which one
//
//   - [Packed]: 32 bits and a stamp of 32 bits. One compare-and-swap, no allocation. The stamp
//     wraps.
//   - [Stamped]: a pointer and a stamp of 64 bits. One allocation a change.
//   - [Marked]: a pointer and a bit, such as "this node is being removed".
//   - [Versioned]: any value, read and replaced as a whole, with a ready retry loop.
//   - [Stack]: last in, first out.
//
// To change several variables at once, make them the fields of a struct, and use a Versioned of
// that struct.
//
// # Memory order
//
// All operations are sequentially consistent, like the operations of [sync/atomic]. An operation
// that changes a variable synchronizes before each operation that observes the change. A failed
// operation has observed the value that made it fail.
//
// All methods are lock-free: a call tries again only if another call has succeeded.
package cas
