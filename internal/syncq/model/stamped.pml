/* rwlock.StampedLock: stamped_state.go, stamped_wait.go, stamped_convert.go, stamped_table.go. */
#ifndef N
#define N 3
#endif
#ifndef WRITES
#define WRITES 2                /* write holds in a run, so that versions stay small */
#endif
#ifndef MAXOVERFLOW
#define MAXOVERFLOW 3
#endif
#ifndef BIASES
#define BIASES 0                /* how often the table is opened in a run */
#endif
#ifndef SLOTS
#define SLOTS 2
#endif

/* The word. The field of readers has room for FULL, which the code calls readers. */
#define writing  1
#define queued   2
#define pending  4
#define parked   8
#define reserved 16
#define visible  32
#define reader   64
#define version  256
#define NEVER    16384           /* a flag that is never set */
#define FULL     2
#define readersOf(w) (((w) / reader) & 3)
#define versionOf(w) ((w) / version)

int Word;
bit guard;
byte q[N], ql, writers, overdue, overflow;
bit isWrite[N], told[N], sent[N], isReserved[N], lost[N];
byte units[SLOTS], moving;      /* of the table; and on their way to the word */
#define slot units[me % SLOTS]
byte granted[N];                /* 0, HOLD or TOOMANY */
byte stamp[N];                  /* the version of the granted hold */
#define HOLD    1
#define TOOMANY 2
bit permit[N];

/* ghosts */
byte pend[N], excl, shrd, ended, writes;
byte x, y;                      /* what the lock protects */
hidden byte mutual_exclusion, word_is_legal, list_is_settled, no_overtaking, reserved_is_kept,
	no_lost_wakeup, one_unpark_per_park, valid_read_is_consistent, stamp_fits, lock_is_free_at_last;
#define CHECK(property, expression) property = (expression); assert(property)

/* d_step only */
hidden byte i, k, j, inWord, beyond;
hidden int to;

inline push(n) {
	q[ql] = n; ql++;
	if :: isWrite[n] -> writers++ :: else fi;
	if :: isReserved[n] -> overdue++ :: else fi
}

inline remove(n) {
	i = 0;
	do :: i < ql && q[i] != n -> i++ :: else -> break od;
	assert(i < ql);
	do :: i + 1 < ql -> q[i] = q[i+1]; i++ :: else -> break od;
	ql--; q[ql] = 0; if :: isWrite[n] -> writers-- :: else fi;
	if :: isReserved[n] -> overdue-- :: else fi;
	i = 0
}

/* StampedLock.sends */
#ifdef MUTANT_READERS_SENT_PAST_WRITER
#define MAYSEND (ql > 0 && !isWrite[q[0]] && overdue == 0 && !told[q[0]])
#elif defined(MUTANT_READERS_SENT_OVERDUE)
#define MAYSEND (ql > 0 && writers == 0 && !told[q[0]])
#elif defined(MUTANT_READERS_SENT_TWICE)
#define MAYSEND (ql > 0 && writers == 0 && overdue == 0)
#else
#define MAYSEND (ql > 0 && writers == 0 && overdue == 0 && !told[q[0]])
#endif
/* StampedLock.isReserved of the front, and what it stands for: the lock is kept for an overdue waiter in front */
#define RESERVED(n) (isReserved[n] || !isWrite[n] && overdue > 0)

/* StampedLock.admit with grant and send; the compare-and-swap is this step. next is the word to change to. */
inline admit(next, awake) {
	to = (next) - ((next) & (queued | pending | parked | reserved));
	k = 0; j = 255;
	if
	:: !(to & writing) && !awake && readersOf(to) == 0 && MAYSEND -> j = 254
	:: else
	fi;
	if
	:: j == 254
	:: j != 254 && !(to & writing) && (awake || readersOf(to) > 0) ->
		do :: k < ql && !isWrite[q[k]] -> k++ :: else -> break od
	:: else
	fi;
	inWord = (k < FULL - readersOf(to) -> k : FULL - readersOf(to));
	beyond = (k - inWord < MAXOVERFLOW - overflow -> k - inWord : MAXOVERFLOW - overflow);
	to = to + inWord*reader;
	if
	:: j == 254
	:: j != 254 && k < ql ->
		to = to | queued;
		if :: writers > 0 -> to = to | pending :: else fi;
		if
		:: (to & writing) || isWrite[q[k]] && readersOf(to) > 0 -> to = to | parked
#ifdef MUTANT_ADMIT_TELLS_TWICE
		:: else -> j = q[k]
#else
		:: else -> if :: !told[q[k]] -> j = q[k] :: else fi
#endif
		fi;
		if :: RESERVED(q[k]) -> to = to | reserved :: else fi
	:: else
	fi;
	Word = to;
	if
	:: j == 254 ->
		CHECK(no_overtaking, writers == 0);
		CHECK(reserved_is_kept, overdue == 0);
		do
		:: ql > 0 ->
			i = q[0];
			sent[i] = 1; wk = wk | (1 << i); pend[i]++;
			CHECK(one_unpark_per_park, pend[i] == 1);
			to = i; remove(to)
		:: else -> break
		od
	:: j < 254 -> told[j] = 1; wk = wk | (1 << j); pend[j]++
	:: else ->
		overflow = overflow + beyond;
		j = 0;
		do
		:: j < k ->
			i = q[0];
			granted[i] = (j < inWord + beyond -> HOLD : TOOMANY);
			stamp[i] = versionOf(to);
			if :: j == 0 && told[i] :: else -> wk = wk | (1 << i); pend[i]++ fi;
			j++;
			inWord = inWord; to = i; remove(to); to = Word
		:: else -> break
		od
	fi;
	k = 0; j = 0; i = 0; inWord = 0; beyond = 0; to = 0
}

