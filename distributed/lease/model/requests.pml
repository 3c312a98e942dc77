/* One lock of package lease: two clients ask a store for it, give it up, and give it back or lose it.
 *
 * A request is under way for any time. It may be carried out when its client has given it up, until a lease after it
 * was sent, or never, and its answer may get lost. A client may pause before each of its steps. The clocks of both
 * clients and of the store run at one speed. grant.pml has the renewals.
 *
 * With SESSION a hold lasts until it is released, and a request may be carried out until a lease after its client has
 * given it up, since a client may stand still before the request leaves. A client's pause between the end of a request
 * and the sweep is then one before the end.
 *
 * With SETTLES the store answers to a release that finds no hold that the late request of the acquisition will not be
 * carried out any more: driver.Released.Settled. */

#define N 2                     /* clients */
#ifndef A0
#define A0 2                    /* the acquisitions of client 0 */
#endif
#ifndef A1
#define A1 1                    /* and of client 1 */
#endif
#ifndef TIME
#define TIME 3                  /* the end of time */
#endif
#ifndef LEASE
#define LEASE 2
#endif
#ifndef FAULTS
#define FAULTS 1                /* of how many clients requests are lost or given up */
#endif
#ifndef DOUBTS
#define DOUBTS 1                /* how many requests of an acquisition stay without an answer while they are under way */
#endif

/* An acquisition is a number from 1. */
#define A (A0 + A1)
#define CLIENT(a) ((a) <= A0 -> 0 : 1)

byte now;

/* The store. */
byte holder, ends;              /* the acquisition that holds, and until when */
#ifdef QUEUE
bit place[A + 1];
byte first;                     /* of the acquisitions with a place, or 0 */
#endif

#ifdef SESSION
#define ENDLESS 255
#define LEASED  ENDLESS                 /* the end of a hold in the store */
#define VALID   ENDLESS                 /* and for its client */
#define UNKNOWN (now + LEASE)           /* the end of the time in which a request without an answer may come */
#else
#define LEASED  (now + LEASE)
#define VALID   (sent + LEASE)
#define UNKNOWN (sent + LEASE)
#endif
#if defined(SESSION) && !defined(MUTANT_A_SESSIONS_DOUBT_COUNTS_FROM_SENDING)
#define DOUBTED (now + LEASE)           /* and that time as the client counts it */
#else
#define DOUBTED (sent + LEASE)
#endif

/* The network. */
bit asks[A + 1];                /* a request for the lock is under way, and awaited */
byte doubts[A + 1];             /* and so many that are not awaited any more */
byte doubtEnds[A + 1];          /* when these cannot come any more */

/* Answers, which wait for their client. */
#define none    0
#define granted 1
#define refused 2
byte answer[N];

/* What the releaser is to do about an acquisition. */
#define RELEASES 1
#define LEAVES   2
#define SWEEPS   4              /* a request may come late: until sweepEnds */
#define SEVERAL  8              /* more than that request may take the lock */
byte undoing[A + 1], sweepEnds[A + 1];

/* The hold of a client. */
#define valid  1
#define lost   2
byte hold[N], id[N], until[N];

/* ghosts */
bit lapses[A + 1];              /* it is lost here, and ends by itself in the store */
bit through[N];

/* A property is a variable, so that an error report has its name. */
hidden byte mutual_exclusion, no_hold_is_taken, nothing_is_left, each_client_is_through;
#define CHECK(property, expression) property = (expression); assert(property)

#define MAX(x, y) ((x) > (y) -> (x) : (y))

/* The store ends the hold of its holder. */
inline frees() {
	CHECK(no_hold_is_taken, holder == 0 || hold[CLIENT(holder)] != valid || id[CLIENT(holder)] != holder);
	holder = 0; ends = 0
}

#ifdef QUEUE
inline leaves(a_) {
	place[a_] = 0;
	if
	:: first == a_ ->
		first = 0; j = 1;
		do
		:: j <= A && first == 0 -> if :: place[j] -> first = j :: else fi; j++
		:: else -> break
		od;
		j = 0
	:: else
	fi
}
#define INTURN(a) (first == 0 || first == (a))
#define PLACED(a) place[a]
#else
#define leaves(a_) skip
#define INTURN(a) true
#define PLACED(a) false
#endif

/* Acquire and Enqueue at the store. */
inline decide(a_) {
	if
	:: holder == a_ -> ends = LEASED; result = granted
	:: holder == 0 && INTURN(a_) -> holder = a_; ends = LEASED; lapses[a_] = 0; leaves(a_); result = granted
	:: else ->
#ifdef QUEUE
		place[a_] = 1;
		if :: first == 0 -> first = a_ :: else fi;
#endif
		result = refused
	fi
}

/* sweep: late_ says until when a request may come. */
inline sweeps(a_, late_, more_) {
	if
	:: late_ > now -> undoing[a_] = undoing[a_] | SWEEPS | (more_); sweepEnds[a_] = MAX(sweepEnds[a_], late_)
	:: late_ <= now -> undoing[a_] = undoing[a_] | RELEASES | LEAVES        /* once */
	fi
}

