/* Explicit owners, whose goroutines share their holds: package shares. */
#define OWNERS
#define own(n) ((n) / 2)        /* goroutines 0 and 1 act for owner 0, goroutine 2 for owner 1 */
#include "sync.pml"
#ifdef COND
#include "cond.pml"
#endif

bit mu;                         /* Shares.mu */
byte write[2], read[2];         /* share.write, share.read */
bit inside[2];                  /* share.inside */
bit waits[N];                   /* share.waits: the goroutine has an attempt */
bit counted[N];                 /* attempt.counted */
byte holds[N];                  /* attempt.holds.n */
byte by[N];                     /* share.by: exclusive holds by the goroutine that acquired them */
bit stays[N];                   /* ghost: the goroutine keeps its hold for ever */
hidden byte owner_shares_hold;
#define me_owner own(me)
#define HeldBy(o) (exclusive(Word) && Word/one == (o)+1)

inline lockMu() { atomic { mu == 0 -> mu = 1 } }

/* Shares.claim, with mu held */
inline claim() {
	if
	:: write[me_owner] > 0 || !HeldBy(me_owner)
	:: else ->
		g = 0;
		do
		:: g < N ->
			d_step {
				guard == 0;                     /* Waiter.Granted */
				if
				:: own(g) == me_owner && waits[g] && !isShared[g] && !counted[g] && state[g] == granted ->
#ifndef MUTANT_CLAIM_COUNTS_TWICE
					counted[g] = 1;
#endif
					write[me_owner] = write[me_owner] + holds[g]; by[g] = by[g] + holds[g]
				:: else
				fi;
				g++
			}
		:: else -> break
		od;
		g = 0
	fi
}

/* Sync.dismiss of goroutine g's attempt: ok */
inline dismiss(g) {
	atomic { guard == 0; CHOOSE; d_step {
#ifdef MUTANT_DISMISS_FROM_CONDITION
		ok = (state[g] <= awake);
#else
		ok = (state[g] <= awake && in[g] != INCOND);
#endif
		if
		:: ok ->
			if
			:: in[g] == INLOCK ->
				k = (q[0] == g);
				remove(g);
				if
#ifdef MUTANT_DISMISS_NO_ADVANCE
				:: k -> k = 0
#else
				:: k -> OVERDUE; advance(KEEP)
#endif
				:: else
				fi;
				if :: state[g] == waiting -> wk = wk | (1 << g); pend[g]++ :: else fi
			:: else
			fi;
			state[g] = dismissed
		:: else
		fi;
		late = 0; k = 0; i = 0
	} }
	unpark()
}

/* Shares.admit, with mu held */
inline admitOwners() {
	g = 0;
	do
	:: g < N ->
		if
		:: own(g) == me_owner && waits[g] && (write[me_owner] > 0 || read[me_owner] > 0 && isShared[g]) ->
			dismiss(g);
			atomic {
				if
				:: ok && isShared[g] -> read[me_owner]++
				:: ok && !isShared[g] -> write[me_owner] = write[me_owner] + holds[g]; by[g] = by[g] + holds[g]
				:: else
				fi;
				ok = 0; g++
			}
		:: else -> g++
		fi
	:: else -> break
	od;
	g = 0
}

/* share.reenter: done, and ok if the outcome is Acquired */
inline reenter() {
	d_step {
		if
		:: write[me_owner] == 0 && read[me_owner] == 0 -> done = 0; ok = 0
		:: write[me_owner] == 0 && read[me_owner] > 0 && !isShared[me] -> done = 1; ok = 0     /* Upgrade */
		:: else -> done = 1; ok = 1;
			if :: isShared[me] -> read[me_owner]++ :: else -> write[me_owner]++; by[me]++ fi
		fi
	}
}

/* Shares.try; ok */
inline try() {
	if
	:: isShared[me] && barge -> TryLockShared()
	:: isShared[me] && !barge -> TryLockSharedInTurn()
	:: !isShared[me] -> TryLock()
	fi;
	if
	:: ok ->
		d_step { if :: isShared[me] -> inside[me_owner] = 1; read[me_owner] = 1 :: else -> write[me_owner]++; by[me]++ fi }
		admitOwners();
		ok = 1
	:: else
	fi
}

