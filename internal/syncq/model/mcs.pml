/* spin.MCS: mcs.go. */
#ifndef N
#define N 3
#endif
#define NODES (N + 1)           /* in use: one for each waiter, and the holder's */
#define NIL  0
#define BARE (NODES + 1)        /* MCS.first is next[BARE] */

/* mcsNode.state */
#define spinning 0
#define parked   1
#define granted  2
#define taken    3
#define released 4

byte tail, holder;
bit guard;
byte state[NODES + 2], next[NODES + 2], prev[NODES + 2];
bit permit[NODES + 2];

/* ghosts */
bit used[NODES + 2];
byte pend[NODES + 2];
byte arrived[NODES], waiters;   /* the nodes of the waiters in the order in which they came */
byte held, hold, excl, ended;   /* hold: holds that no goroutine has begun to give back */
hidden byte mutual_exclusion, fifo_order, no_lost_wakeup, one_unpark_per_park, node_is_in_queue,
	node_is_unused, unlock_succeeds, lock_is_free_at_last;
#define CHECK(property, expression) property = (expression); assert(property)
hidden byte i;

inline arrive(x) { arrived[waiters] = x; waiters++ }
inline depart(x) {
	i = 0;
	do :: i < waiters && arrived[i] != x -> i++ :: else -> break od;
	CHECK(node_is_in_queue, i < waiters);
	do :: i + 1 < waiters -> arrived[i] = arrived[i+1]; i++ :: else -> break od;
	waiters--; arrived[waiters] = 0; i = 0
}

inline acquired() { held++; CHECK(mutual_exclusion, held == 1); hold++ }

inline newMCSNode() {
	d_step {
		n = 1;
		do :: used[n] -> n++ :: else -> break od;
		assert(n <= NODES);
		used[n] = 1
	}
}

inline recycle(x) {
	d_step {
		CHECK(one_unpark_per_park, permit[x] == 0 && pend[x] == 0);
		CHECK(node_is_unused, used[x] && next[x] == NIL && tail != x && holder != x);
		state[x] = spinning; prev[x] = NIL; used[x] = 0
	}
}

/* MCS.TryLock, and the fast path of Lock; ok */
inline TryLock() {
	d_step {
		ok = (tail == NIL);
		if :: ok -> tail = BARE; CHECK(fifo_order, waiters == 0); acquired() :: else fi
	}
}

/* MCS.enqueue: ok is its result */
inline enqueue() {
	d_step {
		if
		:: tail == NIL -> tail = BARE; acquired(); ok = 0
		:: else -> prev[n] = tail; p = tail; tail = n; arrive(n); ok = 1
		fi
	}
	if
	:: ok -> atomic { CHECK(node_is_in_queue, p == BARE || used[p]); next[p] = n; p = 0 }
	:: else
	fi
}

/* MCS.behind; the guard is held. b is its result. */
inline behind(x) {
	b = NIL;
	do
	:: next[x] != NIL -> b = next[x]; break
	:: else ->
#ifdef MUTANT_UNLOCK_DOES_NOT_WAIT_FOR_NEXT
		break
#else
		if :: tail == x || tail == NIL -> break :: else -> (next[x] != NIL || tail == x || tail == NIL) fi
#endif
	od
}

/* MCS.remove; the guard is held. before is where the node ahead keeps its next. */
inline removeNode() {
	do
	:: behind(n);
		if
		:: b != NIL ->
			prev[b] = prev[n];
			next[n] = NIL;
			next[prev[n]] = b;
			break
		:: else ->
#ifdef MUTANT_REMOVE_CLEARS_LATE
			d_step { ok = (tail == n); if :: ok -> tail = prev[n] :: else fi }
			if :: ok -> next[prev[n]] = NIL; break :: else fi
#else
			next[prev[n]] = NIL;
			d_step { ok = (tail == n); if :: ok -> tail = prev[n] :: else fi }
			if :: ok -> break :: else fi
#endif
		fi
	od;
	b = NIL
}

/* mcsNode.retire */
inline retire() {
	if
	:: h != BARE ->
		d_step { was = state[h]; state[h] = released }
#ifdef MUTANT_RETIRE_RECYCLES_GRANTED
		if :: was == taken || was == granted -> recycle(h) :: else fi
#else
		if :: was == taken -> recycle(h) :: else fi
#endif
	:: else
	fi;
	atomic { h = 0; was = 0 }
}

