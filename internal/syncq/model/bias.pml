/* The read table: table.go and readwrite.go, and the fast paths of package rwlock that use it. */
#define TABLE
#include "sync.pml"

/* What each goroutine does. */
#define READS      1
#define WRITES     2
#define UPGRADES   4
#define DOWNGRADES 8
#define IN_WORD    16           /* an explicit owner: its shared hold stays in the word */
#define TIMED      32           /* its waits may end by a limit */
#ifndef R0
#define R0 READS
#endif
#ifndef R1
#define R1 READS
#endif
#ifndef R2
#define R2 WRITES
#endif
#ifndef SLOTS
#define SLOTS 2
#endif

/* readTable.slots. owner is 0, or the goroutine + 1, and + COUNTED if its hold is in the word.
   collided are the readers under the table's hold. Counted ones among them concern nobody. */
byte owner[SLOTS], collided[SLOTS];
#define COUNTED 8
byte first;                     /* readTable.firstReader: 0, or the goroutine + 1 */
#define slot (me % SLOTS)
#define under(b) (owner[b] != 0 && owner[b] < COUNTED)

/* readTable.empty ("empty" is a word of Promela): each load is a step. e is its result. */
inline isEmpty() {
	d_step { e = 1; b = 0 }
	do
	:: b < SLOTS ->
#ifdef MUTANT_EMPTY_SKIPS_SLOT
		if :: under(b) && b == 0 -> e = 0; break :: else fi;
#elif defined(MUTANT_EMPTY_SEES_COUNTED)
		if :: owner[b] != 0 -> e = 0; break :: else fi;
#else
		if :: under(b) -> e = 0; break :: else fi;
#endif
#ifdef MUTANT_EMPTY_SKIPS_COLLIDED
		b++
#else
		if :: collided[b] != 0 -> e = 0; break :: else -> b++ fi
#endif
	:: else -> break
	od;
	b = 0
}

/* readTable.moreThan(1); e */
inline moreThanOne() {
	d_step { b = 0; n = 0; e = 0 }
	do
	:: b < SLOTS ->
		if :: under(b) -> n++ :: else fi;
		d_step { n = n + collided[b]; b++ }
		if :: n > 1 -> e = 1; break :: else fi
	:: else -> break
	od;
	atomic { b = 0; n = 0 }
}

/* Slot.add. counted: the hold is in the word. */
inline addToSlot() {
	d_step {
		if
		:: owner[slot] == 0 -> owner[slot] = me + 1 + (counted -> COUNTED : 0)
		:: else -> if :: counted :: else -> collided[slot]++ fi; hasCollided = 1
		fi
	}
}

/* Slot.change, Slot.Free, of the last hold */
inline freeSlot() {
	d_step {
		if
		:: hasCollided -> if :: counted :: else -> collided[slot]-- fi; hasCollided = 0
		:: else -> assert(owner[slot] % COUNTED == me + 1); owner[slot] = 0
		fi
	}
}

/* ReadWrite.ReadFirst; ok */
inline ReadFirst() {
	d_step { ok = free(Word); if :: ok -> Word = (Word | flagShared) + one :: else fi }
	if
	:: ok -> CHECK(first_reader_is_one, first == 0); first = me + 1
	:: else
	fi
}

/* readTable.change, First.Free, of the last hold of a counted reader */
inline leaveTable() {
	if
	:: first == me + 1 -> first = 0
	:: else -> freeSlot()
	fi
}

/* RUnlock and ReadWrite.ReleaseRead of a counted reader */
inline unreadCounted() {
#ifdef MUTANT_FIRST_LEAVES_LATE
	if :: first == me + 1 :: else -> freeSlot() fi;
	UnlockShared();
	if :: first == me + 1 -> first = 0 :: else fi
#else
	leaveTable(); UnlockShared()
#endif
}

/* Sync.advance with its loop; guard held. ok is its result. */
inline advanceTable(initial) {
	step = initial;
	do
	:: atomic { CHOOSE; d_step { advance(step); late = 0; assert(ok || step == DROP) } }
#ifdef MUTANT_ADVANCE_IGNORES_TABLE
		drain = 0;
#endif
		if
		:: drain -> drain = 0; isEmpty(); if :: e -> e = 0; step = DROPTABLE :: else -> break fi
		:: else -> break
		fi
	od;
	step = 0
}

inline LOCK() { atomic { guard == 0 -> guard = 1 } }

inline guarded(step) { LOCK(); advanceTable(step); guard = 0; unpark() }

/* Sync.tryEnqueue; the caller has the guard, tryEnqueue gives it back */
inline tryEnqueue() {
	do
	:: d_step { admissible(); if :: ok :: else -> w = 0 fi }
		if
		:: ok ->
			d_step { enter_(); if :: ok -> state[me] = granted; inQueue = 0 :: else fi }
			if :: ok -> break :: else fi
		:: !ok && ql == 0 -> inQueue = 1; advanceTable(JOIN); break
		:: !ok && ql > 0 -> d_step { inQueue = 1; push(me) } break
		fi
	od;
	guard = 0;
	unpark()
}