/* Shares.end and arrive: ok is the outcome of the wait, and then of the acquisition */
inline end_() {
	lockMu();
	waits[me] = 0;
	d_step { must = ok; s = 0 }
	if
	:: state[me] == dismissed -> must = 1
	:: state[me] != dismissed && counted[me] -> admitOwners(); must = 1
	:: state[me] != dismissed && !counted[me] && must ->
		if
		:: isShared[me] && inside[me_owner] ->
#ifndef MUTANT_ARRIVE_KEEPS_SECOND_HOLD
			Unlock();
#endif
			read[me_owner]++
		:: else ->
			d_step {
				if
				:: isShared[me] -> inside[me_owner] = 1; read[me_owner]++
				:: else -> write[me_owner] = write[me_owner] + holds[me]; by[me] = by[me] + holds[me]
				fi
			}
#ifndef MUTANT_ARRIVE_ADMITS_NOBODY
			admitOwners()
#endif
		fi
	:: else
	fi;
	atomic { ok = must; must = 0; s = isShared[me]; counted[me] = 0; holds[me] = 0; mu = 0 }
	recycle();
	d_step { isShared[me] = s; s = 0 }
}

/* Shares.lock and tryLock; ok */
inline lock() {
	lockMu();
	claim();                                                /* get */
	reenter();
	if :: done :: else -> try() fi;
	if
	:: done || ok || barge -> mu = 0
	:: else ->
		d_step { waits[me] = 1; if :: isShared[me] :: else -> holds[me] = 1 fi; mu = 0 }     /* begin */
		wait();
		end_()
	fi;
	done = 0
}

/* Shares.releaseWrite, with mu held; after take */
inline releaseWrite() {
	if
#ifdef MUTANT_PARTIAL_RELEASE_FREES
	:: write[me_owner] > 0 && read[me_owner] == 0 -> Unlock()
#endif
	:: write[me_owner] > 0
	:: write[me_owner] == 0 && read[me_owner] > 0 ->
		inside[me_owner] = 1;
#ifdef MUTANT_DOWNGRADE_ADMITS_NOBODY
		atomic { guard == 0; d_step { Word = one | flagShared | (Word & queueFlags) } }
#else
		guarded(DOWNGRADE)
#endif
	:: write[me_owner] == 0 && read[me_owner] == 0 -> Unlock(); CHECK(unlock_succeeds, ok)
	fi
}

inline take() {
	if
	:: by[me] > 0 -> by[me]--
	:: else -> i = 0; do :: !(own(i) == me_owner && by[i] > 0) -> i++ :: else -> break od; by[i]--; i = 0
	fi;
	write[me_owner]--
}

#ifdef COND
/* Shares.Wait; ok is 0 if it is refused */
inline Wait() {
	lockMu();
	claim();
	d_step {
		ok = (read[me_owner] == 0);
		i = 0; k = 0;
		do :: i < N -> if :: own(i) == me_owner && by[i] > 0 && i != me -> k = 1 :: else fi; i++ :: else -> break od;
#ifndef MUTANT_WAIT_GIVES_UP_OTHERS_HOLDS
		if :: write[me_owner] > 1 && k -> ok = 0 :: else fi;
#endif
		i = 0; k = 0
	}
	if
	:: !ok -> mu = 0
	:: else ->
		d_step {
			excl--;
			waits[me] = 1; holds[me] = write[me_owner]; write[me_owner] = 0;
			do :: i < N -> if :: own(i) == me_owner -> by[i] = 0 :: else fi; i++ :: else -> break od; i = 0
		}
		join(DROP);
		mu = 0;
		if :: limited = 0 :: limited = 1 fi;
		awaitSignal();
		limited = 0;
#ifndef MUTANT_WAIT_ADMITS_NOT
		if
		:: inQueue && !sig -> lockMu(); admitOwners(); mu = 0
		:: else
		fi;
#endif
		if :: inQueue -> await() :: else fi;
		atomic { inQueue = 0; ok = 1 }
		end_();
		d_step {
			CHECK(returns_holding, ok && HeldBy(me_owner));
			excl++;
			if :: sig -> CHECK(signals_arrive, signals > 0); signals-- :: else fi;
			sig = 0
		}
	fi
}

inline SignalOwners() {
	lockMu();
	if :: all = 0 :: all = 1 fi;
	Signal(all); all = 0;
	claim();
	admitOwners();
	mu = 0
}
#endif

/* ghosts: excl and shrd count goroutines here; who holds is in the word */
inline enter() {
	d_step {
		if :: isShared[me] -> shrd++ :: else -> excl++ fi;
		CHECK(mutual_exclusion, isShared[me] || HeldBy(me_owner));
		CHECK(mutual_exclusion, !isShared[me] || HeldBy(me_owner) || !exclusive(Word) && !free(Word))
	}
}
inline leave() {
	d_step {
		CHECK(mutual_exclusion, isShared[me] || HeldBy(me_owner));
		CHECK(mutual_exclusion, !isShared[me] || HeldBy(me_owner) || !exclusive(Word) && !free(Word));
		if :: isShared[me] -> shrd-- :: else -> excl-- fi
	}
}

