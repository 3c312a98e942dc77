/* package ruled: sync.go, queue.go. The rules are those of a semaphore of SIZE permits. With LATCH
   they are those of a latch, which is closed at first: an acquisition changes nothing. */
#ifndef N
#define N 3
#endif
#ifndef SIZE
#define SIZE 2
#endif

/* gate */
#define queued 1
#define awake  2
#define closed 4

/* node.state */
#define waiting 0
#define racing  1
#define granted 2
#define refused 3

#ifdef LATCH
byte Word;
#define cost(n) 0
#else
byte Word = SIZE;
#define cost(n) arg[n]
#endif
byte gate;
bit guard;
byte q[N], ql;
byte arg[N], state[N];
bit isReserved[N], permit[N];
bit refuses;                    /* from now on waits for SIZE are refused */

/* ghosts */
byte pend[N], held, ended;
byte ahead[N];                  /* the waiters that were there when a goroutine found gate closed, as bits */
hidden byte mutual_exclusion, word_mirrors_queue, no_overtaking, order_of_arrival, reserved_is_kept,
	no_lost_wakeup, one_unpark_per_park, cancelled_is_out, lock_is_free_at_last;
#define CHECK(property, expression) property = (expression); assert(property)

/* d_step only */
hidden byte i, j;

inline push(n) { q[ql] = n; ql++ }