/* Sync.Unlock */
inline Unlock() {
	d_step {
		s = 0; ok = 1;
		if
		:: free(Word) -> ok = 0
		:: !free(Word) && (Word & flagShared) && Word >= 2*one -> Word = Word - one
		:: !free(Word) && !((Word & flagShared) && Word >= 2*one) && !(Word & flagQueued) -> Word = 0
		:: !free(Word) && !((Word & flagShared) && Word >= 2*one) && (Word & flagQueued) ->
#ifdef FIFO
			s = 2
#else
			if
			:: (Word & flagReserved) -> s = 2
			:: else -> if :: (Word & flagWoken) :: else -> s = 1 fi; Word = flagQueued | flagWoken
			fi
#endif
		fi
	}
	if
	:: s != 0 -> guarded((s == 1 -> KEEP : DROP)); s = 0
	:: else
	fi
}

/* ReadWrite.ReadersLeft */
inline ReadersLeft() {
	if
	:: (Word & (flagVisible | flagBiased)) == flagVisible ->
		isEmpty();
		if
		:: e ->
#ifdef MUTANT_DROP_WITHOUT_LOOK                 /* drops the table's hold by the look without the guard */
			e = 0; LOCK();
			atomic { CHOOSE; d_step { advance(DROPTABLE); late = 0; drain = 0; guard = 0 } }
			unpark()
#else
			e = 0; guarded(KEEP)
#endif
		:: else
		fi
	:: else
	fi
}

/* rwlock: the slot in RWMutex.RLock and TryRLock; ok. gone: the reader has left the table, and ReadersLeft follows. */
inline readQuickly() {
	ok = 0;
	if
	:: (Word & flagBiased) && collided[slot] == 0 ->
		d_step { if :: owner[slot] == 0 -> owner[slot] = me + 1; ok = 1 :: else fi }
		if
		:: ok && !(Word & flagBiased) ->
#ifdef MUTANT_READER_STAYS                      /* and re-enters the hold that it does not have */
			skip
#else
			freeSlot(); gone = 1; ok = 0
#endif
		:: else
		fi
	:: true
	fi
}

/* ReadWrite.readBiased; ok and gone */
inline readBiased() {
	ok = 0;
	if
	:: (Word & flagBiased) ->
		addToSlot();
#ifdef MUTANT_READER_LOOKS_ONCE
		ok = 1
#else
		ok = ((Word & flagBiased) != 0);
		if
		:: ok
		:: else ->
#ifdef MUTANT_READER_LEAVES_SILENTLY
			freeSlot()
#else
			freeSlot(); gone = 1
#endif
		fi
#endif
	:: else
	fi
}

/* ReadWrite.count, and bias, which may be due or not */
inline count() {
	addToSlot();
	if
	:: !hasCollided ->
		d_step {
			if
#ifdef MUTANT_BIAS_DESPITE_QUEUE
			:: !(Word & flagVisible) -> Word = (Word | flagVisible | flagBiased) + one
#else
			:: !(Word & (flagQueued | flagVisible)) -> Word = (Word | flagVisible | flagBiased) + one
#endif
			:: else
			fi
		}
	:: true
	fi
}

/* Sync.TryLockUnread; ok */
inline TryLockUnread() {
	ok = 0;
	if
	:: (Word & flagVisible) ->
		isEmpty();
		if
		:: e -> e = 0;
#ifdef MUTANT_REVOKE_LOOKS_FIRST                /* looks into the table, and then ends the bias */
			LOCK();
			isEmpty();
			d_step { if :: e && Word == (one | flagShared | flagVisible | flagBiased) -> Word = 0 :: else fi; e = 0; guard = 0 }
#else
			guarded(REVOKE);
#endif
			TryLock()
		:: else
		fi
	:: else
	fi
}

/* ReadWrite.UpgradeOnly; ok. For an explicit owner, whose hold is in the word, or a reader in the table. */
inline UpgradeOnly() {
	LOCK();
#ifndef MUTANT_UPGRADE_KEEPS_BIAS
	advanceTable(REVOKE);
#endif
	do
	:: d_step {
			ok = 0; w = Word;
			s = (w / one == 1 && ((w & flagVisible) != 0) == !counted)
		}
		if
		:: !s -> break
		:: else
		fi;
		if
		:: (w & flagVisible) -> moreThanOne(); if :: e -> e = 0; break :: else fi
		:: else
		fi;
		d_step { if :: Word == w -> Word = value(me) | (w & queueFlags); ok = 1 :: else fi }
		if :: ok -> break :: else fi
	od;
	atomic { w = 0; s = 0; guard = 0 }
	unpark()
}

