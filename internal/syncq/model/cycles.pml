/* The refusal of a wait that would close a cycle: waits/watcher.go and graph.go. The queue is that of
 * a FIFO lock without shared holds; queue.pml has the queue itself. */
#ifndef N
#define N 3                     /* goroutines */
#endif
#ifndef L
#define L 3                     /* locks */
#endif
#ifndef ROUNDS
#define ROUNDS 1                /* in which a goroutine acquires two locks */
#endif

byte holder[L];                 /* g + 1, or 0 */
byte q[L * N], length[L];          /* the queue of lock l begins at q[l * N] */
byte at[N];                     /* l + 1 of the queue that the goroutine is in, or 0 */
byte id[N];                     /* WaitID: the number of the goroutine's wait */
byte awaited[N];                /* l + 1, or 0; may be out of date */
bit begin;

/* ghosts */
byte ended;
bit stood[N];
hidden byte mutual_exclusion, no_deadlock, refused_in_cycle, one_refusal, cancelled_is_out, lock_is_free_at_last;
#define CHECK(property, expression) property = (expression); assert(property)
hidden byte i, j;

inline remove(g) {
	i = (at[g] - 1) * N;
	do :: q[i] != g -> i++ :: else -> break od;
	j = (at[g] - 1) * N + length[at[g] - 1] - 1;
	do :: i < j -> q[i] = q[i+1]; i++ :: else -> break od;
	q[j] = 0;
	length[at[g] - 1]--; at[g] = 0; i = 0; j = 0
}

/* ghost: i says whether a cycle through me stands now */
inline onCycle() {
	i = me; j = 0;
	do
	:: j < N && at[i] && holder[at[i] - 1] && holder[at[i] - 1] != me + 1 -> i = holder[at[i] - 1] - 1; j++
	:: else -> break
	od;
	if
	:: j < N && at[i] -> i = (holder[at[i] - 1] == me + 1)
	:: else -> i = 0
	fi;
	j = 0
}

/* Entry.Enqueue, with watcher.Queued: ok is its result */
inline Enqueue(l) {
	d_step {
		if
		:: holder[l] == 0 -> holder[l] = me + 1; ok = 0
		:: else -> q[l * N + length[l]] = me; length[l]++; at[me] = l + 1; id[me]++; awaited[me] = l + 1; ok = 1
		fi
	}
}

/* look for one wait: h is the holder of lock l, and ok says whether goroutine g is in its queue, with
 * the id x. An x of 0 stands for every id. */
inline look(l, g, x) {
	h = holder[l];
	d_step {
		ok = (at[g] == l + 1 && (x == 0 || id[g] == x));
		if :: ok -> seenID = id[g] :: else -> h = 0 fi
	}
}

/* cycleThrough: n is the number of waits on the path, or 0. The wait of me for lock l has the holder
 * that h says. */
inline cycleThrough(l) {
	d_step { n = 0; g = me; seen = 0; k = l; seenID = id[me] }
	do
	:: seen & (1 << k) || h == 0 -> n = 0; break            /* the holders of a lock are followed once */
	:: else ->
		d_step { seen = seen | (1 << k); who[n] = g; for_[n] = k; wait[n] = seenID; n++ }
		if
		:: h == me + 1 -> break
		:: else
		fi;
		g = h - 1; k = awaited[g];
		if
		:: k == 0 -> n = 0; break
		:: else -> k--
		fi;
		look(k, g, 0);
		if :: !ok -> n = 0; break :: else fi
	od;
	g = 0;
	d_step { k = 0; h = 0; seen = 0; seenID = 0; ok = 0 }
}

/* again: every says whether all waits of the path were there, and joined whether each one's holder
 * was the next one. */
inline again() {
	d_step { every = 1; joined = 1; k = 0 }
	do
	:: k < n ->
		look(for_[k], who[k], wait[k]);
		d_step {
			if :: !ok -> every = 0 :: else fi;
			if :: h != who[(k + 1 == n -> 0 : k + 1)] + 1 -> joined = 0 :: else fi;
			h = 0; ok = 0; seenID = 0; k++
		}
	:: else -> break
	od;
	k = 0
}

/* closesCycle: closes. me is in the queue of lock l. */
inline closesCycle(l) {
	closes = 0;
	h = holder[l];
	do
	:: true ->
		cycleThrough(l);
		if :: n == 0 -> break :: else fi;
		again();
		d_step { onCycle(); stood[me] = i; i = 0; found = every && joined }
#ifndef MUTANT_TWO_LOOKS_ARE_ENOUGH
		again();
#endif
		if :: found && every -> closes = 1; break :: else fi;
		look(l, me, id[me]);
		if :: !ok -> break :: else fi           /* it has the lock */
	od;
	n = 0;
	d_step { h = 0; ok = 0; seenID = 0; every = 0; joined = 0; found = 0 }
}

/* Entry.Refuse: ok */
inline Refuse() {
	d_step {
		ok = (at[me] != 0);
		if
		:: ok ->
			CHECK(refused_in_cycle, stood[me]);
#ifndef LIMIT
			onCycle(); CHECK(one_refusal, i); i = 0;
#endif
			remove(me)
		:: else
		fi;
		stood[me] = 0
	}
}

/* watcher.Begin, and the wait: has */
inline Lock(l) {
	atomic { begin == 0 -> begin = 1 }
#ifdef MUTANT_SEARCH_WITHOUT_JOINING
	ok = (holder[l] != 0);
#else
	Enqueue(l);
#endif
#ifdef MUTANT_MUTEX_GIVEN_BACK_EARLY
	begin = 0;
#endif
	refused = 0;
	if
	:: ok ->
		closesCycle(l);
		if
		:: closes -> Refuse(); refused = ok
		:: else
		fi
	:: else
	fi;
	begin = 0;
#ifdef MUTANT_SEARCH_WITHOUT_JOINING
	if :: !refused -> Enqueue(l) :: else fi;
#endif
	if
	:: refused -> has = 0
	:: else ->
		if
		:: at[me] == 0
#ifdef LIMIT
		:: d_step { at[me] -> remove(me) }
#endif
		fi;
		has = (holder[l] == me + 1)
	fi;
	awaited[me] = 0;
	d_step { ok = 0; refused = 0; closes = 0; CHECK(cancelled_is_out, at[me] == 0) }
}

inline Unlock(l) {
	d_step {
		CHECK(mutual_exclusion, holder[l] == me + 1);
		if
		:: length[l] -> holder[l] = q[l * N] + 1; g = q[l * N]; remove(g); g = 0
		:: else -> holder[l] = 0
		fi
	}
}

proctype goroutine(byte me) {
	byte a, b, h, g, k, n, seen, seenID, round;
	byte who[N], for_[N], wait[N];
	bit ok, closes, refused, has, every, joined, found;
	do
	:: round < ROUNDS ->
		round++;
		if                              /* two neighbours in a circle of locks */
		:: a = me % L; b = (me + 1) % L
		:: b = me % L; a = (me + 1) % L
		fi;
		Lock(a);
		if
		:: has ->
			Lock(b);
			if :: has -> Unlock(b) :: else fi;
			Unlock(a)
		:: else
		fi;
		d_step { a = 0; b = 0; has = 0 }
	:: else -> break
	od;
	ended++
}

active proctype monitor() {
	timeout ->
	CHECK(no_deadlock, ended == N && begin == 0);
	i = 0;
	do :: i < L -> CHECK(lock_is_free_at_last, holder[i] == 0 && length[i] == 0); i++ :: else -> break od
}

init {
	atomic {
		byte g = 0;
		do :: g < N -> run goroutine(g); g++ :: else -> break od
	}
}