inline unpark() {
	do
	:: wk == 0 -> break
	:: else ->
		d_step {
			i = 0;
			do :: !(wk & (1 << i)) -> i++ :: else -> break od;
			CHECK(one_unpark_per_park, permit[i] == 0);
			permit[i] = 1; pend[i]--; wk = wk & ~(1 << i); i = 0
		}
	od
}

/* StampedLock.settleAndUnlock */
inline settleAndUnlock() {
	d_step { admit(Word, 0); guard = 0 }
	unpark()
}

/* StampedLock.fold. The guard is held. */
inline fold() {
	if
	:: Word & visible ->
#ifndef MUTANT_FOLD_DOES_NOT_CLOSE
		Word = Word | pending;
#endif
#ifdef MUTANT_FOLD_CLEARS_EARLY
		Word = Word & ~visible;
#endif
		d_step { moving = units[0]; units[0] = 0 }
#if SLOTS > 1
		d_step { moving = moving + units[1]; units[1] = 0 }
#endif
		d_step {
			inWord = (moving < FULL - readersOf(Word) -> moving : FULL - readersOf(Word));
			Word = (Word & ~(visible | pending)) + inWord*reader;
			overflow = overflow + moving - inWord;
			moving = 0; inWord = 0
		}
	:: !(Word & visible)
	fi
}

/* StampedLock.counted, for its effect */
inline counted() {
	do
	:: Word & visible ->
		atomic { guard == 0 -> guard = 1 }
		fold();
		guard = 0
	:: !(Word & visible) -> break
	od
}

/* StampedLock.enter and decide; ok */
inline enter() {
	slot++;
	d_step { ok = ((Word & (visible | pending)) == visible); st = versionOf(Word) }
#ifdef MUTANT_READER_DOES_NOT_LOOK
	ok = 1;
#endif
	if
	:: ok
	:: !ok ->
		d_step { if :: slot > 0 -> slot-- :: else -> ok = 1 fi }
#ifdef MUTANT_FOLDED_READER_LEAVES
		ok = 0;
#endif
#ifndef MUTANT_FOLDED_READER_KEEPS_VERSION
		if :: ok -> st = versionOf(Word) :: !ok fi
#endif
	fi
}

/* StampedLock.enterWrite; ok */
inline enterWrite(avoid) {
	do
	:: d_step {
			ok = 0;
			if
			:: Word & visible -> s = 1
			:: !(Word & (visible | writing | (avoid))) && readersOf(Word) == 0 ->
				CHECK(reserved_is_kept, !(avoid) || guard || ql == 0 || !RESERVED(q[0]));
				Word = Word | writing; ok = 1; st = versionOf(Word)
			:: else
			fi
		}
		if :: s -> s = 0; counted() :: !s -> break fi
	od
}

/* StampedLock.countBarger, after a hold that spinWrite took. The count, the clock, and a guard that is in use are
   the choice to do nothing. Word was free a step ago; it may be anything by now. */
inline countBarger() {
	if
	:: d_step { guard == 0 && ql > 0 && told[q[0]] && isWrite[q[0]] && !isReserved[q[0]] ->
#ifndef MUTANT_BARGER_FORGETS_THE_WAITER
			isReserved[q[0]] = 1; overdue++;
#endif
#ifdef MUTANT_BARGER_FORGETS_THE_WORD
			skip
#else
			Word = Word | reserved
#endif
		}
	:: true
	fi
}