/* Sync.UnlockShared, of a counted reader that has left the table: RUnlock, ReleaseRead */
inline UnlockShared() {
	d_step {
		s = 0;
		if
		:: Word >= 2*one -> Word = Word - one
		:: Word < 2*one && !(Word & (flagQueued | flagVisible)) -> Word = 0
		:: Word < 2*one && (Word & (queueFlags | flagVisible)) == (flagQueued | flagWoken) -> Word = flagQueued | flagWoken
		:: else -> s = 1
		fi
	}
	if :: s -> guarded(DROP); s = 0; CHECK(unlock_succeeds, ok) :: else fi
}

/* rwlock: RUnlock and ReadWrite.ReleaseRead of a reader under the table's hold */
inline RUnlock() {
#ifdef MUTANT_RUNLOCK_LOOKS_FIRST
	gone = !(Word & flagBiased);
	freeSlot();
#else
	s = hasCollided;
	freeSlot();
	gone = (s || !(Word & flagBiased));
	s = 0;
#endif
	if :: gone -> ReadersLeft(); gone = 0 :: else fi
}

inline enter() {
	d_step {
		if :: isShared[me] -> shrd++ :: else -> excl++ fi;
		CHECK(mutual_exclusion, excl + (shrd > 0) <= 1);
		CHECK(mutual_exclusion, excl == 0 || (exclusive(Word) && Word/one == me + 1));
		CHECK(mutual_exclusion, shrd == 0 || (Word & flagShared))
	}
}

proctype goroutine(byte me; byte role) {
	byte s, wk, b, n, step;
	short w;
	bit ok, late, limited, inQueue, taken, e, drain, hasCollided, counted, wasFirst, gone, quick;
	do
	:: role & (READS | IN_WORD) ->
		isShared[me] = 1;
		quick = !(role & IN_WORD);
		if
		:: quick -> ReadFirst(); if :: ok -> counted = 1; goto reads :: else fi
		:: quick
		:: !quick -> goto word
		fi;
table:		if                                              /* RLock, TryRLock */
		:: quick -> readQuickly()
		:: else -> readBiased()
		fi;
		if :: gone -> ReadersLeft(); gone = 0; ok = 0 :: else fi;
		if
		:: ok -> quick = 0; goto reads
		:: !ok && quick -> quick = 0; goto table
		:: else
		fi;
word:		counted = 1;
		if
		:: TryLockShared()                              /* TryRead */
		:: TryLockSharedInTurn();                               /* AcquireRead: AcquireShared */
			if :: ok :: !ok -> goto slow :: !ok fi
		fi;
		if :: ok -> goto entered :: else -> goto next fi;
entered:	if :: !(role & IN_WORD) -> count() :: else fi;
reads:		skip;
		enter();
		if
		:: shrd--
		:: role & UPGRADES ->
			UpgradeOnly();
			if :: ok && !(role & IN_WORD) -> leaveTable() :: else fi;         /* Upgrade */
			shrd--;
			if :: ok -> isShared[me] = 0; goto writes :: else fi
		fi;
		if
		:: role & IN_WORD -> goto unlock
		:: !(role & IN_WORD) && counted -> unreadCounted(); goto next
		:: else -> goto runlock
		fi
	:: role & WRITES ->
		if
		:: TryLock();                                   /* TryLock, spin */
			if :: ok -> goto writes :: else -> goto next fi
		:: TryLockUnread();
			if :: ok -> goto writes :: !ok -> goto next :: !ok -> goto slow fi
		fi;
slow:		limited = ((role & TIMED) != 0);
#ifndef FIFO
		sendable[me] = isShared[me] && !(role & IN_WORD);
#endif
		LOCK(); tryEnqueue();
		if :: inQueue -> await() :: else fi;
		atomic { limited = 0; inQueue = 0; s = isShared[me] }
		recycle();
		d_step { isShared[me] = s; s = 0 }
		if
		:: !ok -> goto next
		:: ok && isShared[me] -> goto entered
		:: ok && !isShared[me]
		fi;
writes:		skip;
		enter();
		excl--;
		if
		:: true ->
unlock:			isShared[me] = 0;
			Unlock(); CHECK(unlock_succeeds, ok)
		:: role & DOWNGRADES ->                         /* uncover */
			isShared[me] = 1; counted = 1;
			addToSlot();
			guarded(DOWNGRADE);
			enter(); shrd--;
			unreadCounted(); goto next;
runlock:		RUnlock()
		fi;
next:		atomic { ok = 0; isShared[me] = 0; counted = 0 }
	:: true -> break
	od;
	ended++
}

active proctype monitor() {
	timeout ->
	CHECK(no_lost_wakeup, ended == N);
	CHECK(lock_is_free_at_last, Word == 0 || Word == (one | flagShared | flagVisible | flagBiased));
	CHECK(lock_is_free_at_last, first == 0);
	i = 0;
	do :: i < SLOTS -> CHECK(lock_is_free_at_last, owner[i] == 0 && collided[i] == 0); i++ :: else -> break od
}

init {
	atomic { run goroutine(0, R0); run goroutine(1, R1);
#if N > 2
		run goroutine(2, R2);
#endif
	}
}
