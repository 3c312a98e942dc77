/* Two locks that one client of package lease holds: their renewals in batches, and an extension of one of them.
 *
 * A request to prolong is under way for any time. It may be carried out several times until it is answered, or never,
 * and its answer may get lost. Another client gets a lock as soon as the store lets it. The clocks run at one speed. */

#define H 2                     /* locks */
#ifndef TIME
#define TIME 4                  /* the end of time */
#endif
#define LEASE 2
#define SHORT 1                 /* the time of an extension */

byte now;
byte ends[H];                   /* until when the store has the hold, or 0 */

bit renews, extends;            /* a request is under way: of both holds, and of the first one */
#define none    0
#define done    1
#define gone    2               /* not held any more */
#define failed  3               /* a batch with an error: nothing is known of this hold */
byte renewed[H], extended;

#define valid    1
#define lost     2
#define released 3
byte hold[H], until[H];
bit releasing[H];               /* by the releaser */
/* ghosts */
bit lapses[H];                  /* a lost hold ends by itself in the store */

/* A property is a variable, so that an error report has its name. */
hidden byte valid_here_is_held_there, a_loss_is_one, lost_stays_lost, released_is_over, nothing_is_left;
#define CHECK(property, expression) property = (expression); assert(property)
#define MAX(x, y) ((x) > (y) -> (x) : (y))
#define MIN(x, y) ((x) < (y) -> (x) : (y))

inline frees(h_) {
	CHECK(valid_here_is_held_there, hold[h_] != valid);
	ends[h_] = 0
}

#define RENEW(h_) if :: ends[h_] != 0 -> ends[h_] = now + LEASE; result = done :: else -> result = gone fi

active proctype network() {
	byte result;
end:	do
	:: d_step { renews -> renews = 0;
		RENEW(0); renewed[0] = result;
		RENEW(1); renewed[1] = result;
		result = 0
	}
	:: d_step { renews -> renews = 0;                       /* in part, with an error */
		RENEW(0); renewed[0] = result;
		renewed[1] = failed; result = 0
	}
	:: d_step { renews -> RENEW(0); RENEW(1); result = 0 }  /* it may come again */
	:: renews -> renews = 0
	:: d_step { extends -> extends = 0;
		if :: ends[0] != 0 -> ends[0] = now + SHORT; extended = done :: else -> extended = gone fi
	}
	:: d_step { extends -> if :: ends[0] != 0 -> ends[0] = now + SHORT :: else fi }
	:: extends -> extends = 0
	:: d_step { releasing[0] -> releasing[0] = 0; frees(0) }
	:: d_step { releasing[1] -> releasing[1] = 0; frees(1) }
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
			if :: hold[i] == valid && until[i] <= now -> hold[i] = lost; until[i] = 0; lapses[i] = 1 :: else fi;
			if :: ends[i] != 0 && ends[i] <= now -> frees(i) :: else fi;
			i++
		:: else -> break
		od;
		i = 0
	}
	od
}

inline lose(h_) {
	CHECK(a_loss_is_one, hold[h_] != valid || ends[h_] == 0);
	if :: hold[h_] == valid -> hold[h_] = lost; until[h_] = 0; lapses[h_] = 1 :: else fi
}

/* answered, and late. */
inline answer(h_, end_) {
	if
	:: hold[h_] == valid -> until[h_] = MAX(until[h_], end_)
	:: hold[h_] == lost ->
#ifdef MUTANT_A_LOST_HOLD_COMES_BACK
		if :: end_ > now -> hold[h_] = valid; until[h_] = end_ :: else fi;
#endif
		CHECK(lost_stays_lost, hold[h_] == lost);
#ifndef MUTANT_A_LATE_ANSWER_STAYS
		releasing[h_] = 1;
#endif
		lapses[h_] = 0
	:: else
	fi
}

inline answerRenewal(h_) {
	if
	:: renewed[h_] == done -> answer(h_, renewSent + (isShort && h_ == 0 -> SHORT : LEASE))
	:: renewed[h_] == gone -> lose(h_)
#ifdef MUTANT_A_PARTIAL_FAILURE_IS_A_LOSS
	:: renewed[h_] == failed -> lose(h_)
#endif
	:: else
	fi;
	renewed[h_] = none
}

active proctype client() {
	byte renewSent, extendSent;
	bit renewing, extending;
	bit isShort;            /* an extension may be carried out after the renewal */
	bit unknown;            /* an extension has no answer, and may come */
	bit says;               /* what Extend returns: nil */
	d_step {
		hold[0] = valid; until[0] = LEASE; ends[0] = LEASE;
		hold[1] = valid; until[1] = LEASE; ends[1] = LEASE
	}
end:	do
	:: d_step { !renewing && (hold[0] == valid || hold[1] == valid) && now < TIME ->
		renewing = 1; renews = 1; renewed[0] = none; renewed[1] = none; renewSent = now;
#ifndef MUTANT_A_RENEWAL_FORGETS_EXTENSIONS
		isShort = extending || unknown
#endif
	}
	:: d_step { renewing && (renewed[0] != none || renewed[1] != none) -> renewing = 0;
#ifdef MUTANT_A_RENEWAL_COUNTS_FROM_ITS_ANSWER
		renewSent = now;
#endif
		answerRenewal(0);
		answerRenewal(1);
		isShort = 0
	}
	:: d_step { renewing && renewed[0] == none && renewed[1] == none -> renewing = 0; isShort = 0 }
	:: d_step { hold[0] == valid && !extending && !unknown ->
		extending = 1; extends = 1; extended = none; extendSent = now;
#ifndef MUTANT_AN_EXTENSION_KEEPS_THE_END
		until[0] = MIN(until[0], now + SHORT);
#endif
#ifndef MUTANT_A_RENEWAL_IS_NOT_TOLD
		isShort = renewing
#endif
	}
	:: d_step { extending && extended == done -> extending = 0; extended = none;
#ifdef MUTANT_EXTEND_SAYS_NIL_AFTER_A_RELEASE
		says = (hold[0] != lost);
#else
		says = (hold[0] == valid);
#endif
		CHECK(released_is_over, !says || hold[0] != released);
		says = 0;
		answer(0, extendSent + SHORT)
	}
	:: d_step { extending && extended == gone -> extending = 0; extended = none; lose(0) }
	:: d_step { extending && extended == none -> extending = 0;
#ifndef MUTANT_AN_UNANSWERED_EXTENSION_IS_FORGOTTEN
		unknown = 1
#endif
	}
	:: d_step { hold[0] == valid -> hold[0] = released; until[0] = 0; releasing[0] = 1 }
	:: d_step { hold[1] == valid -> hold[1] = released; until[1] = 0; releasing[1] = 1 }
	od
}

active proctype monitor() {
	timeout;
	CHECK(nothing_is_left, (ends[0] == 0 || lapses[0]) && (ends[1] == 0 || lapses[1]))
}
