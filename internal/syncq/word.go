package syncq

import "sync/atomic"

// Word is the state word of a lock. Its methods are the changes of it that need no look at the
// queue, and what the word alone shows. A lock calls Load and CompareAndSwap in its fast paths
// only, which must be inlined. They swap a free word and the holder's, with the same flags.
//
// The upper 58 bits are the value: the exclusive holder, the number of shared holds, or 0 if the
// lock is free. The lower bits are flags. These are all legal words:
//
//	value   shared  visible biased  reserved woken queued
//	0       0       0       0       0       0     0       free, no waiters
//	owner   0       0       0       0       0     0       held
//	n       1       0       0       0       0     0       n shared holds
//	n       1       1       0       0       0     0       one is the table's, which drains
//	n       1       1       1       0       0     0       one is the table's, open to readers
//	owner   0       0       0       0       0     1       held, others wait
//	n       1       x       0       0       0     1       shared, others wait
//	0       0       0       0       0       1     1       free, first waiter awake (NonFair)
//	owner|n s       x       0       0       1     1       held, first waiter awake (NonFair)
//	owner|n s       x       0       1       0     1       held, reserved for the first (NonFair)
//
// Under FIFO a lock that has waiters is never free: the release makes the first waiter its holder
// in the same step. Under NonFair it is free only with flagWoken set.
//
// Two kinds of code change the word. Fast paths do so without the guard. They take a free lock, add
// or drop a shared hold, and open the read table while nobody waits. They also free a lock that
// nobody waits for, or that is not reserved. Everything else happens with the guard held, in
// advance, tryEnqueue, compete or reserveOverdue.
type Word struct{ atomic.Uint64 }

// The flags of the state word, and some words.
const (
	// flagQueued mirrors "the queue is not empty". It makes a release look at the queue. Changed
	// with the guard held only. If a waiter joins without setting it, no release wakes that waiter.
	flagQueued uint64 = 1 << iota

	// flagWoken mirrors "the first waiter is awake, and has no reservation" (NonFair). Or the
	// release that set it is about to wake the first waiter. Further releases need not wake it. It
	// is set without the guard by a release that frees the word. It is cleared with the guard held
	// only, never on a free word.
	flagWoken

	// flagReserved mirrors "the next release hands the lock over" (NonFair): the first waiter lost
	// too many races, waited for too long, waits for readers, or is shared. If all waiters are
	// readers, that release may free the lock and send them instead. A holder that overtook
	// an awake waiter sets it as well, in place of flagWoken: see reserveOverdue. Changed with the
	// guard held only, and never set on a free word.
	flagReserved

	// flagShared: the value counts shared holds.
	flagShared

	// flagVisible: one of the shared holds belongs to the read table, on behalf of all readers that
	// have none of their own. See table.go.
	flagVisible

	// flagBiased: a reader that is in the table reads. Illegal without flagVisible, and with
	// flagQueued: while others wait, new readers have to come to the queue.
	flagBiased

	flagBits = iota

	oneHold  = uint64(1) << flagBits
	allFlags = oneHold - 1

	// queueFlags are the flags that mirror the queue.
	queueFlags = flagQueued | flagWoken | flagReserved

	// Awake is the word of a free lock whose first waiter is awake (NonFair). A newcomer may take
	// the lock. It tells nobody when it frees it, if flagWoken is still set then: see
	// [Sync.Unlock].
	Awake = flagQueued | flagWoken

	// OneShared is the word of a lock with one shared hold, without other flags.
	OneShared = oneHold | flagShared
)

// Value returns the word of an exclusive holder without flags. It is exported, like [Names], for
// the fast paths of locks, which must be inlined.
func Value(owner int64) uint64 { return uint64(owner) << flagBits }

// Names reports whether w has owner as its exclusive holder.
func Names(w uint64, owner int64) bool { return w&^(allFlags&^flagShared) == Value(owner) }

// free reports whether w has no holder.
func free(w uint64) bool { return w <= allFlags }

// TryFree gives back the only hold, whose word without flags is value, if no waiter has to be told.
// w was the word. It reports whether it did.
func (word *Word) TryFree(w, value uint64) bool {
	switch w {
	case value:
		return word.CompareAndSwap(value, 0)
	case value | Awake:
		return word.CompareAndSwap(value|Awake, Awake)
	}
	return false
}

