/* The engine: word.go, sync.go, wait.go, list.go. The other models of this
   folder that concern package syncq include this file. README.md maps it to the code. */

#ifndef N
#define N 3                     /* goroutines; each has at most one node */
#endif

/* word.go */
#define flagQueued   1
#define flagWoken    2
#define flagReserved  4
#define flagShared   8
#define flagVisible  16
#define flagBiased   32
#define one      64
#define flags    63
#define queueFlags    (flagQueued | flagWoken | flagReserved)
#if defined(ANONYMOUS) || defined(TALLY)
#define value(n) one            /* a lock without owners: any goroutine may unlock it */
#elif defined(OWNERS)
#define value(n) ((own(n)+1)*one)
#else
#define value(n) (((n)+1)*one)
#endif
#define free(w)      ((w) <= flags)
#define exclusive(w) (!((w) & flagShared) && !free(w))
#define admitsReader(w)  (!exclusive(w) && (!((w) & flagQueued) || ((w) & (flagWoken | flagReserved)) == flagWoken))

/* the steps of advance */
#define KEEP      0
#define DROP      1
#define DROPTABLE 2
#define REVOKE    3
#define DOWNGRADE 4
#define JOIN      5              /* keep, after push(me); the code does it for the first waiter only */

/* node.state and node.in */
#define waiting   0
#define awake     1
#define granted   2
#define dismissed 3
#define sent      4
#define INLOCK    1
#define INCOND    2

short Word;
bit guard;
byte q[N], ql;                  /* Sync.queue */
byte state[N], in[N];
bit isShared[N];
#ifndef FIFO
bit reserved[N], sendable[N];
#endif
bit permit[N];                  /* node.place */

/* ghosts: what the properties need to know */
byte pend[N];                   /* unparks that a goroutine is about to do */
byte excl, shrd, ended;
#ifdef ANONYMOUS
byte hold;                      /* holds that no goroutine has begun to give back */
#endif
#ifdef LOSSES
byte lost[N];                   /* node.lost; without LOSSES, a waiter may be overdue at any time */
#endif
#ifdef COND
byte cq[N], cl, cwaiters;        /* Cond.queue, and Cond.waiters */
byte signals;                   /* waiters that were signalled and have not returned */
bit due[N];                     /* node.since is due */
#endif

/* A property is a variable, so that an error report has its name. */
hidden byte mutual_exclusion, word_is_legal, word_mirrors_queue, no_overtaking, reserved_is_next,
	order_is_kept, no_lost_wakeup, one_unpark_per_park, cancelled_is_out, returns_holding, signals_arrive,
	unlock_succeeds, first_reader_is_one, first_competes, lock_is_free_at_last;
#define CHECK(property, expression) property = (expression); assert(property)

/* d_step only; set before each use */
hidden byte i, k, becomes;
hidden short base, to, m, drained;

inline push(n) { q[ql] = n; ql++; in[n] = INLOCK }

inline remove(n) {
	i = 0;
	do :: i < ql && q[i] != n -> i++ :: else -> break od;
	CHECK(cancelled_is_out, i < ql);
	do :: i + 1 < ql -> q[i] = q[i+1]; i++ :: else -> break od;
	ql--; q[ql] = 0; in[n] = 0
}

#ifdef FIFO
#define CHOOSE skip
#define OVERDUE skip
#elif defined(LOSSES)
#define CHOOSE late = 0
#else
#define CHOOSE if :: late = 0 :: late = 1 fi            /* node.overdue: time passes */
#endif
#ifndef FIFO                                            /* a look at the new first waiter after a cancellation */
#define OVERDUE if :: ql > 0 -> reserved[q[0]] = reserved[q[0]] | late :: else fi
#endif

#ifdef ANONYMOUS
#define HOLD hold++
#else
#define HOLD skip
#endif
#ifndef TALLY
#define COUNT(n) skip           /* tally.pml counts a hold in the step that begins it */
#endif

/* Sync.mirror: sets m to the flags about a queue whose first waiter is n */
inline mirror(n) {
	m = flagQueued;
#ifndef FIFO
	reserved[n] = reserved[n] | isShared[n] | late;
#ifdef COND
	reserved[n] = reserved[n] | due[n];
#endif
#ifdef LOSSES
	reserved[n] = reserved[n] | (lost[n] >= LOSSES);
#endif
	if
	:: reserved[n] -> m = flagQueued | flagReserved
	:: !reserved[n] && state[n] == awake -> m = flagQueued | flagWoken
	:: else
	fi
#endif
}