proctype goroutine(byte me) {
	byte s, wk, g;
	short w;
#ifdef COND
	byte n, moved, most;
	bit sig, all;
#endif
	bit ok, late, limited, inQueue, taken, must, done, barge;
#ifdef ONCE
	bit again = 1;
#endif
	do
#ifdef ONCE
	:: again -> again = 0;
#else
	:: true ->
#endif
#ifdef SHARE
		if :: isShared[me] = 0 :: isShared[me] = 1 fi;
#endif
#ifdef LIMIT
		if :: limited = 0 :: limited = 1 fi;
#endif
		if :: barge = 0 :: barge = 1 fi;
		lock();
		atomic { limited = 0; barge = 0 }
		if :: ok -> ok = 0 :: else -> goto next fi;
		enter();
#ifdef COND
		if
		:: isShared[me]
		:: !isShared[me] -> SignalOwners()
		:: !isShared[me] -> Wait()
		fi;
#endif
		if
		:: true
#ifdef STAYS
		:: stays[me] = 1; goto over
#endif
#ifdef SHARE
		:: isShared[me] ->                              /* Upgrade */
			lockMu();
			claim();
			if
			:: write[me_owner] > 0 -> ok = 1
			:: else ->                              /* Sync.UpgradeOnly */
				atomic { guard == 0; CHOOSE; d_step { guard = 1; advance(REVOKE); late = 0 } }
				d_step {
					ok = (Word/one == 1 && !exclusive(Word));
					if :: ok -> Word = value(me) | (Word & queueFlags) :: else fi;
					guard = 0
				}
				must = ok; unpark(); ok = must; must = 0
			fi;
			if
			:: ok ->
				d_step { inside[me_owner] = 0; read[me_owner]--; write[me_owner]++; by[me]++; shrd--; excl++; isShared[me] = 0 }
				admitOwners(); ok = 0
			:: else
			fi;
			mu = 0
		:: !isShared[me] ->                             /* Downgrade */
			lockMu();
			claim();
			d_step { take(); read[me_owner]++; excl--; shrd++; isShared[me] = 1 }
			releaseWrite();
			mu = 0
#endif
		fi;
		leave();
		lockMu();
		claim();
		if
		:: isShared[me] ->                              /* UnlockShared */
			CHECK(unlock_succeeds, read[me_owner] > 0);
			d_step { read[me_owner]--; s = (read[me_owner] == 0 && inside[me_owner]); if :: s -> inside[me_owner] = 0 :: else fi; isShared[me] = 0 }
			if :: s -> Unlock(); CHECK(unlock_succeeds, ok) :: else fi
		:: else ->                                      /* Unlock */
			CHECK(unlock_succeeds, write[me_owner] > 0);
			d_step { take() }
			releaseWrite()
		fi;
		mu = 0;
next:		atomic { ok = 0; s = 0; isShared[me] = 0 }
	:: true -> break
	od;
over:	ended++
}

active proctype monitor() {
	timeout ->
	CHECK(no_lost_wakeup, mu == 0 && guard == 0);
#ifdef STAYS
	/* The goroutines of an owner that holds the lock have come in with it. */
	i = 0;
	do
	:: i < N ->
		CHECK(owner_shares_hold, !(waits[i] && in[i] != INCOND && write[own(i)] > 0));
		CHECK(owner_shares_hold, !(waits[i] && in[i] != INCOND && isShared[i] && read[own(i)] > 0));
		i++
	:: else -> break
	od;
	CHECK(no_lost_wakeup, ql == 0 || !free(Word));
	CHECK(lock_is_free_at_last, free(Word) == (excl + shrd == 0))
#else
#ifdef COND
	CHECK(no_lost_wakeup, ended + cl == N);
	CHECK(signals_arrive, signals == 0);
#else
	CHECK(no_lost_wakeup, ended == N);
#endif
	CHECK(lock_is_free_at_last, Word == 0 && ql == 0);
	CHECK(lock_is_free_at_last, write[0] + write[1] + read[0] + read[1] + inside[0] + inside[1] == 0)
#endif
}

init {
	atomic {
		byte g = 0;
		do :: g < N -> run goroutine(g); g++ :: else -> break od
	}
}
