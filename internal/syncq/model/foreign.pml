/* Conditions over a lock of another module: condition/foreign.go, and Enqueue, Await, and Abandon of
 * syncq/waiter.go. The engine's Sync is the gate. It is FIFO and has no owners. */
#define FIFO
#define ANONYMOUS
#define COND
#include "sync.pml"
#include "cond.pml"

byte locked;                    /* g + 1 if goroutine g has the other module's lock, or 0 */

/* ghosts */
bit asleep[N];                  /* released the lock, and has still to see how the wait for a signal ended */
byte returning;                 /* waiters that ask for the lock */

/* the other lock's Lock in wait; has says whether me has the lock */
inline relock() {
	d_step { returning++; CHECK(mutual_exclusion, returning == 1) }
	if
	:: true -> atomic { locked == 0 -> locked = me + 1; has = 1 }
#ifdef PANICS
	:: true                                                 /* it panics: a choice, or nothing would block */
#endif
	fi;
	returning--
}

/* Sync.Unlock of the gate */
inline open() {
	d_step { CHECK(unlock_succeeds, hold == 1); hold-- }
	Unlock();
	CHECK(unlock_succeeds, ok)
}

/* Waiter.Enqueue(false), which is Cond.enqueue */
inline Enqueue() {
	join(KEEP)
}

/* foreign.release, without Abandon: the other lock's Unlock; ok is 0 if that panics */
inline unlockOther() {
	if
	:: atomic { has -> locked = 0; has = 0; ok = 1; asleep[me] = 1 }
#ifdef PANICS
	:: atomic { has -> ok = 0 }                             /* and has the lock still */
	:: atomic { has -> locked = 0; has = 0; ok = 0 }
#endif
	:: !has -> ok = 0
	fi
}

/* Waiter.Abandon */
inline Abandon() {
	atomic { guard == 0; d_step {
		sig = (in[me] != INCOND); taken = (state[me] != waiting); holds = (state[me] == granted);
		if
		:: in[me] == INCOND -> cremove(me); cwaiters = cl
#ifdef MUTANT_ABANDON_AWAITS_GATE
		:: in[me] == INLOCK -> taken = 1; holds = 1
#else
		:: in[me] == INLOCK -> cancel(me)
#endif
		:: else
		fi;
		late = 0
	} }
	unpark();
#ifndef MUTANT_ABANDON_LEAVES_PERMIT
	if :: taken -> atomic { permit[me] -> permit[me] = 0 } :: else fi;
#endif
	taken = 0;
#ifndef MUTANT_ABANDON_KEEPS_SIGNAL
	if :: sig && cwaiters > 0 -> transfer(1, 0); moved = 0 :: else fi;
	if :: sig -> signals-- :: else fi;
#endif
	sig = 0;
#ifndef MUTANT_ABANDON_KEEPS_GATE
	if :: holds -> open() :: else fi;
#endif
	ok = holds;
	recycle();
	d_step { holds = 0; ok = 0 }
}

/* foreign.wait, with Waiter.Await */
inline Wait() {
#ifdef MUTANT_RELEASE_FIRST
	unlockOther();
	if :: ok -> Enqueue(); ok = 1 :: else fi;
#else
	Enqueue();
	unlockOther();
#endif
	if
	:: !ok ->
#ifndef MUTANT_RELEASE_FIRST
		Abandon()
#endif
	:: else ->
		ok = 0;
		if :: limited = 0 :: limited = 1 fi;
		awaitSignal();
		limited = 0;
		if :: inQueue -> await() :: else fi;
		inQueue = 0;
		d_step { asleep[me] = 0; ok = 1; CHECK(returns_holding, Word/one == 1 && hold == 1) }
		recycle();                                      /* End */
#ifdef MUTANT_GATE_OPENS_FIRST
		open();
		relock();
#else
		relock();
		open();
#endif
		d_step {
			CHECK(returns_holding, !has || locked == me + 1);
			if :: sig -> CHECK(signals_arrive, signals > 0); signals-- :: else fi;
			sig = 0; ok = 0
		}
	fi
}

proctype goroutine(byte me) {
	byte s, wk, n, moved, most;
	short w;
	bit ok, late, limited, inQueue, taken, sig, all, has, holds;
#ifdef ONCE
	bit done;
#endif
	do
#ifdef ONCE
	:: !done -> done = 1;
#else
	:: true ->
#endif
		if
		:: atomic { locked == 0 -> locked = me + 1; has = 1 }
#ifdef STRANGER
		:: true                                         /* no check finds out that me has not the lock */
#endif
		fi;
		if
		:: if :: all = 0 :: all = 1 fi; Signal(all); all = 0
		:: Wait()
		:: has
		fi;
		if :: has -> d_step { CHECK(unlock_succeeds, locked == me + 1); locked = 0; has = 0 } :: else fi
	:: true -> break
	od;
	ended++
}

/* From the release of the lock on, a waiter can be signalled, or was, or has the gate. */
#define DEAF(g) (asleep[g] && in[g] == 0 && state[g] != granted)
active proctype signallable() {
end:	do
	:: atomic { guard == 0 && (DEAF(0) || DEAF(1)
#if N > 2
		|| DEAF(2)
#endif
		) -> signals_arrive = 0; assert(signals_arrive) }
	od
}

/* When no goroutine can take a step, each of them is through or waits for a signal. */
active proctype monitor() {
	timeout ->
	CHECK(no_lost_wakeup, ended + cl == N);
	CHECK(signals_arrive, signals == 0);
	CHECK(lock_is_free_at_last, Word == 0 && ql == 0 && guard == 0 && hold == 0 && locked == 0)
}

init {
	atomic {
		byte g = 0;
		do :: g < N -> run goroutine(g); g++ :: else -> break od
	}
}