/* Sync.sends: sets k to ql if a release that frees the lock sends all waiters, or else to 0 */
inline sends() {
	k = 0;
#ifndef FIFO
	do
	:: k < ql && sendable[q[k]] -> k++
	:: else -> break
	od;
#ifndef MUTANT_SENDS_PAST_WRITER
	if :: k < ql -> k = 0 :: else fi
#endif
#endif
}

/* Sync.admit: from base to to; k waiters leave the queue, and become granted or sent */
inline admit() {
	k = 0; becomes = granted; to = base & ~queueFlags;
	if
	:: free(to) -> sends(); if :: k > 0 -> becomes = sent :: else fi
	:: else
	fi;
	if
	:: becomes == sent ->
		CHECK(order_is_kept, k == ql);
#ifdef LOSSES
		i = 0;
		do :: i < k -> CHECK(reserved_is_next, lost[q[i]] < LOSSES); i++ :: else -> i = 0; break od;
#endif
#ifdef MUTANT_SENT_STAY_QUEUED
		to = flagQueued | flagWoken
#endif
		skip
	:: else ->
	if
	:: ql == 0
	:: ql > 0 && isShared[q[0]] && (free(to) || (to & flagShared)) ->
		do :: k < ql && isShared[q[k]] -> k++ :: else -> break od;
		to = (to | flagShared) + k*one
#ifdef FIFO
	:: ql > 0 && free(to) && !isShared[q[0]] -> k = 1; to = value(q[0]); HOLD
#else
	:: ql > 0 && free(to) && !isShared[q[0]] && reserved[q[0]] -> k = 1; to = value(q[0]); HOLD
	:: ql > 0 && free(to) && !isShared[q[0]] && !reserved[q[0]] -> to = flagQueued | flagWoken
#endif
	:: else
	fi
	fi;
	if
	:: ql > k && !free(to) ->
#ifndef FIFO
		reserved[q[k]] = reserved[q[k]] | ((to & flagShared) != 0);
#endif
		mirror(q[k]);
#ifdef MUTANT_ADMIT_KEEPS_BIAS
		to = to | m
#else
		to = (to & ~flagBiased) | m
#endif
	:: else
	fi
}

/* One round of Sync.advance: load, step, admit, compare-and-swap, grant, wake. Sets ok. */
inline advance(step) {
	ok = 1;
	if
	:: step == KEEP -> base = Word
	:: step == JOIN -> push(me); base = Word
	:: step == DROP ->
		if
		:: free(Word) -> ok = 0
		:: (Word & flagShared) && Word >= 2*one -> base = Word - one
		:: else -> base = 0
		fi
	:: step == DROPTABLE ->
		if
		:: (Word & (flagVisible | flagBiased)) != flagVisible -> ok = 0
		:: (Word & (flagVisible | flagBiased)) == flagVisible && Word >= 2*one -> base = (Word & ~flagVisible) - one
		:: else -> base = 0
		fi
	:: step == REVOKE -> base = Word & ~flagBiased
	:: step == DOWNGRADE -> base = one | flagShared
	fi;
	if
	:: ok ->
		admit();
		Word = to;
#ifdef TABLE
		drained = to;
#endif
		do
		:: k > 0 ->
			i = q[0];
			if :: state[i] == waiting -> wk = wk | (1 << i); pend[i]++ :: else fi;
#ifdef MUTANT_GRANT_OUTSIDE_GUARD
			late = 1; who = i;                      /* state is set after the guard is given back */
#else
			state[i] = becomes;
			COUNT(i);
#endif
			k--; to = i; remove(to)
		:: else -> break
		od;
		if
		:: ql > 0 && free(Word) && state[q[0]] == waiting ->
			state[q[0]] = awake; wk = wk | (1 << q[0]); pend[q[0]]++
		:: else
		fi
	:: else
	fi;
#ifdef TABLE
	drain = ok && (drained & (flagVisible | flagBiased)) == flagVisible;
#endif
	base = 0; to = 0; m = 0; k = 0; i = 0
}

