/* The locks that one client of package lease holds: their renewals in batches, extensions of the first lock, and its
 * hand-off from one local owner to the next one.
 *
 * A request to prolong may be carried out several times until it is answered, or never, and its answer may get lost.
 * After the client has given it up, it is under way for the time LATEST at most, which has no end by default. A
 * shorter one is for one lock, H=1. Another client gets a lock as soon as the store lets it. The clocks run at one
 * speed.
 *
 * With LATE an earlier request for the first lock's place in a queue has no answer. The store may carry it out until
 * DOUBT, and takes it for a repetition, which gives the hold its first lease again. */

#ifndef H
#define H 2                     /* locks */
#endif
#ifndef TIME
#define TIME 4                  /* the end of time */
#endif
#define LEASE 3
#define SHORT 1                 /* the time of an extension: less than half of a lease */
#ifndef LONG
#define LONG  (LEASE + 2)       /* and of another one, with LATE */
#endif
#define HALF  ((LEASE + 1)/2)
#ifndef LATEST
#define LATEST (TIME + 1)
#endif
#ifdef LATE
#define DOUBT (LATEST < LEASE -> LATEST : LEASE)
#else
#define DOUBT 0
#endif

byte now;
byte ends[H] = LEASE;           /* until when the store has the hold, or 0 */

/* Requests under way: of all holds, and of the first one, for the time extends. */
bit renews;
byte extends;
#define none    0
#define done    1
#define gone    2               /* not held any more */
#define failed  3               /* a batch with an error: nothing is known of this hold */
byte renewed[H], extended;

/* The requests that the client awaits, and the shortest and longest time of those that may be carried out with it. */
bit renewing;
byte extending;                 /* the time of the extension, or 0 */
byte renewSent, renewLeast, renewMost;  /* least and most of the first hold */
byte extendSent, extendLeast, extendMost;

#define valid    1
#define lost     2
#define released 3
byte hold[H] = valid, until[H] = LEASE;
byte kept[H] = LEASE;           /* until when the store keeps it by the answered requests, at the latest */
byte longest[H];                /* the longest time of the requests without an answer */
byte late = DOUBT;              /* until when a request for the first hold without an answer may be carried out */
bit releasing[H];               /* by the releaser */
/* ghosts */
bit lapses[H];                  /* a lost hold ends by itself in the store */
byte renewalComes, extensionComes;  /* until when the network carries out a request that the client has given up */
byte owed;                      /* until when the owner must have the first hold that was handed to it */

/* A property is a variable, so that an error report has its name. */
hidden byte valid_here_is_held_there, a_loss_is_one, lost_stays_lost, released_is_over, nothing_is_left;
hidden byte a_turn_has_half_a_lease, no_end_is_later_than_counted;
#define CHECK(property, expression) property = (expression); assert(property)
#define MAX(x, y) ((x) > (y) -> (x) : (y))
#define MIN(x, y) ((x) < (y) -> (x) : (y))

#define COMES(sent) MIN((sent) + LATEST, TIME + 1)
#define PENDING(h) MAX((renewing -> LEASE : 0), ((h) == 0 -> extending : 0))
/* grant.atMost, and the sweep of the late request. */
#ifdef MUTANT_AN_UNANSWERED_REQUEST_PROLONGS_NOTHING
#define COUNTED(h) kept[h]
#else
#define COUNTED(h) (kept[h] + MAX(longest[h], PENDING(h)))
#endif
#ifdef LATE
#define ATMOST(h) MAX(COUNTED(h), DOUBT + LEASE)
#else
#define ATMOST(h) COUNTED(h)
#endif

/* No request without an answer is carried out any more. One may have been carried out at the last moment. */
inline endDoubt() {
	if
	:: now >= late && longest[0] != 0 ->
#ifndef MUTANT_THE_END_OF_A_DOUBT_COUNTS_NOTHING
		kept[0] = MAX(kept[0], late + longest[0]);
#endif
#ifndef MUTANT_THE_END_OF_A_DOUBT_FORGETS_REQUESTS
		if :: renewing -> renewMost = MAX(renewMost, longest[0]) :: else fi;
		if :: extending != 0 -> extendMost = MAX(extendMost, longest[0]) :: else fi;
#endif
		longest[0] = 0
	:: else
	fi
}

inline frees(h_) {
	CHECK(valid_here_is_held_there, hold[h_] != valid);
	ends[h_] = 0
}

/* A valid hold is over for its client, and the store may keep it. */
inline over(h_, state_) {
	if :: h_ == 0 -> endDoubt() :: else fi;
	CHECK(no_end_is_later_than_counted, ends[h_] <= ATMOST(h_));
	hold[h_] = state_; until[h_] = 0; kept[h_] = 0; longest[h_] = 0;
	if :: h_ == 0 -> owed = 0 :: else fi
}

#define PROLONG(h_, time_) if :: ends[h_] != 0 -> ends[h_] = now + time_; result = done :: else -> result = gone fi

#define RENEWS  (renews && (renewing || now < renewalComes))
#define EXTENDS (extends != 0 && (extending != 0 || now < extensionComes))

