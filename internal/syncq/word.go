package syncq

import "sync/atomic"

// Word is the state word of a lock. Its methods are the changes of the word that need no look at
// the queue, and the questions that the word alone answers. A lock calls Load and CompareAndSwap in
// its fast paths only, which must be inlined. These paths swap a free word and the holder's word,
// with the same flags.
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
// or drop a shared hold, and open the read table while nobody waits. They also free a lock without
// waiters or without a reservation. Everything else happens with the guard held, in advance,
// tryEnqueue, compete or reserveOverdue. A [Tallied] has no fast paths that change the word.
type Word struct{ atomic.Uint64 }

// The flags of the state word, and some words.
const (
	// flagQueued mirrors "the queue is not empty". It makes a release look at the queue. Changed
	// with the guard held only. If a waiter joins without setting it, no release wakes that waiter.
	flagQueued uint64 = 1 << iota

	// flagWoken mirrors "the first waiter is awake, without a reservation" (NonFair). Or the
	// release that set flagWoken is about to wake the first waiter. Further releases need not wake
	// that waiter. A release that frees the word sets flagWoken without the guard. The flag is
	// cleared with the guard held only, never on a free word.
	flagWoken

	// flagReserved mirrors "the next release hands the lock over" (NonFair). The first waiter lost
	// too many races, waited for too long, waits for readers, or is shared. If all waiters are
	// readers, that release may free the lock and send them instead. A holder that overtook an
	// awake waiter sets flagReserved as well, in place of flagWoken: see reserveOverdue. The flag
	// is changed with the guard held only, and never set on a free word.
	flagReserved

	// flagShared: the value counts shared holds.
	flagShared

	// flagVisible: one of the shared holds belongs to the read table, on behalf of all readers
	// without a hold of their own. See table.go.
	flagVisible

	// flagBiased: a reader that is in the table reads. The flag is illegal without flagVisible, and
	// with flagQueued: while others wait, new readers must join the queue.
	flagBiased

	flagBits = iota

	oneHold  = uint64(1) << flagBits
	allFlags = oneHold - 1

	// queueFlags are the flags that mirror the queue.
	queueFlags = flagQueued | flagWoken | flagReserved

	// Awake is the word of a free lock whose first waiter is awake (NonFair). A newcomer may take
	// the lock. The newcomer tells nobody when it frees the lock, if flagWoken is still set then:
	// see [Sync.Unlock].
	Awake = flagQueued | flagWoken

	// OneShared is the word of a lock with one shared hold, without other flags.
	OneShared = oneHold | flagShared
)

// Value returns the word of an exclusive holder without flags. It is exported, like [Names], for
// the fast paths of locks, which must be inlined.
func Value(owner int64) uint64 { return uint64(owner) << flagBits }

// Names reports whether w has owner as its exclusive holder.
func Names(w uint64, owner int64) bool { return w&^(allFlags&^flagShared) == Value(owner) }

// free reports whether nobody holds the lock whose word is w.
func free(w uint64) bool { return w <= allFlags }

// TryFree gives back the only hold, whose word without flags is value, if the release need not wake
// a waiter. w was the word. TryFree reports whether it gave the hold back.
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

// admitsReader reports whether a reader may have the lock at once. Nobody holds the lock
// exclusively then, and nobody waits, or the first waiter is an awake writer without a reservation.
// Such a writer is about to run. When it runs, it finds the readers, and the lock is reserved for
// it from then on. Without this rule two goroutines that mix reads and writes would put each other
// to sleep at every operation.
func admitsReader(w uint64) bool {
	return !exclusive(w) && (w&flagQueued == 0 || w&(flagWoken|flagReserved) == flagWoken)
}

// step is a step of advance: it returns the word after w. A step that ends a hold returns false if
// w shows no such hold. A step leaves the flags about the queue to advance.
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

// dropShared ends one shared hold.
func dropShared(w uint64) (uint64, bool) {
	to, ok := drop(w)
	return to, ok && w&flagShared != 0
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

// TryLockSharedInTurn takes a shared hold unless the lock is held exclusively, or a newcomer must
// not overtake a waiter.
func (word *Word) TryLockSharedInTurn() bool {
	return word.change(func(w uint64) (uint64, bool) { return (w | flagShared) + oneHold, admitsReader(w) })
}

// TryUnlockShared gives one shared hold back if the release need not wake a waiter, and reports
// whether it did.
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

// Held reports whether the lock is held, exclusively or shared.
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

// HasQueued reports whether a goroutine waits for the lock.
func (word *Word) HasQueued() bool { return word.Load()&flagQueued != 0 }

// Biased reports whether a reader that is in the read table reads.
func (word *Word) Biased() bool { return word.Load()&flagBiased != 0 }
