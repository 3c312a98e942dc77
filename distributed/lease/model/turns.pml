/* The local queue of one lock of package lease: two owners of one process, which hand the lock over to each other, and
 * Close. Another process wants the lock too. A hold may be lost at any time, and a caller may give up. The store may
 * keep a hold that is lost here, since a renewal had no answer. A request is carried out when it is sent, or after its
 * caller has gone: requests.pml has all that can happen to it. */

#ifndef ROUNDS
#define ROUNDS 2                /* how often an owner acquires the lock */
#endif
#define N 2                     /* owners, counted from 1: 0 is none */
#define OTHER(o) (3 - (o))
#define A (N*ROUNDS)

byte holder;                    /* in the store: an acquisition, or 0 */
#define rival 255

byte turn;                      /* the owner whose turn it is, or 0 */
bit waits[N + 1];               /* an owner waits for its turn */
byte grant;                     /* the store's lock in this process: an acquisition, or 0 */
byte heldBy;                    /* the owner that has it, or 0 */
bit busy;                       /* an owner talks to the store about it, or a request is undone */
bit gone[A + 1];                /* a grant is lost or released */
byte lapsed;                    /* the grant that was lost by time while a renewal had no answer, or 0 */
byte ids;

bit closed, closes;             /* Close has begun, and has returned nil */
byte jobs;                      /* for which Close waits */
byte undone;                    /* the acquisition that is undone, or 0 */
byte swept;                     /* the lost grant that is swept, or 0 */
byte unsettled;                 /* sweeps that may have something to undo, which Close counts */
bit through[N + 1];

/* A property is a variable, so that an error report has its name. */
hidden byte one_owner, one_asks, nothing_is_left, each_owner_is_through, closed_has_nothing, closed_gives_nothing;
hidden byte close_waits_for_all;
#define CHECK(property, expression) property = (expression); assert(property)

/* UnlockContext of the turn: it goes to the waiter. */
inline pass() {
	if
	:: waits[OTHER(me)] -> waits[OTHER(me)] = 0; turn = OTHER(me)
	:: else -> turn = 0
	fi
}

/* The store's answer to a release of a grant. */
inline give(g_) { if :: holder == g_ -> holder = 0 :: else fi }

/* releaser.release. */
inline release(g_) {
	if
	:: d_step { !gone[g_] -> gone[g_] = 1; give(g_) }
#ifndef MUTANT_A_LOST_HOLD_IS_NOT_SWEPT
	:: atomic { gone[g_] && lapsed == g_ && !closed -> unsettled++; jobs++; swept = g_ }
	:: d_step { gone[g_] && lapsed == g_ && closed -> unsettled++ }        /* the caller sweeps */
		d_step { give(g_) };
		unsettled--
#endif
	:: else
	fi
}

inline becomesBusy() {
	CHECK(one_asks, !busy);
	busy = 1
}

inline releaseUnclaimed() {
	if
	:: grant == 0 || turn != 0
	:: atomic { grant != 0 && turn == 0 -> turn = me }
		atomic {
			g = 0;
			if
			:: grant == 0 || heldBy != 0 || busy
			:: else -> g = grant; grant = 0; if :: gone[g] && lapsed != g -> g = 0 :: else -> becomesBusy() fi
			fi
		}
		if
		:: g != 0 -> release(g); busy = 0
		:: else
		fi;
		atomic { g = 0; pass() }
	fi
}

active [N] proctype owner() {
	byte me, id, left, g, round;
	bit job, limited;
	me = _pid + 1;

next:	atomic {
		id = 0; g = 0; left = 0; limited = 0;
		if :: round == ROUNDS || closed -> goto stops :: else fi;
		round++;
		if :: limited = 0 :: limited = 1 fi
	}
	if                                              /* localQueue.enter */
	:: atomic { turn == 0 -> turn = me }
	:: atomic { turn != 0 && turn != me -> waits[me] = 1 }
		if
		:: turn == me
		:: atomic { waits[me] && (limited || closed) -> waits[me] = 0; goto next }
		fi
	fi;

ensure:
	atomic {
		if
		:: grant != 0 && !gone[grant] && !closed ->     /* handed */
			CHECK(one_owner, heldBy == 0); heldBy = me; goto holds
		:: grant != 0 && gone[grant] && !closed && busy -> goto waitsIdle
		:: closed -> goto leaves
#ifndef MUTANT_ENSURE_DOES_NOT_WAIT_UNTIL_IDLE
		:: grant == 0 && !closed && busy -> goto waitsIdle
#endif
		:: else
		fi;
		left = grant;
		grant = 0; becomesBusy(); ids++; id = ids
	}
	if :: left != 0 -> release(left) :: else fi;
	if                                              /* the request */
	:: atomic { holder == 0 -> holder = id }
	:: atomic { limited || closed -> id = 0 }       /* refused meanwhile */
		busy = 0;
		goto leaves
	:: atomic { (limited || closed) && undone == 0 ->       /* it is under way */
		undone = id; jobs++;
#ifdef MUTANT_AN_UNDOING_IS_NO_JOB
		jobs--;
#endif
		id = 0; goto leaves
	}
	fi;
	atomic {
#ifndef MUTANT_A_GRANT_AT_CLOSE_IS_KEPT
		if :: closed -> goto late :: else fi;
#endif
		CHECK(one_owner, heldBy == 0);
		grant = id; heldBy = me; busy = 0
	}
holds:
	atomic { CHECK(closed_gives_nothing, !closes || gone[grant]) }
	atomic {                                        /* unlock */
		heldBy = 0; g = grant;
		if
		:: gone[g] && lapsed != g -> grant = 0; g = 0
		:: gone[g] && lapsed == g -> grant = 0;
#ifndef MUTANT_AN_UNLOCK_OF_A_LOST_HOLD_IS_NOT_BUSY
			becomesBusy()
#endif
		:: !gone[g] && waits[OTHER(me)] -> goto hands
		:: !gone[g] -> grant = 0; becomesBusy(); job = !closed; jobs = jobs + job        /* as decide says */
		fi
	}
	if
	:: g != 0 -> release(g); d_step { busy = 0; jobs = jobs - job; job = 0 }
	:: else
	fi;
	atomic { g = 0; pass() }
	goto next;
hands:
	atomic { g = 0; pass() }
#ifndef MUTANT_AN_UNLOCK_LEAVES_WHAT_NOBODY_TAKES
	releaseUnclaimed();
#endif
	goto next;

waitsIdle:
	if
	:: atomic { !busy -> goto ensure }
	:: atomic { limited || closed }
	fi;
leaves:
	atomic { pass() }
	releaseUnclaimed();
	goto next;
late:
	release(id);
	atomic { busy = 0; goto leaves };
stops:
	through[me] = 1
}