inline unparkOne(n) {
	d_step {
		CHECK(one_unpark_per_park, permit[n] == 0);
		permit[n] = 1; pend[n]--; wk = wk & ~(1 << n)
	}
}

/* unpark: all nodes of wk, one step each */
inline unpark() {
	do
	:: (wk & 1) -> unparkOne(0)
	:: (wk & 2) -> unparkOne(1)
#if N > 2
	:: (wk & 4) -> unparkOne(2)
#endif
#if N > 3
	:: (wk & 8) -> unparkOne(3)
#endif
	:: wk == 0 -> break
	od
}

#ifndef TABLE
/* Sync.guarded: advance with the guard taken and the nodes unparked. ok is its result. */
inline guarded(step) {
	atomic { guard == 0; CHOOSE; d_step { advance(step);
#ifdef MUTANT_GRANT_OUTSIDE_GUARD
		skip
#else
		late = 0
#endif
	} }
#ifdef MUTANT_GRANT_OUTSIDE_GUARD
	if :: late -> state[who] = granted; d_step { late = 0; who = 0 } :: else fi;
#endif
	unpark()
}
#endif

/* Sync.TryLock */
inline TryLock() {
	d_step {
		ok = 0;
		if
		:: free(Word) ->
#ifdef FIFO
			CHECK(no_overtaking, ql == 0);
#else
			CHECK(reserved_is_next, ql == 0 || !reserved[q[0]]);
#endif
			Word = Word | value(me); ok = 1; HOLD
		:: else
		fi
	}
}

/* Sync.Barged with reserveOverdue: NonFair; me holds the lock. A guard in use is left alone. */
#ifndef FIFO
inline Barged() {
#ifdef MUTANT_OVERTAKER_LOOKS_EARLY
	atomic { guard == 0; d_step { k = ql > 0 && state[q[0]] == awake && !reserved[q[0]] } }
	s = k;
	d_step {
		if :: s && !free(Word) -> Word = (Word & ~queueFlags) | flagQueued | flagReserved :: else fi;
		s = 0; k = 0
	}
#else
	if
	:: atomic { guard == 0; CHOOSE; d_step {
			if
#ifdef MUTANT_OVERTAKER_RESERVES_FREE
			:: ql > 0 && state[q[0]] == awake && late ->
#else
			:: ql > 0 && state[q[0]] == awake && late && !free(Word) ->
#endif
				mirror(q[0]);
				Word = (Word & ~queueFlags) | m
			:: else
			fi;
			m = 0; late = 0
		} }
	:: true
	fi
#endif
}
#endif

/* Sync.TryLockShared: it barges */
inline TryLockShared() {
	d_step {
		ok = 0;
		if :: !exclusive(Word) -> Word = (Word | flagShared) + one; ok = 1 :: else fi
	}
}

/* Sync.TryLockSharedInTurn */
inline TryLockSharedInTurn() {
	d_step {
		ok = 0;
		if
		:: admitsReader(Word) ->
#ifdef FIFO
			CHECK(no_overtaking, ql == 0);
#else
			CHECK(reserved_is_next, ql == 0 || !isShared[q[0]] && !reserved[q[0]]);
#endif
			Word = (Word | flagShared) + one; ok = 1
		:: else
		fi
	}
}

/* Sync.admissible: a step that loads the word, w, and decides by it and by the queue; ok */
inline admissible() {
	w = Word;
#if defined(MUTANT_SHARED_PAST_QUEUE)
	ok = (isShared[me] -> !exclusive(w) : free(w))
#elif defined(FIFO)
	ok = (isShared[me] -> !exclusive(w) && ql == 0 : free(w))
#elif defined(MUTANT_SHARED_PAST_RESERVED)
	ok = (isShared[me] -> !exclusive(w) && (ql == 0 || state[q[0]] == awake) : free(w))
#else
	ok = (isShared[me] -> !exclusive(w) && (ql == 0 || state[q[0]] == awake && !reserved[q[0]]) : free(w))
#endif
}

