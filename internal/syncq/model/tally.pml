/* Holds that are in the tally while nobody waits: tallied.go. The policy is FIFO. Each step that
   begins or ends a hold counts it in excl or shrd, and each pending step counts in p. */
#define FIFO
#define TALLY
#define COUNT(n) \
	if :: isShared[n] -> shrd++ :: else -> excl++ fi; \
	CHECK(mutual_exclusion, excl + (shrd > 0) <= 1)

#include "sync.pml"

#define inWord       (-100)
#define writing      (-200)
#define isWriting(v) ((v) < -150)
#define isInWord(v)  ((v) < -50 && !isWriting(v))

short Tally;
short p;                        /* ghost: pending reads less pending releases */
hidden byte tally_is_exact;

/* Tallied.moveToWord: the guard is held */
inline moveToWord() {
	if
	:: isInWord(Tally)
	:: else ->
#ifdef MUTANT_MOVE_STORES
		w = Tally;
		d_step { if :: w > 0 -> Tally = inWord :: isWriting(w) -> Tally = inWord + w - writing :: else -> Tally = inWord + w fi }
#else
		d_step { w = Tally; Tally = Tally + inWord }
		d_step { if :: w > 0 -> Tally = Tally - w :: isWriting(w) -> Tally = Tally - writing :: else fi }
#endif
		d_step { if :: w > 0 -> Word = w*one | flagShared :: isWriting(w) -> Word = one :: else fi; w = 0 }
	fi
}

/* Tallied.moveToTally: the guard is held. Nobody else looks at the word. */
inline moveToTally() {
	d_step {
		if
#ifdef MUTANT_MOVE_LEAVES_QUEUE
		:: Tally == inWord ->
#elif defined(MUTANT_MOVE_DESPITE_PENDING)
		:: ql == 0 ->
#else
		:: ql == 0 && Tally == inWord ->
#endif
			w = 0;
			if
			:: exclusive(Word) -> w = writing
			:: !exclusive(Word) && (Word & flagShared) -> w = Word/one
			:: else
			fi;
			Tally = Tally - inWord + w; Word = 0; w = 0
		:: else
		fi
	}
}

/* Tallied.change takes back the pending step of me, which is by. by is the only thing that change
   of a release without a hold does. */
inline takeBack(by) { d_step { Tally = Tally - (by); p = p - (by) } }

inline begin(by) {
	atomic { guard == 0 -> guard = 1 }
#ifdef MUTANT_TAKEN_BACK_FIRST
	takeBack(by);
	moveToWord()
#else
	moveToWord();
	takeBack(by)
#endif
}

inline end_() {
	moveToTally();
	guard = 0;
	unpark()
}

/* BargeShared and TryLockShared */
inline TryLockShared_() {
	d_step { ok = (Tally >= 0); if :: ok -> Tally++; COUNT(me) :: else fi }
	if
	:: ok || isWriting(Tally)
	:: else ->
		begin(0);
		d_step { ok = !exclusive(Word); if :: ok -> Word = (Word | flagShared) + one; COUNT(me) :: else fi }
		end_()
	fi
}

/* AddShared; if that fails, the step is pending */
inline AddShared() {
	d_step { Tally++; ok = (Tally > 0); if :: ok -> COUNT(me) :: else -> p++ fi }
#ifdef MUTANT_TAKEN_BACK_UNGUARDED
	if :: ok :: else -> takeBack(1) fi
#endif
}

#ifdef MUTANT_TAKEN_BACK_UNGUARDED
#define READ 0
#else
#define READ 1
#endif

/* AcquireShared without time to wait */
inline addInTurn() {
	begin(READ);
	d_step { ok = admitsReader(Word); if :: ok -> Word = (Word | flagShared) + one; COUNT(me) :: else fi }
	end_()
}

/* TryLockFree; TryLock */
inline TryLockFree() {
	d_step { ok = (Tally == 0); if :: ok -> Tally = writing; COUNT(me) :: else fi }
}

inline TryLock_() {
	if
	:: Tally > 0 || isWriting(Tally)
	:: else ->
		begin(0);
		d_step {
			ok = (Word == 0);
			CHECK(tally_is_exact, ok || ql > 0 || excl + shrd > 0);
			if :: ok -> Word = one; COUNT(me) :: else fi
		}
		end_()
	fi
}

