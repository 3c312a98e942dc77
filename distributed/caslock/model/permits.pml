/* One semaphore of package caslock: a document that lists the acquisitions with permits, and clients that read it and
 * replace it by compare-and-swap. At the beginning a client that has just died has a permit, and its last renewal is
 * under way.
 *
 * As in takeover.pml, a client may pause before each of its steps, or stop there. A write may come when its client has
 * given it up, or never, and its answer may get lost. The clocks of all clients run at one speed. What takeover.pml has
 * beyond that is left out: tokens, the write of Lookup, and documents that are known without a read. */

#ifndef W0
#define W0 2                    /* how many writes client 0 sends */
#endif
#ifndef W1
#define W1 1                    /* and client 1 */
#endif
#define W (W0 + W1 + 1)         /* the first one is that of the dead client */
#ifndef SIZE
#define SIZE 2                  /* permits */
#endif
#ifndef P1
#define P1 1                    /* how many client 1 wants. The others want one */
#endif
#ifndef TIME
#define TIME 3                  /* the end of time */
#endif
#define LEASE 2

#define dead 2
#define PERMITS(c) ((c) == 1 -> P1 : 1)

/* An acquisition has the number of its first write. */
#define OWNER(w) ((w) == 0 -> dead : ((w) <= W0 -> 0 : 1))

/* A set of acquisitions has a bit for each, and their renewals have two. */
#define IN(set, a) (((set) >> (a)) & 1)
#define RENEWALS(r, a) (((r) >> (2*(a))) & 3)
#define WITHOUT(r, a) ((r) & ~(3 << (2*(a))))

byte now;

/* The document. */
byte version, holders;
short renewals;

/* All writes of all clients. */
#define unsent 0
#define sent   1
#define won    2                /* carried out, and not yet answered */
#define lost   3                /* refused, and not yet answered */
#define over   4
typedef Write {
	byte state, expects, holders, version;
	short renewals;
	bit abandoned           /* its client does not wait for the answer */
}
Write writes[W];

byte until[3];                  /* when the hold ends by the clock of its client, or 0 */
byte relied[3];                 /* the acquisition of the hold. A ghost */

/* A property is a variable, so that an error report has its name. */
hidden byte permits_are_counted, no_hold_is_taken;
#define CHECK(property, expression) property = (expression); assert(property)

#define RELIES(c) (until[c] > now -> PERMITS(c) : 0)

/* The client relies on its hold until t. */
inline rely(t) {
	if
	:: now < (t) ->
		until[me] = t; relied[me] = id;
		CHECK(permits_are_counted, RELIES(0) + RELIES(1) + RELIES(dead) <= SIZE)
	:: else
	fi
}

inline unrely(c) { until[c] = 0; relied[c] = 0 }

#define KEPT(a) (!IN(holders, a) || IN(x.holders, a) || OWNER(a) == OWNER(_pid) || relied[OWNER(a)] != (a) || \
	now >= until[OWNER(a)])

/* Swap at the store, for one write. */
#define x writes[_pid]
active [W] proctype store() {
	byte a;
	d_step {
		version > 0 && x.state == sent ->
		if
		:: x.expects == version ->
			a = 0;
			do
			:: a < W -> CHECK(no_hold_is_taken, KEPT(a)); a++
			:: else -> break
			od;
			a = 0;
			version++; holders = x.holders; renewals = x.renewals;
			x.version = version; x.state = won
		:: else -> x.state = lost
		fi;
		x.expects = 0; x.holders = 0; x.renewals = 0;   /* values of no use make states */
		if :: x.abandoned -> x.state = over; x.version = 0; x.abandoned = 0 :: else fi
	}
}
#undef x

active proctype clock() {
	byte c;
end:	do
	:: d_step {
		version > 0 && now < TIME -> now++;
		c = 0;
		do
		:: c < 3 -> if :: until[c] <= now -> unrely(c) :: else fi; c++
		:: else -> break
		od;
		c = 0
	}
	od
}

#define ok       1
#define conflict 2
#define unknown  3

/* Swap at the client, which stops if it has no write left. */
#define x writes[next]
inline send(h_, r_) {
	if :: next == last -> goto stops :: else fi;
	wh = h_; wr = r_; result = 0;
	x.expects = v; x.holders = wh; x.renewals = wr; x.state = sent
}

inline answer() {
	d_step {
		if
		:: x.state == won -> see(x.version, wh, wr); x.state = over; result = ok
		:: x.state == lost -> x.state = over; result = conflict
		:: x.state == sent -> x.abandoned = 1; result = unknown /* no answer in time */
		fi;
		x.version = 0; wh = 0; wr = 0;
		next++
	}
}