active proctype network() {
	byte result;
end:	do
	:: d_step { RENEWS -> renews = 0;
		PROLONG(0, LEASE); renewed[0] = result;
#if H > 1
		PROLONG(1, LEASE); renewed[1] = result;
#endif
		result = 0
	}
#if H > 1
	:: d_step { RENEWS -> renews = 0;                       /* in part, with an error */
		PROLONG(0, LEASE); renewed[0] = result;
		renewed[1] = failed; result = 0
	}
	:: d_step { RENEWS -> PROLONG(0, LEASE); PROLONG(1, LEASE); result = 0 }        /* it may come again */
#else
	:: d_step { RENEWS -> PROLONG(0, LEASE); result = 0 }
#endif
	:: renews -> renews = 0
	:: d_step { EXTENDS -> PROLONG(0, extends); extended = result; extends = 0; result = 0 }
	:: d_step { EXTENDS -> PROLONG(0, extends); result = 0 }
	:: extends != 0 -> extends = 0
	:: d_step { now < DOUBT && ends[0] != 0 -> ends[0] = now + LEASE }
	:: d_step { releasing[0] -> releasing[0] = 0; frees(0) }
#if H > 1
	:: d_step { releasing[1] -> releasing[1] = 0; frees(1) }
#endif
	od
}

active proctype clock() {
	byte i;
end:	do
	:: d_step {
		now < TIME -> now++;
		i = 0;
		do
		:: i < H ->
			if
			:: hold[i] == valid && until[i] <= now ->
				CHECK(a_turn_has_half_a_lease, i != 0 || owed <= now);
				over(i, lost);
				lapses[i] = 1
			:: else
			fi;
			if :: ends[i] != 0 && ends[i] <= now -> frees(i) :: else fi;
			i++
		:: else -> break
		od;
		if :: owed <= now -> owed = 0 :: else fi;
		i = 0
	}
	od
}

inline lose(h_) {
	CHECK(a_loss_is_one, hold[h_] != valid || ends[h_] == 0);
	if :: hold[h_] == valid -> over(h_, lost); lapses[h_] = 1 :: else fi
}

/* answered, and late. The store has carried the request out by now, and one of the others perhaps after it. */
inline answer(h_, sent_, least_, most_) {
	if
	:: hold[h_] == valid -> until[h_] = MAX(until[h_], sent_ + least_);
#ifdef MUTANT_A_TRIP_IS_NOT_COUNTED
		kept[h_] = sent_ + most_
#else
#ifdef MUTANT_A_SHORTER_REQUEST_SHORTENS_THE_COUNT
		kept[h_] = now + least_
#else
		kept[h_] = now + most_
#endif
#endif
	:: hold[h_] == lost ->
#ifdef MUTANT_A_LOST_HOLD_COMES_BACK
		if :: sent_ + least_ > now -> hold[h_] = valid; until[h_] = sent_ + least_ :: else fi;
#endif
		CHECK(lost_stays_lost, hold[h_] == lost);
#ifndef MUTANT_A_LATE_ANSWER_STAYS
		releasing[h_] = 1;
#endif
		lapses[h_] = 0
	:: else
	fi
}

inline unanswered(h_, sent_, time_) {
	if :: h_ == 0 && now >= late -> unknown = LONG :: else fi;
	if :: hold[h_] == valid -> longest[h_] = MAX(longest[h_], time_) :: else fi;
	if
	:: h_ == 0 ->
#ifdef MUTANT_AN_UNANSWERED_EXTENSION_IS_FORGOTTEN
		if :: time_ != SHORT -> unknown = MIN(unknown, time_) :: else fi;
#else
		unknown = MIN(unknown, time_);
#endif
#ifdef MUTANT_A_DOUBT_COUNTS_FROM_THE_SENDING
		late = MAX(late, COMES(sent_))
#else
#ifdef MUTANT_A_DOUBT_IS_NOT_PROLONGED
		if :: now >= late -> late = COMES(now) :: else fi
#else
		late = COMES(now)
#endif
#endif
	:: else
	fi
}

inline answerRenewal(h_, least_, most_) {
	if
	:: renewed[h_] == done -> answer(h_, renewSent, least_, most_)
	:: renewed[h_] == gone -> lose(h_)
#ifdef MUTANT_A_PARTIAL_FAILURE_IS_A_LOSS
	:: renewed[h_] == failed -> lose(h_)
#else
	:: renewed[h_] == failed || renewed[h_] == none -> unanswered(h_, renewSent, LEASE)
#endif
	:: else
	fi;
	renewed[h_] = none
}

inline endsRenewal() { renewSent = 0; renewLeast = 0; renewMost = 0 }
inline endsExtension() { extending = 0; extended = none; extendSent = 0; extendLeast = 0; extendMost = 0; stale = 0 }

/* The first hold's owner has unlocked it. */
inline unlocks() { stale = (wants || extending != 0) }