/* the compare-and-swap of tryEnqueue, from w, in a step of its own; ok says whether it succeeds */
inline enter_() {
	if
#ifdef MUTANT_JOIN_STORES
	:: true ->
#else
	:: Word == w ->
#endif
#ifdef FIFO
		CHECK(no_overtaking, ql == 0);
#else
		CHECK(reserved_is_next, ql == 0 || !reserved[q[0]] && !(isShared[me] && isShared[q[0]]));
#endif
		if :: isShared[me] -> Word = (w | flagShared) + one :: else -> Word = w | value(me); HOLD fi;
		COUNT(me)
	:: else -> ok = 0
	fi;
	w = 0
}

#ifndef TABLE
/* Sync.tryEnqueue: the caller has the guard, tryEnqueue gives it back. inQueue is its result. */
inline tryEnqueue() {
	do
	:: d_step {
			if
			:: state[me] == waiting -> admissible(); inQueue = !ok
			:: else -> ok = 0; inQueue = 0; guard = 0               /* dismissed before it joined */
			fi
		}
		if
		:: ok ->
			d_step { enter_(); if :: ok -> state[me] = granted; guard = 0 :: else fi }
			if :: ok -> break :: else fi
		:: else -> d_step { w = 0; ok = !inQueue } break
		fi
	od;
	if
	:: inQueue ->
		atomic { CHOOSE; d_step {
#ifdef MUTANT_JOIN_NO_ADVANCE
			push(me); Word = Word | flagQueued;
#else
			advance(JOIN);
#endif
			late = 0; guard = 0
		} }
		unpark()
	:: else
	fi
}

/* Sync.cancel within leave: guard held */
inline cancel(n) {
	k = (q[0] == n);
	remove(n);
	if
#ifdef MUTANT_CANCEL_NO_ADVANCE
	:: false
#else
	:: k ->
		OVERDUE;
		advance(KEEP)
#endif
	:: else
	fi;
	k = 0; i = 0
}
#endif

/* Sync.compete: NonFair; ok is its result. A step of it swaps by w, the word that it looked at. A
   swap that fails looks at the next one in the same step. The word is never 0, as me is flagQueued. */
inline compete() {
#ifndef FIFO
	atomic { guard == 0; d_step {
		ok = (state[me] != awake);
		if
		:: !ok ->
			guard = 1; w = Word;
			CHECK(first_competes, q[0] == me);
#ifdef LOSSES
			CHECK(reserved_is_next, lost[me] < LOSSES)
#endif
		:: else
		fi
	} }
	do
	:: w == 0 -> break
	:: else -> atomic { CHOOSE; d_step {
			m = 0;
			if
			:: free(w) ->
				to = value(me);
				if :: ql > 1 -> mirror(q[1]) :: else fi;
				if
				:: Word == w -> Word = to | m; remove(me); state[me] = granted; HOLD; ok = 1; guard = 0; w = 0
				:: else -> w = Word
				fi
			:: else ->
				k = reserved[me];
#ifdef LOSSES
				if :: lost[me] < LOSSES -> lost[me]++ :: else fi;
#endif
				state[me] = waiting;
#ifndef MUTANT_COMPETE_RESERVES_NOT
				reserved[me] = reserved[me] | ((w & flagShared) != 0);
#endif
				mirror(me);
				if
#ifdef MUTANT_COMPETE_STORES
				:: true ->
#else
				:: Word == w ->
#endif
#ifdef MUTANT_COMPETE_KEEPS_WOKEN
					Word = w | m;
#else
					Word = (w & ~queueFlags) | m;
#endif
					guard = 0; w = 0
				:: else ->
#ifdef MUTANT_COMPETE_STAYS_WAITING
					ok = 1; guard = 0; w = 0
#else
					state[me] = awake; reserved[me] = k; w = Word
#endif
				fi
			fi;
			to = 0; m = 0; i = 0; k = 0; late = 0
		} }
	od;
	skip
#else
	ok = 1
#endif
}