#ifdef MUTANT_SIGHT_OUTLASTS_RENEWAL
#define SAME(a) IN(h, a)
#else
#define SAME(a) (IN(h, a) && RENEWALS(r, a) == RENEWALS(r_, a))
#endif

/* The client has seen a document. An entry counts from when the client saw it first as it is. */
inline see(v_, h_, r_) {
	i = 0;
	do
	:: i < W ->
		if
		:: !IN(h_, i) -> at[i] = 0
		:: IN(h_, i) && !SAME(i) -> at[i] = now
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0; v = v_; h = h_; r = r_
}

inline load() { d_step { if :: v != version -> see(version, holders, renewals) :: else fi } }

#define OVER(a) (IN(h, a) && now >= at[a] + LEASE)

/* The entries whose time is not over are in left and rest, and what they have is in taken. */
inline expire() {
	i = 0; taken = 0; left = h; rest = r;
	do
	:: i < W ->
		if
		:: OVER(i) -> left = left & ~(1 << i); rest = WITHOUT(rest, i)
		:: IN(h, i) && !OVER(i) -> taken = taken + PERMITS(OWNER(i))
		:: else
		fi;
		i++
	:: else -> break
	od;
	i = 0
}

#define ANYOVER (OVER(0) || OVER(1) || OVER(2) || OVER(3) || OVER(4))

active [2] proctype client() {
	byte me, next, last, result, i;
	byte v, h;                      /* the document as the client saw it last */
	short r;
	byte at[5];                     /* when its entries were seen first */
	byte id, began;                 /* the acquisition, and when it or the renewal began */
	byte wh, left, taken;
	short wr, rest;
	d_step {
		version > 0 ->
		me = _pid - W - 1;
		next = (me == 0 -> 1 : 1 + W0);
		last = (me == 0 -> 1 + W0 : W)
	}

acquire:
	atomic {                        /* Acquire */
		if :: next == last -> goto stops :: else fi;
		id = next; began = now; result = 0
	}
again:
	atomic {                        /* without a pause before the write, which may be under way for any time */
		load();
#ifdef MUTANT_CONFLICT_CHANGES_THE_OLD_DOCUMENT
decide:
#endif
		expire();
#ifdef MUTANT_TAKEOVER_COUNTS_NOT
		if :: left != h -> taken = 0 :: else fi;
#endif
#ifdef MUTANT_TAKEOVER_REMOVES_ALL
		if :: left != h -> left = 0; rest = 0; taken = 0 :: else fi;
#endif
		if
		:: taken + PERMITS(me) > SIZE ->        /* refused: it asks again when that may help */
			left = 0; rest = 0; taken = 0;
			goto refused
		:: else
		fi;
		send(left | (1 << id), rest);
		left = 0; rest = 0; taken = 0
	}
	answer();
	if
	:: result == ok
	:: result == conflict ->
#ifdef MUTANT_CONFLICT_CHANGES_THE_OLD_DOCUMENT
		v = version; goto decide
#else
		goto again
#endif
	:: result == unknown ->         /* Lookup */
		load();
		if
		:: IN(h, id)
		:: else -> goto acquire
		fi
	fi;
	atomic { result = 0; rely(began + LEASE) }
	do
	:: atomic { now < until[me] -> began = now }    /* Renew */
renew:
		atomic { send(h, r + (1 << (2*id))) }
		answer();
		if
		:: result == ok -> atomic { if :: now < until[me] -> rely(began + LEASE) :: else fi }
		:: result == conflict ->
			load();
			if
			:: IN(h, id) -> goto renew
			:: else -> atomic { unrely(me); goto acquire }  /* lost */
			fi
		:: result == unknown
		fi;
		result = 0
	:: unrely(me);                  /* Release */
free:
#ifdef MUTANT_RELEASE_FREES_ANOTHER
		atomic { send(h & (h - 1), WITHOUT(r, id)) }    /* the first entry, whose ever it is */
#else
		atomic { send(h & ~(1 << id), WITHOUT(r, id)) }
#endif
		answer();
		if
		:: result == ok -> goto acquire
		:: result == conflict ->
			load();
			if
			:: IN(h, id) -> goto free
			:: else -> goto acquire
			fi
		:: result == unknown -> goto free
		fi
	od;

refused:
	atomic { v != version || ANYOVER -> goto acquire }
stops:
	skip
}

init {
	d_step {
		version = 1; holders = 1;
		until[dead] = LEASE;
		writes[0].expects = 1; writes[0].holders = 1; writes[0].renewals = 1; writes[0].abandoned = 1;
		writes[0].state = sent
	}
}