active proctype client() {
	/* the shortest time of the first hold's requests without an answer; a late request has the first lease */
#if defined(LATE) && !defined(MUTANT_A_LATE_REQUEST_KEEPS_AN_EXTENSION)
	byte unknown = LEASE;
#else
	byte unknown = LONG;
#endif
	bit isUnknown;          /* an extension has no answer, and may come */
	byte wants;             /* Extend has found the hold valid, and is about to ask for this time, or 0 */
	bit stale;              /* the owner that extends has unlocked the hold since */
	bit says;               /* what Extend returns: nil */
end:	do
#if H > 1
	:: d_step { !renewing && (hold[0] == valid || hold[1] == valid) && now < TIME ->
#else
	:: d_step { !renewing && hold[0] == valid && until[0] <= now + LEASE && now < TIME ->
#endif
		endDoubt(); renewing = 1; renews = 1; renewed[0] = none; renewSent = now; renewLeast = LEASE; renewMost = LEASE;
#if H > 1
		renewed[1] = none;
#endif
		if
		:: extending != 0 ->
			extendLeast = MIN(extendLeast, LEASE); extendMost = MAX(extendMost, LEASE);
			renewMost = MAX(LEASE, extending);
#ifndef MUTANT_A_RENEWAL_FORGETS_EXTENSIONS
			renewLeast = MIN(LEASE, extending)
#endif
		:: else
		fi;
#ifndef MUTANT_A_RENEWAL_FORGETS_EXTENSIONS
		if :: now < late -> renewLeast = MIN(renewLeast, unknown) :: else fi
#endif
	}
	:: d_step { renewing && renewed[0] != none -> renewing = 0;
#ifdef MUTANT_A_RENEWAL_COUNTS_FROM_ITS_ANSWER
		renewSent = now;
#endif
		answerRenewal(0, renewLeast, renewMost);
#if H > 1
		answerRenewal(1, LEASE, LEASE);
#endif
		endsRenewal()
	}
	:: d_step { renewing && renewed[0] == none -> renewing = 0; renewalComes = COMES(now);
		unanswered(0, renewSent, LEASE);
#if H > 1
		unanswered(1, renewSent, LEASE);
#endif
		endsRenewal()
	}
	:: d_step { hold[0] == valid && wants == 0 && extending == 0 && (!isUnknown || now >= extensionComes) ->
		isUnknown = 0; wants = SHORT
	}
#ifdef LATE
	:: d_step { hold[0] == valid && wants == 0 && extending == 0 && (!isUnknown || now >= extensionComes) ->
		isUnknown = 0; wants = LONG
	}
#endif
	:: d_step { wants != 0 && hold[0] == valid &&
#ifdef MUTANT_AN_EXTENSION_MEETS_THE_NEXT_OWNER
		true ->
#else
		!stale ->
#endif
		if :: !stale -> owed = 0 :: else fi;
		endDoubt(); extending = wants; extends = wants; wants = 0; extended = none; extendSent = now;
		extendLeast = extending; extendMost = extending;
		if :: now < late -> extendLeast = MIN(extending, unknown) :: else fi;
		if
		:: renewing ->
			extendLeast = MIN(extendLeast, LEASE); extendMost = MAX(extending, LEASE);
#ifndef MUTANT_A_RENEWAL_IS_NOT_TOLD
			renewLeast = MIN(renewLeast, extending);
#endif
			renewMost = MAX(renewMost, extending)
		:: else
		fi;
#ifndef MUTANT_AN_EXTENSION_KEEPS_THE_END
		until[0] = MIN(until[0], now + extending);
#endif
#ifdef MUTANT_AN_UNANSWERED_EXTENSION_SHORTENS_THE_COUNT
		kept[0] = MIN(kept[0], now + extending)
#endif
	}
	:: d_step { wants != 0 && (hold[0] != valid || stale) -> wants = 0; stale = 0 }
	:: d_step { extending != 0 && extended == done ->
#ifdef MUTANT_EXTEND_SAYS_NIL_AFTER_A_RELEASE
		says = (hold[0] != lost);
#else
		says = (hold[0] == valid && !stale);
#endif
		CHECK(released_is_over, !says || hold[0] != released && !stale);
		says = 0;
		answer(0, extendSent, extendLeast, extendMost);
		endsExtension()
	}
	:: d_step { extending != 0 && extended == gone -> endsExtension(); lose(0) }
	:: d_step { extending != 0 && extended == none ->
		isUnknown = 1; extensionComes = COMES(now);
		unanswered(0, extendSent, extending);
		endsExtension()
	}
	/* The owner unlocks the first hold, which goes to the next local owner, or to the store. */
#ifdef MUTANT_A_SHORT_HOLD_IS_HANDED
	:: d_step { hold[0] == valid -> owed = now + HALF; unlocks() }
#else
	:: d_step { hold[0] == valid && until[0] - now >= HALF -> owed = now + HALF; unlocks() }
#endif
	:: d_step { hold[0] == valid -> over(0, released); releasing[0] = 1; unlocks() }
#if H > 1
	:: d_step { hold[1] == valid -> over(1, released); releasing[1] = 1 }
#endif
	od
}

active proctype monitor() {
	timeout;
	CHECK(nothing_is_left, ends[0] == 0 || lapses[0]);
#if H > 1
	CHECK(nothing_is_left, ends[1] == 0 || lapses[1])
#endif
}