/* acquisition.undo, and the sweep that it begins after the grace: the request may be carried out late. */
active proctype undoing() {
	byte id;
	bit grace;              /* is over: the next request need not wait */
end:	do
	:: undone != 0 ->
		if :: atomic { busy = 0; grace = 1; unsettled++ } :: true fi;
		atomic {
			id = undone;
			if :: holder == 0 -> holder = id :: true fi
		}
		if
		:: atomic { grace && closed && holder != id ->  /* no answer: Close ends the sweep after a release */
#ifdef MUTANT_CLOSE_FORGETS_THE_SWEEP_THAT_IT_ENDS
			unsettled--;
#endif
			undone = 0
		}
#ifndef MUTANT_AN_UNDOING_IS_NO_JOB
			jobs--;
#endif
			if
			:: atomic { holder == 0 -> holder = id; CHECK(closed_gives_nothing, !closes) }
				atomic { holder = 0 }           /* its lease is over */
			:: true
			fi;
			atomic { gone[id] = 1; id = 0; grace = 0 }
		:: true ->
#ifdef MUTANT_THE_ANSWER_SETTLES_BEFORE_ITS_RELEASE
			unsettled = unsettled - grace;
#endif
			d_step { gone[id] = 1; if :: holder == id -> holder = 0 :: else fi; undone = 0; busy = busy && grace }
#ifndef MUTANT_THE_ANSWER_SETTLES_BEFORE_ITS_RELEASE
			unsettled = unsettled - grace;
#endif
			d_step { id = 0; grace = 0 }
#ifndef MUTANT_AN_UNDOING_IS_NO_JOB
			jobs--
#endif
		fi
	od
}

/* releaser.sweep of a lost grant, in the background. */
active proctype sweeping() {
end:	do
	:: d_step { swept != 0 -> give(swept) }
		d_step { swept = 0; unsettled--; jobs-- }
	od
}

/* The store loses a hold, or the client does, or another process has the lock. */
active proctype world() {
	bit had, took;
end:	do
	:: atomic { !had && holder != 0 && holder != rival && holder == grant && !gone[holder] ->
		had = 1; gone[holder] = 1;
		if :: holder = 0 :: lapsed = holder :: lapsed = holder; holder = 0 fi }
	:: !had -> had = 1                              /* it loses none */
	:: d_step { !took && holder == 0 -> took = 1; holder = rival }
	:: d_step { holder == rival -> holder = 0 }
	od
}

active proctype Close() {
	byte g;
	bit wait, cut, sweeps;
	if :: closed = 1 :: goto stays fi;
	d_step {
#ifdef MUTANT_CLOSE_MISSES_WHAT_IS_BUSY
		g = grant
#else
		if :: busy -> wait = 1 :: else -> g = grant fi
#endif
	}
	if :: g != 0 -> d_step {
		if
		:: !gone[g] -> gone[g] = 1; give(g)
#ifndef MUTANT_CLOSE_SWEEPS_NO_LOST_HOLD
		:: gone[g] && lapsed == g -> unsettled++; sweeps = 1
#endif
		:: else
		fi;
#ifndef MUTANT_CLOSE_MISSES_AN_UNLOCK
		wait = busy                     /* with an unlock that has begun meanwhile */
#endif
	}
	:: else
	fi;
	if
	:: sweeps -> if :: d_step { true -> give(g); unsettled-- } :: cut = 1 fi
	:: else
	fi;
	g = 0;
	if
	:: wait -> if :: !busy :: cut = 1 fi            /* the store does not answer */
	:: else
	fi;
	if
	:: jobs == 0
	:: jobs > 0 -> cut = 1
	fi;
	atomic {
#ifdef MUTANT_CLOSE_COUNTS_HOLDS_ONLY
		closes = 1;
#else
#ifdef MUTANT_CLOSE_DOES_NOT_COUNT_WHAT_IS_BUSY
		closes = (unsettled == 0);
#else
		closes = (unsettled == 0 && !(wait && busy));
#endif
#endif
		CHECK(close_waits_for_all, cut || sweeps || !busy && undone == 0 && swept == 0);
		CHECK(closed_has_nothing, !closes || holder == 0 || holder == rival);
		CHECK(closed_has_nothing, !closes || heldBy == 0 || gone[grant])
	};
stays:	skip
}

/* When nothing happens any more. */
active proctype monitor() {
	timeout;
	d_step {
		CHECK(each_owner_is_through, through[1] && through[2]);
		CHECK(nothing_is_left, holder == 0 || holder == rival)
	}
}