/* MCS.Unlock and release; ok */
inline Unlock() {
	d_step { ok = (tail == BARE); if :: ok -> tail = NIL; held-- :: else fi }
	if
	:: ok
	:: else ->
		atomic { guard == 0 -> guard = 1; h = (holder == NIL -> BARE : holder) }
		do
		:: behind(h);
			if
			:: b == NIL ->
#ifdef MUTANT_UNLOCK_DOES_NOT_WAIT_FOR_NEXT
				d_step { ok = 1; tail = NIL; held--; holder = NIL; guard = 0 }
#else
				d_step { ok = (tail == h); if :: ok -> tail = NIL; held--; holder = NIL; guard = 0 :: else fi }
#endif
				if
				:: ok -> break
				:: else -> if :: tail == NIL -> guard = 0; h = BARE; break :: else fi
				fi
			:: else ->
				next[h] = NIL;
				d_step {
					holder = b; was = state[b]; state[b] = granted; ok = 1;
					held--; acquired();
					CHECK(fifo_order, arrived[0] == b); depart(b);
					if :: was == parked -> pend[b]++ :: else fi;
					guard = 0
				}
				if
				:: was == parked -> d_step { CHECK(one_unpark_per_park, permit[b] == 0); permit[b] = 1; pend[b]-- }
				:: else
				fi;
				break
			fi
		od;
		atomic { b = NIL; was = 0 }
		retire()
	fi
}

/* MCS.wait, and waitLimited if LIMIT; ok is 0 if the limit ended */
inline wait() {
	newMCSNode();
	enqueue();
	if
	:: !ok -> recycle(n); ok = 1
	:: else ->
#ifdef MUTANT_PARK_STORES
		if
		:: state[n] == spinning -> state[n] = parked; ok = 1
		:: else -> ok = 0
		fi;
#else
		d_step { ok = (state[n] == spinning); if :: ok -> state[n] = parked :: else fi }
#endif
#ifdef LIMIT
		if :: lim = 0 :: lim = 1 fi;                    /* the limit never ends, or may end at any time */
#endif
		if
		:: !ok
		:: ok ->
			if
			:: atomic { permit[n] -> permit[n] = 0 }
#ifdef LIMIT
			:: atomic { lim && guard == 0 -> guard = 1 }    /* giveUp */
#ifdef MUTANT_GIVEUP_STORES
				d_step { ok = 1; state[n] = spinning; depart(n) }
#else
				d_step { ok = (state[n] == parked); if :: ok -> state[n] = spinning; depart(n) :: else fi }
#endif
				if
				:: ok -> removeNode(); guard = 0; limited = 1
				:: else -> guard = 0; atomic { permit[n] -> permit[n] = 0 }
				fi
#endif
			fi
		fi;
		if
		:: limited -> recycle(n); ok = 0
		:: else ->
			d_step { ok = (state[n] == granted); if :: ok -> state[n] = taken :: else fi }
			if :: ok :: else -> recycle(n); ok = 1 fi
		fi
	fi;
	atomic { n = 0; limited = 0; lim = 0 }
}

proctype goroutine(byte me) {
	byte n, p, b, h, was;
	bit ok, limited, lim;
#ifdef ONCE
	bit done;
#endif
	do
#ifdef ONCE
	:: !done -> done = 1;
#else
	:: true ->
#endif
		TryLock();
		if
		:: true
		:: !ok -> wait()
		fi;
#ifdef ANYBODY
		/* Any goroutine may unlock, also for a waiter that does not know yet that it has the lock. */
		if
		:: atomic { hold > 0 -> hold-- } Unlock(); CHECK(unlock_succeeds, ok)
		:: true
		fi;
#else
		if
		:: ok ->
			d_step { excl++; CHECK(mutual_exclusion, excl == 1) }
			d_step { excl--; hold-- }
			Unlock(); CHECK(unlock_succeeds, ok)
		:: else
		fi;
#endif
		ok = 0
	:: true -> break
	od;
	ended++
}

active proctype monitor() {
	timeout ->
#ifdef ANYBODY
	CHECK(no_lost_wakeup, guard == 0 && (ended == N || hold > 0 && held == 1));
#else
	CHECK(no_lost_wakeup, ended == N && hold == 0);
#endif
	CHECK(lock_is_free_at_last, hold > 0 || tail == NIL && holder == NIL && waiters == 0 && next[BARE] == NIL);
	i = 1;
	do :: i <= NODES -> CHECK(node_is_unused, !used[i] || hold > 0); i++ :: else -> break od
}

init {
	atomic {
		byte g = 0;
		do :: g < N -> run goroutine(g); g++ :: else -> break od
	}
}