#define ONTHEWAY(a) (asks[a] || doubts[a])

/* What is under way arrives, in any order, or never. */
active proctype network() {
	byte a, c, result, j;
end:	do
	:: atomic {
		if
		:: ONTHEWAY(1) -> a = 1
		:: ONTHEWAY(2) -> a = 2
#if A0 + A1 > 2
		:: ONTHEWAY(3) -> a = 3
#endif
#if A0 + A1 > 3
		:: ONTHEWAY(4) -> a = 4
#endif
		fi;
		c = CLIENT(a);
		if
		:: asks[a] -> d_step { asks[a] = 0; decide(a); answer[c] = result }
		:: asks[a] && c < FAULTS -> asks[a] = 0 /* carried out by nobody, and answered by nobody */
		:: doubts[a] -> d_step {
			doubts[a]--; decide(a);
#ifdef MUTANT_UNDO_TRUSTS_A_REFUSAL
			if :: result == refused -> undoing[a] = undoing[a] & ~SWEEPS :: else fi
#endif
			skip
		}
		:: doubts[a] -> doubts[a]--
		fi;
		a = 0; c = 0; result = 0
	}
	od
}

#ifdef SETTLES
#define SETTLED(a) ((undoing[a] & SWEEPS) && holder != (a))
#else
#define SETTLED(a) false
#endif
#define TODO(a) (SETTLED(a) || (undoing[a] & (RELEASES | LEAVES)) || (undoing[a] & SWEEPS) && (holder == (a) || PLACED(a)))

/* What is released, left and swept. */
active proctype releaser() {
	byte a, j;
end:	do
	:: atomic {
		if
		:: TODO(1) -> a = 1
		:: TODO(2) -> a = 2
#if A0 + A1 > 2
		:: TODO(3) -> a = 3
#endif
#if A0 + A1 > 3
		:: TODO(4) -> a = 4
#endif
		fi;
		if
		:: undoing[a] & RELEASES -> d_step {
			undoing[a] = undoing[a] & ~RELEASES;
			if :: holder == a -> frees() :: else fi
		}
		:: undoing[a] & LEAVES -> d_step { undoing[a] = undoing[a] & ~LEAVES; leaves(a) }
		:: (undoing[a] & SWEEPS) && (holder == a || PLACED(a)) -> d_step {
			leaves(a);
			if
			:: holder == a ->
				frees();
				if :: undoing[a] & SEVERAL :: else -> undoing[a] = undoing[a] & ~SWEEPS fi
			:: else
			fi
		}
#ifdef SETTLES
		:: SETTLED(a) -> d_step {
			undoing[a] = undoing[a] & ~(SWEEPS | SEVERAL); sweepEnds[a] = 0;
#ifndef MUTANT_A_RELEASE_THAT_FINDS_NOTHING_SETTLES
			doubts[a] = 0; doubtEnds[a] = 0
#endif
		}
#endif
		fi;
		a = 0
	}
	od
}

active proctype clock() {
	byte i;
end:	do
	:: d_step {
		now < TIME -> now++;
		i = 0;
		do
		:: i < N ->
			if
			:: hold[i] == valid && until[i] <= now -> hold[i] = lost; until[i] = 0; lapses[id[i]] = 1
			:: else
			fi;
			i++
		:: else -> break
		od;
		if :: holder != 0 && ends <= now -> frees() :: else fi;
		i = 1;
		do
		:: i <= A ->
			if :: doubtEnds[i] <= now -> doubts[i] = 0; doubtEnds[i] = 0 :: else fi;
			if
			:: (undoing[i] & SWEEPS) && sweepEnds[i] <= now ->
				undoing[i] = undoing[i] & ~(SWEEPS | SEVERAL); sweepEnds[i] = 0;
				if :: holder == i || PLACED(i) -> undoing[i] = undoing[i] | RELEASES | LEAVES :: else fi
			:: else
			fi;
			i++
		:: else -> break
		od;
		i = 0
	}
	od
}

/* A request has no answer, or its client does not wait for it. */
inline abandon(a_) {
	answer[me] = none;
	if
	:: asks[a_] && now < UNKNOWN ->
		asks[a_] = 0; doubts[a_]++; doubtEnds[a_] = MAX(doubtEnds[a_], UNKNOWN)
	:: asks[a_] && now >= UNKNOWN -> asks[a_] = 0
	:: else
	fi
}

/* The hold is released: g.doubt is until when an earlier request of its acquisition may come. */
inline release() {
	atomic { hold[me] = 0; until[me] = 0; undoing[id[me]] = undoing[id[me]] | RELEASES }
	if
	:: atomic { !(undoing[id[me]] & RELEASES) -> more = 0 }
#ifdef MUTANT_A_RELEASE_SETTLES_THE_DOUBT
	:: more = 0
#else
	:: more = SEVERAL       /* without an answer, for as long as its caller waits */
#endif
	fi;
#ifndef MUTANT_DOUBT_ENDS_WITH_THE_RELEASE
	atomic {
#ifndef MUTANT_ONE_LATE_REQUEST_SETTLES_ALL
		if :: several -> more = SEVERAL :: else fi;
#endif
	 if :: doubt != 0 -> sweeps(id[me], doubt, more) :: else fi }
#endif
	more = 0
}