/* Tallied.enqueue, and the wait. Nobody changes the word without the guard. */
inline acquire() {
#ifdef MUTANT_JOIN_KEEPS_TALLY
	atomic { guard == 0 -> guard = 1 }
	if :: isShared[me] -> takeBack(READ) :: else fi;
#else
	begin((isShared[me] -> READ : 0));
#endif
	d_step {
		admissible(); inQueue = !ok;
		if :: ok -> enter_(); state[me] = granted :: else -> w = 0; advance(JOIN) fi
	}
	if
	:: inQueue -> guard = 0; unpark(); await()
	:: else -> ok = 1; end_()
	fi;
	inQueue = 0
}

/* DropShared and UnlockShared; UnlockAlone and Unlock */
inline release() {
	if
	:: s ->
		d_step { Tally--; ok = (Tally >= 0); if :: ok -> shrd-- :: else -> p-- fi }
#ifdef MUTANT_RELEASE_KEEPS_WORD
		if :: ok :: else -> d_step { shrd--; p++; ok = 1 } fi
#endif
	:: else ->
#ifdef MUTANT_UNLOCK_STORES
		d_step { ok = (isWriting(Tally)); if :: ok -> Tally = 0; excl-- :: else fi }
#else
		d_step { ok = (Tally == writing); if :: ok -> Tally = 0; excl-- :: else fi }
#endif
	fi;
	if
	:: ok
	:: else ->
		begin(0 - s);
		d_step {
			CHECK(unlock_succeeds, (s -> (Word & flagShared) : exclusive(Word)));
			if :: s -> shrd-- :: else -> excl-- fi;
			advance(DROP)
		}
		end_()
	fi
}

proctype goroutine(byte me) {
	byte s, wk;
	short w;
	bit ok, late, limited, inQueue, taken;
#ifdef ONCE
	bit done;
#endif
	do
#ifdef ONCE
	:: !done -> done = 1;
#else
	:: true ->
#endif
		if :: isShared[me] = 0 :: isShared[me] = 1 fi;
		if
		:: isShared[me] -> TryLockShared_(); if :: ok :: else -> goto next fi
		:: isShared[me] -> AddShared();
			if
			:: ok
			:: !ok -> addInTurn(); if :: ok :: else -> goto next fi
			:: !ok -> goto slow
			fi
		:: !isShared[me] -> TryLockFree();
			if
			:: ok
			:: !ok -> TryLock_(); if :: ok :: else -> goto next fi
			:: !ok ->
slow:
#ifdef LIMIT
				if :: limited = 0 :: limited = 1 fi;
#endif
				acquire();
				limited = 0;
				d_step { s = isShared[me] };
				recycle();
				if :: ok -> isShared[me] = s; s = 0 :: else -> s = 0; goto next fi
			fi
		fi;
		d_step { s = isShared[me]; isShared[me] = 0 }
		release();
next:		atomic { ok = 0; s = 0; isShared[me] = 0 }
#ifdef STRANGER
	/* a release without a hold that is pending, and is refused */
	:: d_step { Tally <= 0 -> Tally--; p-- }
		begin(0 - 1);
		end_()
#endif
	:: true -> break
	od;
	ended++
}

active proctype monitor() {
	timeout ->
	CHECK(no_lost_wakeup, ended == N);
	CHECK(lock_is_free_at_last, Tally == 0 && Word == 0 && ql == 0 && guard == 0)
}

/* The table of tallied.go, in every state in which the guard is free. */
#define NOTHING_IN_WORD (Word == 0 && ql == 0)
#define EXACT ( \
	(Tally >= 0 && shrd == Tally && excl == 0 && p == 0 && NOTHING_IN_WORD) || \
	(Tally < 0 && Tally > -50 && excl + shrd == 0 && p == Tally && NOTHING_IN_WORD) || \
	(isWriting(Tally) && excl == 1 && shrd == 0 && p == Tally - writing && NOTHING_IN_WORD) || \
	(isInWord(Tally) && p == Tally - inWord && excl == exclusive(Word) && \
		shrd == ((Word & flagShared) -> Word/one : 0)))

active proctype exact() {
end:	do
	:: atomic { guard == 0 && !(EXACT) -> tally_is_exact = 0; assert(tally_is_exact) }
	od
}

init {
	atomic {
		byte g = 0;
		do :: g < N -> run goroutine(g); g++ :: else -> break od
	}
}
