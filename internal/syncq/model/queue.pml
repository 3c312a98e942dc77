/* Exclusive and shared holds, limits, refusal, conditions: sync.go, wait.go, cond.go. */
#include "sync.pml"

#ifdef COND
#include "cond.pml"

/* Cond.Wait, enqueue, awaitSignal */
inline Wait() {
#ifdef ANONYMOUS
	atomic { hold > 0 -> hold-- }
#else
	d_step { excl = 0 }
#endif
	join(DROP);
	if :: limited = 0 :: limited = 1 fi;
	awaitSignal();
	limited = 0;
	if :: inQueue -> await() :: else fi;
	inQueue = 0; ok = 1;
	recycle();
	d_step {
#ifndef ANONYMOUS
		CHECK(returns_holding, exclusive(Word) && Word/one == me + 1);
		excl++; CHECK(mutual_exclusion, excl == 1 && shrd == 0);
#endif
		if :: sig -> CHECK(signals_arrive, signals > 0); signals-- :: else fi;
		sig = 0
	}
}
#endif

/* ghosts: me holds the lock, and knows */
inline enter() {
	d_step {
#ifndef ANONYMOUS
		if :: isShared[me] -> shrd++ :: else -> excl++ fi;
		CHECK(mutual_exclusion, excl + (shrd > 0) <= 1);
		CHECK(mutual_exclusion, excl == 0 || (exclusive(Word) && Word/one == me + 1));
		CHECK(mutual_exclusion, shrd == 0 || (Word & flagShared));
#endif
		skip
	}
}

proctype goroutine(byte me) {
	byte s, wk;
#ifdef COND
	byte n, moved, most;
	bit sig, all;
#endif
	short w;
#ifdef MUTANT_GRANT_OUTSIDE_GUARD
	byte who;
#endif
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
#ifdef SHARE
		if :: isShared[me] = 0 :: isShared[me] = 1 fi;
#endif
		if
#ifdef SHARE
		:: isShared[me] -> TryLockShared(); if :: ok :: else -> goto next fi
		:: isShared[me] -> TryLockSharedInTurn(); if :: ok :: !ok -> goto slow :: !ok fi;
			if :: ok :: else -> goto next fi
#endif
		:: !isShared[me] -> TryLock();                  /* TryLock, spin */
			if
#ifdef FIFO
			:: ok
#else
			:: ok -> Barged()
#endif
			:: !ok -> goto next
			:: !ok ->
slow:
#ifdef LIMIT
				if :: limited = 0 :: limited = 1 fi;
#endif
#ifndef FIFO
				sendable[me] = isShared[me];
#endif
				wait();
				limited = 0;
				s = isShared[me];
				recycle();
				if :: ok -> isShared[me] = s; s = 0 :: else -> s = 0; goto next fi
			fi
		fi;
		enter();
#ifdef COND
		if
		:: true
		:: if :: all = 0 :: all = 1 fi; Signal(all); all = 0
		:: !isShared[me] -> Wait()
		fi;
#endif
#ifdef ANONYMOUS
		goto next;
#else
		d_step { if :: isShared[me] -> shrd-- :: else -> excl-- fi }
#ifdef RWMUTEX
		UnlockRW();
		isShared[me] = 0;
#else
		isShared[me] = 0;
		Unlock();
#endif
		CHECK(unlock_succeeds, ok);
#endif
next:		atomic { ok = 0; s = 0; isShared[me] = 0 }
#ifdef ANONYMOUS
		if
		:: true
		:: atomic { hold > 0 -> hold-- }                /* any goroutine may unlock */
			Unlock();
			CHECK(unlock_succeeds, ok);
			ok = 0
#ifdef COND
		:: true ->                                      /* and signal, even if the lock is free */
			if :: all = 0 :: all = 1 fi;
			Signal(all); all = 0
#endif
		fi
#endif
	:: true -> break
	od;
	ended++
}

/* When no goroutine can take a step, each of them is through or waits for a signal. */
active proctype monitor() {
	timeout ->
#ifdef ANONYMOUS
	CHECK(no_lost_wakeup, ql == 0 || !free(Word));
	byte n = 0;
	do
	:: n < N -> CHECK(no_lost_wakeup, state[n] == waiting && pend[n] == 0); n++
	:: else -> break
	od;
	CHECK(lock_is_free_at_last, hold == (free(Word) -> 0 : 1))
#else
#ifdef COND
	CHECK(no_lost_wakeup, ended + cl == N);
	CHECK(signals_arrive, signals == 0);
#else
	CHECK(no_lost_wakeup, ended == N);
#endif
	CHECK(lock_is_free_at_last, Word == 0 && ql == 0 && guard == 0)
#endif
}

init {
	atomic {
		byte g = 0;
		do :: g < N -> run goroutine(g); g++ :: else -> break od
	}
}