inline remove(n) {
	i = 0;
	do :: i < ql && q[i] != n -> i++ :: else -> break od;
	assert(i < ql);
	do :: i + 1 < ql -> q[i] = q[i+1]; i++ :: else -> break od;
	ql--; q[ql] = 0;
	i = 0;
	do :: i < N -> ahead[i] = ahead[i] & ~(1 << (n)); i++ :: else -> break od;
	i = 0
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

inline wake(n) { wk = wk | (1 << (n)); pend[n]++ }

inline setGate() { atomic { gate = (isReserved[q[0]] -> queued | closed : queued) } }

/* Sync.advance; wk. The load and the swap of the word are one step, because a swap that fails ends nothing. */
inline advance() {
	go = 1;
	do
	:: !go || ql == 0 || (state[q[0]] == racing && !isReserved[q[0]]) -> break
	:: else ->
#ifdef FIFO
		isReserved[q[0]] = 1;
#else
		if :: isReserved[q[0]] = 1 :: skip fi;                  /* overdue */
#endif
#ifdef MUTANT_GATE_SET_AFTER_THE_LOOK
		go = (Word >= arg[q[0]]);
		setGate();
		if :: go -> skip :: else -> break fi;
#else
		setGate();
#endif
		if
		:: d_step { Word < arg[q[0]] -> go = 0 }
#ifdef MUTANT_ADVANCE_LETS_SMALL_ONES_PASS
			if
			:: d_step { ql > 1 && Word >= arg[q[1]] -> j = q[1]; CHECK(order_of_arrival, q[0] == j) }
			:: else
			fi
#endif
		:: atomic { Word >= arg[q[0]] && isReserved[q[0]] ->
				j = q[0];
				Word = Word - cost(j);
				CHECK(order_of_arrival, q[0] == j);
#ifdef MUTANT_RACER_IS_UNPARKED_AGAIN
				wake(j);
#else
				if :: state[j] == waiting -> wake(j) :: else fi;
#endif
				state[j] = granted; held = held + cost(j);
				remove(j); j = 0
			}
#ifdef MUTANT_ADVANCE_ADMITS_ONE
			go = 0
#endif
		:: atomic { Word >= arg[q[0]] && !isReserved[q[0]] -> state[q[0]] = racing; wake(q[0]) }
			atomic { gate = queued | awake }
		fi
	od;
#ifndef MUTANT_GATE_STAYS_CLOSED
	if :: ql == 0 -> gate = 0 :: else fi;
#endif
	go = 0
}

/* Sync.TryAcquire; ok */
inline TryAcquire() {
	ok = 0;
	d_step {
		s = !(gate & closed);
#ifdef MUTANT_NEWCOMER_MISSES_CLOSED
		s = 1;
#endif
		ahead[me] = 0; i = 0;
		do
		:: i < ql && (gate & closed) -> ahead[me] = ahead[me] | (1 << q[i]); i++
		:: else -> break
		od;
		i = 0
	}
	d_step {
		if
		:: s && Word >= arg[me] ->
			CHECK(reserved_is_kept, !ahead[me]);
			Word = Word - cost(me); held = held + cost(me); ok = 1
		:: else
		fi;
		s = 0; ahead[me] = 0
	}
}

/* Sync.pass: after a release past an awake waiter. A look at the clock says whether that waiter is overdue. */
inline pass() {
	if
	:: atomic { guard == 0 && (gate & awake) -> guard = 1 }
		if
		:: ql > 0 && state[q[0]] == racing && !isReserved[q[0]] ->
			isReserved[q[0]] = 1;
#ifndef MUTANT_PASSER_LEAVES_AWAKE
			advance()
#endif
		:: else
		fi;
		guard = 0;
		unpark()
	:: true
	fi
}

/* Sync.onChange */
inline changed() {
	if
	:: atomic { (gate & (queued | awake)) == queued -> s = 1 }
	:: atomic { (gate & (queued | awake)) != queued -> s = 0 }
	fi;
	settle();
#ifndef FIFO
	pass()
#endif
}

/* Sync.admit */
inline settle() {
	if
	:: s -> s = 0;
		atomic { guard == 0 -> guard = 1 }
		advance();
		guard = 0;
		unpark()
	:: else
	fi
}

/* Sync.Release */
inline Release() {
#ifdef MUTANT_RELEASE_LOOKS_EARLY
	atomic { s = ((gate & (queued | awake)) == queued) };
	atomic { Word = Word + arg[me]; held = held - arg[me] };
	settle()
#else
	atomic { Word = Word + arg[me]; held = held - arg[me] };
#ifndef MUTANT_RELEASE_MISSES_QUEUED
	changed()
#endif
#endif
}

/* Sync.compete; over */
inline compete() {
	atomic { guard == 0 -> guard = 1 }
	if
	:: state[me] == racing ->
#ifndef MUTANT_LOSER_STAYS_AWAKE
		state[me] = waiting;
#endif
		if
		:: d_step { Word >= arg[me] -> Word = Word - cost(me); held = held + cost(me);
				CHECK(order_of_arrival, q[0] == me);
				remove(me); state[me] = granted }
#ifdef MUTANT_WINNER_FORGETS_THE_NEXT
			if :: ql == 0 -> gate = 0 :: else -> gate = queued fi
#else
			advance()
#endif
		:: true ->                      /* the rules refuse it, or another acquisition comes first */
#ifdef MUTANT_LOSER_LOOKS_ONCE
			setGate()
#elif defined(MUTANT_LOSER_STAYS_AWAKE)
			state[me] = waiting
#else
			advance();
#ifdef MUTANT_RACER_IS_NOT_UNPARKED
			if :: d_step { wk & (1 << me) -> wk = wk & ~(1 << me); pend[me]-- } :: else fi
#elif !defined(MUTANT_LOSER_UNPARKS_ITSELF)
			if :: d_step { state[me] == granted && wk & (1 << me) -> wk = wk & ~(1 << me); pend[me]-- } :: else fi
#endif
#endif
		fi
	:: else
	fi;
	over = (state[me] >= granted);
	guard = 0;
	unpark()
}

/* Sync.Leave */
inline leave() {
	atomic { guard == 0 -> guard = 1; unparked = (state[me] != waiting) }
	if
	:: state[me] < granted ->
		d_step { s = (q[0] == me); remove(me); state[me] = waiting }
#ifdef MUTANT_LEAVER_FORGETS_THE_NEXT
		if :: s && ql == 0 -> gate = 0 :: else fi
#else
		if :: s -> advance() :: else fi
#endif
	:: else
	fi;
	s = 0; guard = 0;
	unpark();
#ifdef MUTANT_LEAVER_LEAVES_UNPARK
	unparked = 0;
#endif
	if :: unparked -> atomic { permit[me] -> permit[me] = 0; unparked = 0 } :: else fi
}

/* Sync.Wait; ok */
inline wait() {
	lim = 0;
#ifdef LIMIT
	if :: lim = 0 :: lim = 1 fi;                            /* the limit never ends, or may end at any time */
#endif
	atomic { guard == 0 -> guard = 1; over = refuses && arg[me] == SIZE }
	if                                                      /* enqueue */
	:: over -> d_step { state[me] = refused; wake(me); over = 0 }
	:: else -> push(me); if :: q[0] == me -> advance() :: else fi
	fi;
	guard = 0;
	unpark();
	do
	:: atomic { permit[me] -> permit[me] = 0 }
#ifdef FIFO
		over = 1;
#else
		compete();
#endif
		if :: over -> break :: else fi
	:: atomic { lim -> lim = 0 }
		leave();
		break
	od;
	skip;
	d_step {
		ok = (state[me] == granted);
		i = 0;
		do :: i < ql -> CHECK(cancelled_is_out, q[i] != me); i++ :: else -> break od;
		i = 0;
		CHECK(one_unpark_per_park, pend[me] == 0 && permit[me] == 0);
		state[me] = waiting; isReserved[me] = 0; over = 0; lim = 0
	}
}

proctype goroutine(byte me) {
	byte wk;
	bit ok, s, go, over, lim, unparked;
next:	do
	::	if
#ifndef LATCH
		:: arg[me] = 1
#endif
		:: arg[me] = SIZE
		fi;
		if
		:: TryAcquire()
		:: TryAcquire(); if :: ok :: else -> wait() fi
		fi;
		if
		:: ok ->
			d_step { CHECK(mutual_exclusion, held + Word == SIZE); ok = 0 }
#ifndef LATCH
			Release()
#endif
		:: else
		fi;
		arg[me] = 0
#ifdef ONCE
		break
#endif
	:: true -> break
	od;
	ended++
}

#ifdef LATCH
active proctype opener() {
	byte wk;
	bit s, go;
	Word = SIZE;
	changed()
}
#endif

#ifdef REFUSE
/* Sync.Refuse, by Resize of a semaphore: at any time, once */
active proctype refuser() {
	byte wk, first, n;
	bit go;
	atomic { guard == 0 -> guard = 1; refuses = 1; first = 255; if :: ql > 0 -> first = q[0] :: else fi }
	d_step {
		n = 0;
		do
		:: n < ql && arg[q[n]] == SIZE ->
			j = q[n];
			remove(j);
#ifdef MUTANT_REFUSED_IS_UNPARKED_TWICE
			wake(j);
#else
			if :: state[j] == waiting -> wake(j) :: else fi;
#endif
			state[j] = refused; j = 0
		:: n < ql && arg[q[n]] != SIZE -> n++
		:: else -> break
		od;
		n = 0
	}
#ifdef MUTANT_REFUSAL_FORGETS_THE_NEXT
	if :: ql == 0 -> gate = 0 :: else fi;
#else
	if :: first != 255 && (ql == 0 || q[0] != first) -> advance() :: else fi;
#endif
	guard = 0;
	unpark();
	first = 0
}
#endif

/* The table of gates, and the invariants Q, A and C above advance. */
#define MIRRORS (((gate & queued) != 0) == (ql > 0) && \
	((gate & awake) != 0) == (ql > 0 && state[q[0]] == racing && !isReserved[q[0]]) && \
	((gate & closed) != 0) == (ql > 0 && isReserved[q[0]]))

active proctype invariants() {
end:	do
	:: atomic { guard == 0 && !(MIRRORS) -> word_mirrors_queue = 0; assert(word_mirrors_queue) }
	od
}

active proctype monitor() {
	timeout ->
	CHECK(no_lost_wakeup, ended == N);
	CHECK(lock_is_free_at_last, Word == SIZE && gate == 0 && ql == 0 && guard == 0 && held == 0)
}

init {
	atomic {
		byte g = 0;
		do :: g < N -> run goroutine(g); g++ :: else -> break od
	}
}