// exclusive reports whether w has an exclusive holder.
func exclusive(w uint64) bool { return w&flagShared == 0 && !free(w) }

// admitsReader reports whether a reader may have the lock at once. Nobody holds it exclusively
// then, and nobody waits, or the first waiter is a writer that is awake and has no reservation.
// That writer has still to run. When it does, it finds the readers, and has the lock reserved from
// then on. Without this rule two goroutines that mix reads and writes would put each other to sleep
// at every operation.
func admitsReader(w uint64) bool {
	return !exclusive(w) && (w&flagQueued == 0 || w&(flagWoken|flagReserved) == flagWoken)
}

// step is a step of advance. It returns the word after it. One that ends a hold returns false if w
// has no such hold. The flags about the queue are left to advance.
type step func(w uint64) (to uint64, ok bool)

// keep changes nothing.
func keep(w uint64) (uint64, bool) { return w, true }

// drop ends the exclusive hold or one shared hold.
func drop(w uint64) (uint64, bool) {
	switch {
	case free(w):
		return w, false
	case w&flagShared != 0 && w >= 2*oneHold:
		return w - oneHold, true
	}
	return 0, true
}

// dropTable ends the shared hold of the read table.
func dropTable(w uint64) (uint64, bool) {
	if w&(flagVisible|flagBiased) != flagVisible {
		return w, false
	}
	return drop(w &^ flagVisible)
}

// revoke ends the bias to readers. If nobody reads, advance then gives the table's hold back.
func revoke(w uint64) (uint64, bool) { return w &^ flagBiased, true }

// change changes the word by next. It reports false, with nothing done, if next refused the word.
func (word *Word) change(next step) bool {
	for {
		w := word.Load()
		to, ok := next(w)
		if !ok || word.CompareAndSwap(w, to) {
			return ok
		}
	}
}

// TryLockShared takes a shared hold unless the lock is held exclusively. It barges, past exclusive
// waiters too.
func (word *Word) TryLockShared() bool {
	return word.change(func(w uint64) (uint64, bool) { return (w | flagShared) + oneHold, !exclusive(w) })
}

// TryLockSharedInTurn takes a shared hold unless the lock is held exclusively, or others wait that
// a newcomer must not overtake.
func (word *Word) TryLockSharedInTurn() bool {
	return word.change(func(w uint64) (uint64, bool) { return (w | flagShared) + oneHold, admitsReader(w) })
}

// TryUnlockShared gives one shared hold back if no waiter has to be told, and reports whether
// it did.
func (word *Word) TryUnlockShared() bool {
	return word.change(func(w uint64) (uint64, bool) {
		switch {
		case w&flagShared == 0:
			return w, false
		case w >= 2*oneHold:
			return w - oneHold, true
		case w&(queueFlags|flagVisible) == Awake:
			return Awake, true
		}
		return 0, w&(flagQueued|flagVisible) == 0
	})
}

// bias gives the read table a hold, and opens it to readers, for a party that has a shared hold of
// its own. It fails if others wait, or if the table has a hold already.
func (word *Word) bias() bool {
	w := word.Load()
	return w&(flagQueued|flagVisible) == 0 && word.CompareAndSwap(w, (w|flagVisible|flagBiased)+oneHold)
}

// Held reports whether anybody holds the lock, exclusively or shared.
func (word *Word) Held() bool { return !free(word.Load()) }

// HeldBy reports whether owner holds the lock exclusively. To owner itself the answer is exact.
func (word *Word) HeldBy(owner int64) bool { return Names(word.Load(), owner) }

// Owner returns the exclusive holder, or 0.
func (word *Word) Owner() int64 {
	w := word.Load()
	if w&flagShared != 0 {
		return 0
	}
	return int64(w) >> flagBits
}

// Shared returns the number of shared holds.
func (word *Word) Shared() int {
	w := word.Load()
	if w&flagShared == 0 {
		return 0
	}
	return int(w >> flagBits)
}

// HasQueued reports whether anybody waits for the lock.
func (word *Word) HasQueued() bool { return word.Load()&flagQueued != 0 }

// Biased reports whether a reader that is in the read table reads.
func (word *Word) Biased() bool { return word.Load()&flagBiased != 0 }