/* StampedLock.enterRead with addReader; ok, or tooMany */
inline enterRead(avoid) {
	ok = 0; tooMany = 0;
	do
	:: (avoid) && (Word & (writing | pending | queued)) == pending -> guard == 0
	:: (Word & visible) && !(Word & (writing | (avoid))) ->
		enter();
		if
		:: ok -> break
		:: atomic { !ok && (Word & visible) && !(Word & (writing | (avoid))) && readersOf(Word) < FULL ->
			Word = Word + reader; ok = 1; st = versionOf(Word) } break
		:: !ok
		fi
	:: d_step { !(Word & visible) && !((avoid) && (Word & (writing | pending | queued)) == pending) ->
			if
			:: Word & (writing | (avoid)) -> s = 0
			:: !(Word & (writing | (avoid))) && readersOf(Word) < FULL ->
				CHECK(no_overtaking, !(avoid) || writers == 0);
				Word = Word + reader; ok = 1; st = versionOf(Word); s = 0
			:: else -> s = 1; st = versionOf(Word)
			fi
		}
		if
		:: s ->
			d_step {
				guard == 0;
				if
				:: readersOf(Word) == FULL && versionOf(Word) == st ->
					s = 0;
					if :: overflow == MAXOVERFLOW -> tooMany = 1 :: else -> overflow++; ok = 1 fi
				:: else
				fi
			}
			if :: !s -> break :: else fi
		:: else -> break
		fi
	od;
	s = 0
}

/* StampedLock.reserveOverdue. The guard is held. The clock is the choice to do nothing. */
inline reserveOverdue() {
	if
	:: d_step { ql > 0 && isWrite[q[0]] && !isReserved[q[0]] -> isReserved[q[0]] = 1; overdue++ }
	:: true
	fi
}

/* StampedLock.look; ended is why the waiter looks; over, and ok or tooMany */
inline look(hasEnded) {
	atomic { guard == 0 -> guard = 1 }
	d_step {
		unparked = (hasEnded && (told[me] || sent[me] || granted[me]));
		told[me] = 0;
		over = hasEnded
	}
	if
	:: sent[me] ->
		guard = 0;
#ifdef MUTANT_READER_SENT_RETURNS
		ok = 1;
#else
		enterRead(pending);
#endif
		if
		:: ok || tooMany -> over = 1
		:: !ok && !tooMany && !hasEnded ->
			d_step {
				sent[me] = 0;
				if :: lost[me] -> isReserved[me] = 1 :: else -> lost[me] = 1 fi
			}
#ifndef MUTANT_READER_SENT_SLEEPS
			join()
#endif
		:: !ok && !tooMany && hasEnded
		fi
	:: !sent[me] && granted[me] ->
		d_step { ok = (granted[me] == HOLD); tooMany = (granted[me] == TOOMANY); st = stamp[me]; over = 1; guard = 0 }
	:: !sent[me] && !granted[me] && hasEnded ->
		d_step { remove(me) }
#ifdef MUTANT_LIMIT_NO_SETTLE
		guard = 0
#else
		settleAndUnlock()
#endif
	:: !sent[me] && !granted[me] && !hasEnded && isWrite[me] ->
		enterWrite(0);
		if
		:: ok -> over = 1; d_step { remove(me) }
#ifndef MUTANT_WINNER_RESERVES_LATE
			reserveOverdue()
#endif
		:: else -> lose()
		fi;
#ifdef MUTANT_LOOK_NO_SETTLE
		if :: ok -> settleAndUnlock() :: else -> guard = 0 fi
#else
		settleAndUnlock()
#endif
#ifdef MUTANT_WINNER_RESERVES_LATE
		if :: ok -> atomic { guard == 0 -> guard = 1 } reserveOverdue(); guard = 0 :: else fi
#endif
	:: !sent[me] && !granted[me] && !hasEnded && !isWrite[me] ->
		if :: (Word & writing) -> lose() :: else fi;
		d_step {
			admit(Word, 1);
			if :: granted[me] -> ok = (granted[me] == HOLD); tooMany = (granted[me] == TOOMANY); st = stamp[me]; over = 1; unparked = 1 :: else fi;
			guard = 0
		}
		unpark()
	fi;
#ifdef MUTANT_LOOK_LEAVES_PERMIT
	unparked = 0;
#endif
	if :: unparked -> atomic { permit[me] -> permit[me] = 0; unparked = 0 } :: else fi
}

inline lose() {
	if
	:: !lost[me] -> lost[me] = 1
	:: lost[me] -> overdue = overdue + 1 - isReserved[me]; isReserved[me] = 1     /* MaxLost or MaxBarging */
	:: lost[me]
	fi
}

