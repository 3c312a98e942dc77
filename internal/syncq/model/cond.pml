/* Conditions: cond.go. */

inline cremove(n) {
	i = 0;
	do :: i < cl && cq[i] != n -> i++ :: else -> break od;
	assert(i < cl);
	do :: i + 1 < cl -> cq[i] = cq[i+1]; i++ :: else -> break od;
	cl--; cq[cl] = 0; in[n] = 0; i = 0
}

/* Cond.enqueue: the guard is taken, and n is cwaiters before the word changes */
inline join(step) {
	atomic { guard == 0; d_step {
		guard = 1;
		cq[cl] = me; cl++; in[me] = INCOND;
#ifndef MUTANT_WAITER_COUNTED_LATE
		cwaiters = cl
#endif
	} }
	atomic { CHOOSE; d_step { advance(step); late = 0
#ifndef MUTANT_WAITER_COUNTED_LATE
		; guard = 0
#endif
	} }
#ifdef MUTANT_WAITER_COUNTED_LATE
	d_step { cwaiters = cl; guard = 0 }
#endif
	unpark()
}

/* Cond.transfer: the first most waiters; moved says how many there were. Cond.Signal is that for one
   waiter. A node that becomes the first of the lock's queue has Sync.push call advance. Only a lock
   without owners can be unlocked meanwhile. */
#ifdef ANONYMOUS
inline transfer(most, isDue) {
	atomic { guard == 0 -> guard = 1; moved = 0 };
	do
	:: atomic { cl > 0 && moved < most -> CHOOSE; d_step {
			k = cq[0]; cremove(k); signals++;
			due[k] = isDue;
#ifdef MUTANT_TRANSFER_KEEPS_LAST_WAKE
			drained = wk; wk = 0;
#endif
			push(k);
			if :: ql == 1 -> advance(KEEP) :: else fi;
#ifdef MUTANT_TRANSFER_KEEPS_LAST_WAKE
			if :: wk == 0 -> wk = drained :: else fi;
			drained = 0;
#endif
			moved++; k = 0; late = 0
		} }
	:: else -> break
	od;
	atomic { cwaiters = cl; guard = 0 }
	unpark()
}
#else
inline transfer(most, isDue) {
	atomic { guard == 0; CHOOSE; d_step {
		moved = 0;
		do
		:: cl > 0 && moved < most ->
			k = cq[0]; cremove(k); signals++;
			due[k] = isDue;
#ifdef MUTANT_SIGNAL_WITHOUT_TRANSFER
			state[k] = granted; wk = wk | (1 << k); pend[k]++;
#else
			push(k);
#ifndef MUTANT_TRANSFER_NO_ADVANCE
			if :: ql == 1 -> advance(KEEP) :: else fi;
#endif
#endif
			moved++
		:: else -> break
		od;
		cwaiters = cl;
		k = 0; late = 0
	} }
	unpark()
}
#endif

/* Cond.Signal, or Cond.Broadcast in parts of any size. The holder of the lock counts each waiter. */
inline Signal(all) {
	d_step {
		n = cwaiters;
#ifndef ANONYMOUS
		CHECK(signals_arrive, n == cl);
#endif
		if :: !all && n > 1 -> n = 1 :: else fi
	}
	s = (n > 1);
	do
	:: n == 0 -> break
	:: n > 0 ->
		if :: most = 1 :: n > 1 -> most = n fi;
		transfer(most, s);
		atomic { if :: moved == 0 -> n = 0 :: else -> n = n - moved fi; moved = 0; most = 0 }
	od;
	s = 0
}

/* Cond.awaitSignal; sig and inQueue are its results */
inline awaitSignal() {
	if
	:: atomic { permit[me] -> permit[me] = 0 }
		sig = 1;
		compete();
		inQueue = !ok
#ifdef MUTANT_LIMIT_DECIDES_EARLY
	:: limited ->                                           /* looks for the signal without the guard */
		atomic { sig = (in[me] != INCOND) };
		atomic { guard == 0 -> guard = 1 }
		if
		:: sig -> d_step { inQueue = 1; guard = 0 }
		:: else -> d_step { if :: in[me] == INCOND -> cremove(me); cwaiters = cl :: else fi } tryEnqueue()
		fi
#else
	:: atomic { limited && guard == 0 -> guard = 1 }
		d_step {
			sig = (in[me] != INCOND);
			if
			:: sig -> inQueue = 1; guard = 0
			:: else ->
				cremove(me);
#ifndef MUTANT_LEAVER_STAYS_COUNTED
				cwaiters = cl
#endif
			fi
		}
		if :: !sig -> tryEnqueue() :: else fi
#endif
	fi;
}