active [N] proctype client() {
	byte me, next, last;
	byte sent, doubt, more;
	bit limited;            /* the caller may give up */
	bit again;              /* an earlier request of the acquisition has no answer, or had it too late */
	bit several;            /* more than one request may come until doubt */
	d_step {
		me = _pid - 3;
		next = (me == 0 -> 1 : A0 + 1);
		last = (me == 0 -> A0 : A)
	}

acquire:
	atomic {
		id[me] = 0; sent = 0; doubt = 0; again = 0; several = 0; limited = 0;
		if :: next > last -> goto stops :: else fi;
		id[me] = next; next++;
		if :: limited = 0 :: me < FAULTS -> limited = 1 fi
	}
ask:
	atomic { sent = now; asks[id[me]] = 1; answer[me] = none }
	if
	:: atomic { answer[me] == granted -> answer[me] = none; goto has }
	:: atomic { answer[me] == refused -> answer[me] = none }
		if
		:: atomic { holder == 0 && INTURN(id[me]) || holder == id[me] -> goto ask }
		:: atomic { limited -> goto leave }
		fi
	:: atomic { me < FAULTS && (doubts[id[me]] < DOUBTS || !asks[id[me]]) -> abandon(id[me]) }       /* no answer */
		if
#ifdef MUTANT_LOOKUP_TRUSTS_EARLIER_REQUESTS
		:: atomic { holder == id[me] -> goto has }                      /* Lookup */
#else
		:: atomic { !again && holder == id[me] -> goto has }            /* Lookup */
#endif
		:: skip                                                         /* or it fails, or finds nothing */
		fi;
#ifdef QUEUE
		atomic { if :: doubt != 0 -> several = 1 :: else fi; again = 1; doubt = MAX(doubt, DOUBTED) }
		if
		:: goto ask
		:: atomic { limited -> goto leave }
		fi
#else
#ifdef MUTANT_A_LATE_REQUEST_IS_NOT_SWEPT
		goto acquire
#else
		atomic { sweeps(id[me], DOUBTED, 0) }
#ifdef MUTANT_THE_NAME_IS_USED_AGAIN
		goto ask
#else
		goto acquire
#endif
#endif
#endif
	:: atomic { limited && answer[me] == none && doubts[id[me]] < DOUBTS -> abandon(id[me]) }       /* undo */
#ifndef MUTANT_A_LATE_REQUEST_IS_NOT_SWEPT
#ifdef QUEUE
		atomic {
			if :: doubt != 0 -> more = SEVERAL :: else fi;
			sweeps(id[me], DOUBTED, more);
			more = 0
		}
#else
		atomic { sweeps(id[me], DOUBTED, 0) }
#endif
#endif
		goto acquire
	:: atomic { limited && answer[me] != none ->                                            /* with the answer */
		if
		:: answer[me] == granted -> answer[me] = none; goto gives
		:: else -> answer[me] = none; goto leave
		fi
	}
	fi;

has:
	atomic {
		if
		:: now >= sent + LEASE ->               /* the answer came too late */
#ifdef QUEUE
			if :: doubt != 0 -> several = 1 :: else fi;
			again = 1; doubt = MAX(doubt, sent + LEASE);
			goto ask
#else
			sweeps(id[me], sent + LEASE, 0);
			goto acquire
#endif
		:: else
		fi;
		CHECK(mutual_exclusion, hold[1 - me] != valid);
		hold[me] = valid;
#ifdef MUTANT_LEASE_BEGINS_WITH_THE_ANSWER
		until[me] = now + LEASE
#else
		until[me] = VALID
#endif
	}
	if
	:: atomic { hold[me] == valid -> goto gives }
	:: atomic { hold[me] == valid && holder == id[me] && me < FAULTS -> hold[me] = lost; frees() }  /* by force */
	:: hold[me] == lost
	fi;
	atomic {
		hold[me] = 0; until[me] = 0;
#ifndef MUTANT_DOUBT_ENDS_WITH_THE_LOSS
		if :: doubt != 0 -> sweeps(id[me], doubt, SEVERAL) :: else fi;
#endif
		goto acquire
	};
gives:
	release();
	goto acquire;

leave:
	atomic { undoing[id[me]] = undoing[id[me]] | LEAVES }
#ifdef QUEUE
#ifndef MUTANT_DOUBT_ENDS_WITH_THE_PLACE
	atomic { if :: doubt != 0 -> sweeps(id[me], doubt, (several -> SEVERAL : 0)) :: else fi }
#endif
#endif
	goto acquire;
stops:
	through[me] = 1
}

/* When nothing happens any more. */
active proctype monitor() {
	byte i;
	timeout;
	d_step {
		CHECK(nothing_is_left, holder == 0 || lapses[holder]);
		i = 1;
		do
		:: i <= A -> CHECK(nothing_is_left, !PLACED(i) || !through[CLIENT(i)]); i++
		:: else -> break
		od;
		CHECK(each_client_is_through, through[0] && through[1] || holder != 0 && lapses[holder])
	}
}
