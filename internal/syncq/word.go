package syncq

// The state word. Its upper 58 bits are the value: the exclusive holder, the
// number of shared holds, or 0 if the lock is free. Its lower bits are flags.
//
//	value   shared handoff woken queued
//	0       0      0       0     0       free, nobody waits
//	owner   0      0       0     0       held
//	n       1      0       0     0       n shared holds
//	0       0      0       1     1       free; a waiter was told that it may have it   (NonFair)
//	owner|n s      0       0     1       held, others wait
//	owner|n s      0       1     1       held, others wait, the first of them is awake (NonFair)
//	owner|n s      1       x     1       held, and owed to the first waiter            (NonFair)
//
// With shared, there may be visible, and with that and without queued, biased.
//
// All others are illegal. In particular, under FIFO a lock for which somebody
// waits is never free: whoever gives it up makes the first waiter its
// holder in the same step. And under NonFair it is free only if woken is set.
const (
	// queued: somebody waits. Set by the enqueuer of an empty queue, on a held
	// word; cleared by whoever takes out the last waiter; both with the guard held. It
	// makes the uncontended release fail, which then looks at the queue. Illegal to
	// forget, or a waiter sleeps for ever.
	queued uint64 = 1 << iota

	// woken: a release has told the first waiter to come, so that the releases
	// until it did need not tell it again. Set by a release as it frees the word,
	// which then owes the wake-up; cleared by the waiter that takes the lock, that parks
	// again because the lock is held, or that leaves the queue as its last. Clearing it on
	// a free word would be illegal: nobody would come back to the queue.
	woken

	// handoff: the first waiter lost the race maxLost times, or is due; the next release
	// makes it the holder. Set and cleared with the guard held.
	handoff

	// shared: the value counts shared holds.
	shared

	// visible: one of the shared holds belongs to the table of visible readers, on behalf of all who
	// read through it. See readers.go.
	visible

	// biased: a reader that is in the table reads. Illegal without visible, and with queued:
	// whoever waits has to see new readers come to the queue.
	biased

	shift = iota

	one   = uint64(1) << shift
	flags = one - 1
)

// value returns the word of an exclusive holder without flags.
func value(owner int64) uint64 { return uint64(owner) << shift }

// free reports whether nobody holds.
func free(w uint64) bool { return w <= flags }