/* StampedLock.join */
inline join() {
	atomic { guard == 0 -> guard = 1 }
#ifndef MUTANT_WAIT_DOES_NOT_FOLD
	fold();
#endif
	d_step { push(me); admit(Word, 0); guard = 0 }
	unpark()
}

/* StampedLock.wait; ok or tooMany */
inline wait() {
	ok = 0; tooMany = 0;
#ifdef LIMIT
	if :: lim = 0 :: lim = 1 fi;                            /* the limit never ends, or may end at any time */
#endif
	join();
	over = 0;
	do
	:: over -> break
	:: !over ->
		if
		:: atomic { permit[me] -> permit[me] = 0; limited = 0 }
		:: atomic { lim -> limited = 1 }
		fi;
		look(limited)
	od;
	atomic { over = 0; limited = 0; lim = 0 };
	d_step {
		CHECK(one_unpark_per_park, pend[me] == 0 && permit[me] == 0);
		granted[me] = 0; told[me] = 0; sent[me] = 0; isReserved[me] = 0; lost[me] = 0; stamp[me] = 0
	}
}

/* StampedLock.endWrite */
inline endWrite(behind) {
	if
#ifdef MUTANT_UNLOCK_MISSES_PARKED
	:: atomic { Word = (Word & ~writing) + version + (behind) }
#elif defined(MUTANT_UNLOCK_KEEPS_VERSION)
	:: atomic { !(Word & parked) -> Word = Word & ~writing; writes-- }
	:: d_step { guard == 0 && (Word & parked); admit(Word & ~writing, 0); writes-- }
		unpark()
#else
	:: atomic { !(Word & parked) -> Word = (Word & ~writing) + version + (behind) }
	:: d_step { guard == 0 && (Word & parked); admit((Word & ~writing) + version + (behind), 0) }   /* release */
		unpark()
#endif
	fi
}

/* StampedLock.leaveRead and removeReader */
inline leaveRead() {
#if SLOTS > 1 && BIASES > 0
	if :: at = 0 :: at = 1 fi;                              /* any goroutine may release */
#endif
	do
	:: Word & visible ->
		d_step { if :: units[at] > 0 -> units[at]--; s = 1 :: else fi }
		if
		:: s -> s = 0; break
		:: atomic { !s && (Word & visible) && readersOf(Word) > 0 && readersOf(Word) < FULL -> Word = Word - reader } break
		:: atomic { guard == 0 && !s && (Word & visible) && readersOf(Word) == FULL ->
			if :: overflow > 0 -> overflow-- :: else -> Word = Word - reader fi } break
#ifndef MUTANT_RELEASE_DOES_NOT_FOLD
		:: !s && (Word & visible) && readersOf(Word) == 0 -> counted()
#endif
		:: !s && !(Word & visible)
		fi
#define COUNTED !(Word & visible) && readersOf(Word) > 0
#ifdef MUTANT_UNLOCKREAD_MISSES_PARKED
	:: atomic { COUNTED && readersOf(Word) < FULL -> Word = Word - reader } break
#else
	:: atomic { COUNTED && readersOf(Word) < FULL && !(readersOf(Word) == 1 && (Word & parked)) -> Word = Word - reader } break
	:: d_step { guard == 0 && COUNTED && readersOf(Word) == 1 && (Word & parked); admit(Word - reader, 0) } /* release */
		unpark(); break
#endif
#ifdef MUTANT_OVERFLOW_FORGOTTEN
	:: atomic { COUNTED && readersOf(Word) == FULL -> Word = Word - reader } break
#else
	:: atomic { guard == 0 && COUNTED && readersOf(Word) == FULL ->
		if :: overflow > 0 -> overflow-- :: else -> Word = Word - reader fi } break
#endif
	od
}

inline write() { excl++; CHECK(mutual_exclusion, excl == 1 && shrd == 0 && (Word & writing)); CHECK(stamp_fits, versionOf(Word) == st) }
#if SLOTS > 1
#define INTABLE (units[0] + units[1])
#else
#define INTABLE units[0]
#endif
#define UNITS (readersOf(Word) + overflow + moving + INTABLE)
inline read() {
	shrd++;
	CHECK(mutual_exclusion, excl == 0 && !(Word & writing) && UNITS >= shrd);
	CHECK(stamp_fits, versionOf(Word) == st);
	CHECK(valid_read_is_consistent, x == y)
}

