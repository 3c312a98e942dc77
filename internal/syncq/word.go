package syncq

// The state word. Its upper 58 bits are the value: the exclusive holder, the number of shared
// holds, or 0 if the lock is free. Its lower bits are flags. These are all legal words:
//
//	value   shared  visible biased  handoff woken queued
//	0       0       0       0       0       0     0       free, no waiters
//	owner   0       0       0       0       0     0       held
//	n       1       0       0       0       0     0       n shared holds
//	n       1       1       0       0       0     0       one is the table's, which drains
//	n       1       1       1       0       0     0       one is the table's, open to readers
//	owner   0       0       0       0       0     1       held, others wait
//	n       1       x       0       0       0     1       shared, others wait
//	0       0       0       0       0       1     1       free, first waiter awake (NonFair)
//	owner|n s       x       0       0       1     1       held, first waiter awake (NonFair)
//	owner|n s       x       0       1       0     1       held, owed to the first (NonFair)
//
// Under FIFO a lock that has waiters is never free: the release makes the first waiter its holder
// in the same step. Under NonFair it is free only with woken set.
//
// Two kinds of code change the word. Fast paths do so without the guard. They take a free lock, add
// or drop a shared hold, and open the read table while nobody waits. They also free a lock that
// nobody waits for, or that is not owed. Everything else happens with the guard held, in advance,
// tryEnqueue or compete.
const (
	// queued mirrors "the queue is not empty". It makes a release look at the queue. Changed with
	// the guard held only. Illegal to forget: a waiter would sleep for ever.
	queued uint64 = 1 << iota

	// woken mirrors "the first waiter is awake, and not owed the lock" (NonFair). Or the release
	// that set it is about to wake the first waiter. Further releases need not wake it. It is set
	// without the guard by a release that frees the word. It is cleared with the guard held only,
	// never on a free word.
	woken

	// handoff mirrors "the next release hands the lock over" (NonFair): the first waiter lost too
	// many races, waited for too long, waits for readers, or is shared. Changed with the guard held
	// only.
	handoff

	// shared: the value counts shared holds.
	shared

	// visible: one of the shared holds belongs to the read table, on behalf of all who read
	// through it. See table.go.
	visible

	// biased: a reader that is in the table reads. Illegal without visible, and with queued:
	// while others wait, new readers have to come to the queue.
	biased

	shift = iota

	one   = uint64(1) << shift
	flags = one - 1

	// about are the flags that mirror the queue.
	about = queued | woken | handoff

	// Awake is the word of a free lock whose first waiter is awake (NonFair). A newcomer may take
	// the lock. It tells nobody when it frees it, if woken is still set then: see [Sync.Unlock].
	Awake = queued | woken

	// OneShared is the word of a lock with one shared hold, without other flags.
	OneShared = one | shared
)

// Value returns the word of an exclusive holder without flags. It is exported, like [Names], for
// the fast paths of locks, which must be inlined.
func Value(owner int64) uint64 { return uint64(owner) << shift }

// Names reports whether w has owner as its exclusive holder.
func Names(w uint64, owner int64) bool { return w&^(flags&^shared) == Value(owner) }

// free reports whether w has no holder.
func free(w uint64) bool { return w <= flags }

// TryFree gives back the only hold, whose word without flags is value, if no waiter has to be told.
// w was the word. It reports whether it did.
func (s *Sync) TryFree(w, value uint64) bool {
	switch w {
	case value:
		return s.Word.CompareAndSwap(value, 0)
	case value | Awake:
		return s.Word.CompareAndSwap(value|Awake, Awake)
	}
	return false
}

// exclusive reports whether w has an exclusive holder.
func exclusive(w uint64) bool { return w&shared == 0 && !free(w) }

// passable reports whether a reader may have the lock at once. Nobody holds it exclusively then,
// and nobody waits, or the first waiter is a writer that is awake and not owed the lock. That
// writer has still to run. When it does, it finds the readers, and is owed the lock from then on.
// Without this rule two goroutines that mix reads and writes would put each other to sleep at every
// operation.
func passable(w uint64) bool { return !exclusive(w) && (w&queued == 0 || w&(woken|handoff) == woken) }

// The steps of advance. Each returns the word after it. One that ends a hold returns false if w has
// no such hold. The flags about the queue are left to advance.

// keep changes nothing.
func keep(w uint64) (uint64, bool) { return w, true }

// drop ends the exclusive hold or one shared hold.
func drop(w uint64) (uint64, bool) {
	switch {
	case free(w):
		return w, false
	case w&shared != 0 && w >= 2*one:
		return w - one, true
	}
	return 0, true
}

// dropTable ends the shared hold of the read table.
func dropTable(w uint64) (uint64, bool) {
	if w&(visible|biased) != visible {
		return w, false
	}
	return drop(w &^ visible)
}

// revoke ends the bias to readers. If nobody reads, advance then gives the table's hold back.
func revoke(w uint64) (uint64, bool) { return w &^ biased, true }
