/* spin.Ticket: ticket.go, ticketqueue.go. */
#ifndef N
#define N 3
#endif
#ifndef TICKETS
#define TICKETS 6               /* tickets of a run */
#endif
#define NONE 0
#define VOID 255

byte next;
byte serving; bit sleepers;     /* one word in the code */
bit guard;
byte queue[TICKETS + 1];        /* what the queue says of a ticket: NONE, VOID, or the waiter + 1 */
byte waiters, voids;
bit permit[N];

/* ghosts */
byte pend[N], hold, excl, ended;
hidden byte mutual_exclusion, word_mirrors_queue, no_lost_wakeup, one_unpark_per_park,
	few_voids, ticket_is_served_once, unlock_succeeds, lock_is_free_at_last;
#define CHECK(property, expression) property = (expression); assert(property)
hidden byte i, to;

/* Lock: next.Add */
inline take() {
	d_step {
		t = next; next++;
		if :: t == serving -> CHECK(mutual_exclusion, hold == 0); hold++ :: else fi
	}
}

/* Ticket.TryLock; ok */
inline TryLock() {
	atomic { t = serving; ok = !sleepers }
	d_step {
		if
		:: ok && next == t -> next++; CHECK(mutual_exclusion, serving == t && hold == 0); hold++
		:: else -> ok = 0; t = 0
		fi
	}
}

/* Ticket.enqueue; inQueue */
inline enqueue() {
#ifdef MUTANT_ENQUEUE_LOOKS_EARLY
	inQueue = (serving < t);
	d_step {
		guard == 0;
		if :: inQueue -> sleepers = 1; queue[t] = me + 1; waiters++ :: else fi
	}
#else
	d_step {
		guard == 0;
		inQueue = (serving < t);
		if :: inQueue -> sleepers = 1; queue[t] = me + 1; waiters++ :: else fi
	}
#endif
}

/* Ticket.cancel; the guard is held */
inline cancel() {
	d_step {
		ok = (next == t + 1);
		if :: ok -> next = t :: else fi
	}
	if
	:: ok ->
		/* the void ones before it, in one node */
		d_step {
			i = t;
			do :: i > 0 && queue[i-1] == VOID -> i-- :: else -> break od;
			if
#ifdef MUTANT_CANCEL_KEEPS_VOIDS
			:: false
#else
			:: i < t && next == t ->
				next = i;
				do :: i < t -> queue[i] = NONE; voids--; i++ :: else -> break od
#endif
			:: else
			fi;
			queue[t] = NONE; waiters--; i = 0
		}
	:: else ->
#ifdef MUTANT_ABANDONED_TICKET_FORGOTTEN
		d_step { queue[t] = NONE; waiters-- }
#else
		d_step { queue[t] = VOID; voids++; waiters-- }
#endif
	fi;
	if
#ifdef MUTANT_CANCEL_KEEPS_SLEEPERS
	:: false
#else
	:: waiters + voids == 0 -> sleepers = 0
#endif
	:: else
	fi
}

/* Ticket.Unlock: the fast path, or release; ok */
inline Unlock() {
	d_step {
		ok = (!sleepers && serving != next);
#ifdef MUTANT_UNLOCK_MISSES_SLEEPERS
		ok = (serving != next);
#endif
		if :: ok -> serving++; if :: serving < next -> hold++ :: else fi :: else fi
	}
	if
	:: ok
	:: else ->
		d_step {
			guard == 0;
			ok = (serving != next);
			if
			:: ok ->
				to = serving + 1;
#ifndef MUTANT_RELEASE_SERVES_VOID
				do :: queue[to] == VOID -> queue[to] = NONE; voids--; to++ :: else -> break od;
#endif
				if
				:: queue[to] != NONE && queue[to] != VOID -> wk = queue[to]; pend[wk - 1]++; queue[to] = NONE; waiters--
				:: else
				fi;
				serving = to; sleepers = (waiters + voids > 0);
				if :: serving < next -> hold++ :: else fi;
				to = 0
			:: else
			fi
		}
		if
		:: wk != 0 -> d_step { CHECK(one_unpark_per_park, permit[wk-1] == 0); permit[wk-1] = 1; pend[wk-1]--; wk = 0 }
		:: else
		fi
	fi
}

/* Ticket.wait, and waitLimited if LIMIT; ok */
inline wait() {
	if
	:: serving >= t -> ok = 1                               /* spin */
	:: true ->
#ifdef LIMIT
		if :: lim = 0 :: lim = 1 fi;                    /* the limit never ends, or may end at any time */
#endif
		enqueue();
		if
		:: !inQueue -> ok = 1
		:: else ->
			if
			:: atomic { permit[me] -> permit[me] = 0; ok = 1 }
#ifdef LIMIT
			:: atomic { lim && guard == 0 -> guard = 1 }    /* giveUp */
				if
#ifndef MUTANT_GIVEUP_UNSEEN
				:: queue[t] != me + 1 -> guard = 0; atomic { permit[me] -> permit[me] = 0; ok = 1 }
#endif
				:: else -> cancel(); guard = 0; ok = 0
				fi
#endif
			fi
		fi;
		atomic { inQueue = 0; lim = 0 }
		d_step { CHECK(one_unpark_per_park, permit[me] == 0 && pend[me] == 0) }
	fi
}

proctype goroutine(byte me) {
	byte t, wk;
	bit ok, inQueue, lim;
	do
	:: next < TICKETS - N ->
		if
		:: TryLock()
		:: take();
			ok = (serving == t && !sleepers);
			if :: ok :: else -> wait() fi
		fi;
#ifdef ANYBODY
		t = 0;
		if
		:: atomic { hold > 0 -> hold-- } Unlock(); CHECK(unlock_succeeds, ok)
		:: true
		fi;
#else
		if
		:: ok ->
			d_step { excl++; CHECK(mutual_exclusion, excl == 1); CHECK(ticket_is_served_once, serving == t); t = 0 }
			d_step { excl--; hold-- }
			Unlock(); CHECK(unlock_succeeds, ok)
		:: else
		fi;
#endif
		atomic { ok = 0; t = 0 }
	:: true -> break
	od;
	ended++
}

/* The table of words, in every state in which the guard is free; and how many tickets may be void. */
active proctype invariants() {
end:	do
	:: atomic { guard == 0 && (sleepers != (waiters + voids > 0) || serving > next) -> word_mirrors_queue = 0; assert(word_mirrors_queue) }
	:: atomic { guard == 0 && next > serving + 1 && queue[next-1] == VOID -> few_voids = 0; assert(few_voids) }
	od
}

active proctype monitor() {
	timeout ->
#ifdef ANYBODY
	CHECK(no_lost_wakeup, guard == 0 && (ended == N || hold == 1));
	CHECK(lock_is_free_at_last, hold == 1 || serving == next && waiters + voids == 0)
#else
	CHECK(no_lost_wakeup, ended == N);
	CHECK(lock_is_free_at_last, hold == 0 && serving == next && waiters + voids == 0)
#endif
}

init {
	atomic {
		byte g = 0;
		do :: g < N -> run goroutine(g); g++ :: else -> break od
	}
}