#ifdef ONCE                     /* each goroutine does one thing; else any number, and stops at any time */
#define MORE !done
#define DONE done = 1
#else
#define MORE true
#define DONE skip
#endif
proctype goroutine(byte me) {
	byte st, rx, wk;
	bit ok, tooMany, s, unparked, over, limited, lim, at;
#ifdef ONCE
	bit done;
#endif
next:	atomic { ok = 0; st = 0; tooMany = 0; s = 0 }
	do
	:: atomic { MORE && writes < WRITES -> writes++; isWrite[me] = 1; DONE }
		if
		:: d_step { ok = 0; if :: Word % version == 0 -> Word = Word | writing; ok = 1; st = versionOf(Word) :: else fi }     /* WriteLock */
		:: enterWrite(0); if :: ok :: else -> goto gone fi              /* TryWriteLock */
		fi;
		if
		:: ok
		:: else ->
#ifdef MUTANT_SPIN_IGNORES_RESERVED
			enterWrite(NEVER);
#else
			enterWrite(reserved);                                   /* spinWrite */
#endif
			if
			:: ok -> countBarger()
			:: else -> wait(); if :: ok :: else -> goto gone fi
			fi
		fi;
wrote:		skip;
		d_step { isWrite[me] = 0; write() }
		x++;
		y++;
		if
		:: excl--; endWrite(0)
#ifdef CONVERT
		:: excl--; endWrite(reader); st++; d_step { read() } goto reads   /* TryConvertToReadLock */
#endif
		fi;
		goto next;
gone:		atomic { writes--; isWrite[me] = 0 }
		goto next
	:: MORE -> DONE;
		if
		:: enterRead(pending)                                           /* ReadLock, spinRead */
			if :: ok || tooMany :: else -> wait() fi
		:: enterRead(0)                                                 /* TryReadLock */
		fi;
		if :: ok -> d_step { read() } :: else -> tooMany = 0; goto next fi;
reads:		if
		:: shrd--; leaveRead()
#ifdef CONVERT
		:: atomic { writes < WRITES -> writes++ }                       /* TryConvertToWriteLock */
			do
			:: counted();
				skip;
				d_step {
					ok = 0; s = 0;
					if
					:: Word & visible -> s = 1
					:: !(Word & visible) && readersOf(Word) == 1 -> Word = (Word | writing) - reader; ok = 1; shrd--
					:: else
					fi
				}
				if :: s -> s = 0 :: !s -> break fi
			od;
			if :: ok -> goto wrote :: else -> writes-- fi;
			shrd--; leaveRead()
#endif
		fi;
		goto next
#ifdef OPTIMISTIC
	:: atomic { MORE && !(Word & writing) -> st = versionOf(Word); DONE }   /* TryOptimisticRead */
		rx = x;
		rx = (rx == y);
		if
		:: atomic { versionOf(Word) == st && !(Word & writing) -> CHECK(valid_read_is_consistent, rx) }      /* Validate */
		:: else
		fi;
		rx = 0;
		goto next
#endif
	:: true -> break
	od;
	ended++
}

/* The table of words, and "Why no wake-up is lost", in every state in which the guard is free. */
#define AVAILABLE (!(Word & writing) && (!isWrite[q[0]] || readersOf(Word) == 0))
#define LEGAL (!((Word & writing) && readersOf(Word) > 0) && \
	(!(Word & visible) || (Word & (reader - 1)) == visible) && (overflow == 0 || readersOf(Word) == FULL) && \
	((Word & queued) != 0) == (ql > 0) && ((Word & pending) != 0) == (writers > 0) && \
	((Word & reserved) != 0) == (ql > 0 && RESERVED(q[0])))
#define SETTLED (ql == 0 || told[q[0]] || (Word & parked) && !AVAILABLE)

/* StampedLock.bias: at any time, so also after many reads. */
active proctype opener() {
	byte biases;
	do
	:: atomic { biases < BIASES &&
#ifndef MUTANT_BIAS_WITHOUT_GUARD
		guard == 0 &&
#endif
		!(Word & (reader - 1)) -> Word = Word | visible; biases++ }
	:: true -> break
	od
}

active proctype invariants() {
end:	do
	:: atomic { guard == 0 && !(LEGAL) -> word_is_legal = 0; assert(word_is_legal) }
	:: atomic { guard == 0 && !(SETTLED) -> list_is_settled = 0; assert(list_is_settled) }
	od
}

active proctype monitor() {
	timeout ->
	CHECK(no_lost_wakeup, ended == N);
	CHECK(lock_is_free_at_last, (Word & ~visible) % version == 0 && INTABLE == 0 && ql == 0 && guard == 0 && overflow == 0)
}

init {
	atomic {
		byte g = 0;
		do :: g < N -> run goroutine(g); g++ :: else -> break od
	}
}