/* Sync.askAgain of a waiter that was sent; ok is 1 if it has the lock, and 0 if it is in the queue again */
inline askAgain() {
	TryLockSharedInTurn();
	if
	:: ok -> state[me] = granted
	:: else ->
#ifdef MUTANT_SENT_SLEEPS
		state[me] = waiting
#else
		atomic { CHOOSE; d_step {
			state[me] = waiting;
#ifndef FIFO
			reserved[me] = 0;
#ifdef LOSSES
			if :: lost[me] < LOSSES -> lost[me]++ :: else fi;
#ifndef MUTANT_SENDS_OVERDUE
			if :: lost[me] >= LOSSES -> sendable[me] = 0 :: else fi;
#endif
#else
			if :: late -> sendable[me] = 0 :: else fi;
#endif
#endif
			late = 0
		} }
		atomic { guard == 0 -> guard = 1 }
		tryEnqueue();
		ok = !inQueue
#endif
	fi
}

/* Sync.awaitLock, and the loop of Sync.wait with Sync.leave; limited: the limit may end at any time,
   or never. ok says whether the lock was acquired. */
inline await() {
	ok = 0;
	do
	:: atomic { permit[me] -> permit[me] = 0 }
		if
#ifndef MUTANT_SENT_RETURNS
		:: state[me] == sent -> askAgain()
#endif
		:: else -> compete()
		fi;
		if :: ok -> break :: else fi
#ifdef TABLE
	:: atomic { limited && guard == 0 -> guard = 1 }
		if
		:: state[me] == granted -> d_step { taken = 1; s = 1; guard = 0 }
		:: state[me] == sent -> d_step { taken = 1; s = 2; guard = 0 }
		:: else ->
			atomic { CHOOSE; d_step {
				taken = (state[me] == awake); s = 0; wasFirst = (q[0] == me); remove(me);
				if :: wasFirst -> OVERDUE :: else fi;
				late = 0
			} }
			if :: wasFirst -> wasFirst = 0; advanceTable(KEEP) :: else fi;
			guard = 0
		fi;
#else
	:: limited ->
		atomic { guard == 0; CHOOSE; d_step {
			if
#ifndef MUTANT_CANCEL_UNSEEN
			:: state[me] == granted || state[me] == dismissed -> taken = 1; s = 1
#endif
#ifndef MUTANT_SENT_UNSEEN
			:: state[me] == sent -> taken = 1; s = 2
#endif
			:: else -> taken = (state[me] == awake); s = 0; cancel(me)
			fi;
			late = 0
		} }
#endif
		unpark();
#ifdef MUTANT_LATE_UNPARK
		if :: taken && s -> atomic { permit[me] -> permit[me] = 0 } :: else fi;
#elif defined(MUTANT_SENT_LEAVES_UNPARK)
		if :: taken && s != 2 -> atomic { permit[me] -> permit[me] = 0 } :: else fi;
#else
		if :: taken -> atomic { permit[me] -> permit[me] = 0 } :: else fi;
#endif
		if
		:: s == 2 -> TryLockSharedInTurn(); s = ok; if :: ok -> state[me] = granted :: else fi
		:: else
		fi;
		d_step { ok = s; taken = 0; s = 0 }
		break
	od
}

/* Sync.wait with Sync.enqueue; ok is 0 if the limit ended or the wait was refused */
inline wait() {
	atomic { guard == 0 -> guard = 1 }
	tryEnqueue();
#ifdef REFUSE
	/* Entry.Refuse, when the watcher has found a cycle */
	if
	:: inQueue ->
		atomic { guard == 0; CHOOSE; d_step {
			if
			:: in[me] == 0 -> s = 0
			:: else -> s = 1; taken = (state[me] == awake); cancel(me)
			fi;
			late = 0
		} }
		unpark();
#ifndef MUTANT_REFUSE_LEAVES_PERMIT
		if :: s && taken -> atomic { permit[me] -> permit[me] = 0 } :: else fi;
#endif
		taken = 0;
		if
		:: s -> d_step { s = 0; inQueue = 0; ok = 0 }
		:: else
		fi
	:: true
	fi;
#endif
	if
	:: inQueue -> await()
	:: else
	fi;
	inQueue = 0
}

/* node.recycle: nothing of the wait is left */
inline recycle() {
	d_step {
		CHECK(one_unpark_per_park, pend[me] == 0 && permit[me] == 0);
		CHECK(cancelled_is_out, in[me] == 0);
		CHECK(cancelled_is_out, ok || state[me] < granted || state[me] == sent);
		CHECK(cancelled_is_out, !ok || state[me] >= granted && state[me] != sent);
		state[me] = waiting; isShared[me] = 0;
#ifndef FIFO
		reserved[me] = 0; sendable[me] = 0;
#endif
#ifdef LOSSES
		lost[me] = 0;
#endif
#ifdef COND
		due[me] = 0;
#endif
	}
}

#ifndef TABLE
/* Sync.Unlock; ok is its result */
inline Unlock() {
	d_step {
		s = 0; ok = 1;
		if
		:: free(Word) -> ok = 0
		:: !free(Word) && (Word & flagShared) && Word >= 2*one -> Word = Word - one
#ifdef MUTANT_UNLOCK_MISSES_QUEUED
		:: !free(Word) && !((Word & flagShared) && Word >= 2*one) -> Word = Word & queueFlags
#else
		:: !free(Word) && !((Word & flagShared) && Word >= 2*one) && !(Word & flagQueued) -> Word = 0
		:: !free(Word) && !((Word & flagShared) && Word >= 2*one) && (Word & flagQueued) ->
#ifdef FIFO
			s = 2
#else
			if
#ifndef MUTANT_UNLOCK_IGNORES_RESERVED
			:: (Word & flagReserved) -> s = 2
#endif
			:: else ->
#ifndef MUTANT_UNLOCK_WAKES_NOBODY
				if :: (Word & flagWoken) :: else -> s = 1 fi;
#endif
				Word = flagQueued | flagWoken
			fi
#endif
#endif
		fi
	}
	if
	:: s != 0 -> guarded((s == 1 -> KEEP : DROP)); s = 0    /* the last part of Unlock, or release */
	:: else
	fi
}
#endif

#ifdef RWMUTEX
/* Of fair.RWMutex: Sync.TryUnlockShared and UnlockShared, and UnlockExclusive; ok */
inline UnlockRW() {
	d_step {
		s = 0; ok = 1;
		if
#ifdef MUTANT_UNLOCKSHARED_MISSES_QUEUED
		:: isShared[me] -> Word = (Word >= 2*one -> Word - one : 0)
#else
		:: isShared[me] && (Word >= 2*one || !(Word & (flagQueued | flagVisible))) -> Word = (Word >= 2*one -> Word - one : 0)
		:: isShared[me] && Word < 2*one && (Word & (queueFlags | flagVisible)) == (flagQueued | flagWoken) -> Word = flagQueued | flagWoken
#endif
		:: !isShared[me] && Word == value(me) -> Word = 0
		:: else -> s = 1
		fi
	}
	if
	:: s -> guarded(DROP); s = 0
	:: else
	fi
}
#endif

/* The invariants of advance, in every state in which the guard is free; word.go's table. */
#define FLAGS_OF(w) ((w) & flags)
#ifdef FIFO
#define RESERVED_BEHIND_READERS 1
#define QUEUE_FLAGS ((Word & (flagWoken | flagReserved)) == 0)
#define HELD_OR_WOKEN (!free(Word))
#else
#define RESERVED_BEHIND_READERS (ql == 0 || !(Word & flagShared) || (Word & (flagWoken | flagReserved)))
#define QUEUE_FLAGS ((!(Word & (flagWoken | flagReserved)) || (Word & flagQueued)) && (Word & (flagWoken | flagReserved)) != (flagWoken | flagReserved) && (!free(Word) || Word == 0 || Word == (flagQueued | flagWoken)))
#define HELD_OR_WOKEN (!free(Word) || (Word & flagWoken))
#endif
#define LEGAL (QUEUE_FLAGS && (!free(Word) || !(Word & (flagShared | flagVisible | flagBiased))) && \
	(!(Word & flagVisible) || (Word & flagShared)) && (!(Word & flagBiased) || (Word & flagVisible) && !(Word & flagQueued)))
#define MIRRORS (((Word & flagQueued) != 0) == (ql > 0) && (ql == 0 || HELD_OR_WOKEN) && \
	(ql == 0 || !isShared[q[0]] || exclusive(Word)) && RESERVED_BEHIND_READERS)

active proctype invariants() {
end:	do
	:: atomic { guard == 0 && !(LEGAL) -> word_is_legal = 0; assert(word_is_legal) }
	:: atomic { guard == 0 && (LEGAL) && !(MIRRORS) -> word_mirrors_queue = 0; assert(word_mirrors_queue) }
	od
}
