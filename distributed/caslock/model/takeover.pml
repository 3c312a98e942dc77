/* One lock of package caslock: a document, and clients that read it and replace it by compare-and-swap.
 *
 * A client may pause before each of its steps, for any time, and also for ever. A write is under way for any time: it
 * may arrive when its client has given it up, or has begun something else, or never. Its answer may get lost. The
 * clocks of all clients run at one speed. Nothing is compared with a time of the store. */

#ifndef N
#define N 2                     /* clients */
#endif
#ifndef W0
#define W0 3                    /* how many writes client 0 sends */
#endif
#ifndef W1
#define W1 1                    /* and each of the others */
#endif
#define W (W0 + (N-1)*W1)
#ifndef TIME
#define TIME 3                  /* the end of time */
#endif
#ifndef L0
#define L0 2                    /* the lease of client 0 */
#endif
#ifndef L1
#define L1 2                    /* and of the others */
#endif
#define TERM(c) ((c) == 0 -> L0 : L1)

byte now;

/* The document. Holder is an acquisition, or 0 for a free lock. */
byte version, holder, token, term;

/* All writes of all clients. */
#define unsent 0
#define sent   1
#define won    2                /* carried out, and not yet answered */
#define lost   3                /* refused, and not yet answered */
#define over   4
typedef Write {
	byte state, expects, holder, token, term, version;
	bit abandoned           /* its client does not wait for the answer */
}
Write writes[W];

/* ghosts */
byte versions, acquisitions, lastToken;
byte settledOnes;               /* the acquisitions that are settled, one bit each */
byte until[N];                  /* when the hold ends by the clock of its client, or 0 */

/* A property is a variable, so that an error report has its name. */
hidden byte mutual_exclusion, no_hold_is_taken, token_grows, settled_is_final;
#define CHECK(property, expression) property = (expression); assert(property)

/* The client relies on its hold until t. */
inline rely(t) {
	until[me] = t;
	i = 0;
	do
	:: i < N -> CHECK(mutual_exclusion, i == me || now >= until[me] || now >= until[i]); i++
	:: else -> break
	od;
	i = 0
}

#ifdef MUTANT_SWAP_COMPARES_NOT
#define MATCHES true
#else
#define MATCHES (x.expects == version)
#endif

#ifdef MUTANT_VERSION_IS_THAT_OF_THE_CONTENT
#define SAME (x.holder == holder && x.token == token && x.term == term)
#else
#define SAME false
#endif

#define FORGET x.expects = 0; x.holder = 0; x.token = 0; x.term = 0 /* values of no use make states */

#define CLIENT(w) ((w) < W0 -> 0 : 1 + ((w)-W0)/W1)

/* Swap at the store, for one write. */
#define x writes[_pid]
active [W] proctype store() {
	byte i;
	d_step {
		x.state == sent ->
		if
		:: MATCHES ->
			i = 0;
			do
			:: i < N && i != CLIENT(_pid) && x.holder != holder -> CHECK(no_hold_is_taken, now >= until[i]); i++
			:: i < N && (i == CLIENT(_pid) || x.holder == holder) -> i++
			:: i == N -> break
			od;
			i = 0;
			CHECK(settled_is_final, x.holder == 0 || !(settledOnes & (1 << x.holder)));
			if
			:: x.holder != 0 && x.holder != holder ->
				CHECK(token_grows, x.token > lastToken);
				lastToken = x.token
			:: else
			fi;
			if :: SAME :: else -> versions++; version = versions fi;
			holder = x.holder; token = x.token; term = x.term;
			x.version = version; x.state = won
		:: else -> x.state = lost
		fi;
		FORGET;
		if :: x.abandoned -> x.state = over; x.version = 0 :: else fi
	}
}
#undef x

active proctype clock() {
	byte i;
end:	do
	:: d_step {
		now < TIME -> now++;
		i = 0;
		do
		:: i < N -> if :: until[i] <= now -> until[i] = 0 :: else fi; i++
		:: else -> break
		od;
		i = 0
	}
	od
}

#define ok       1
#define conflict 2
#define unknown  3

/* Swap at the client, which stops if it has no write left. */
#define x writes[next]
inline swap(e, h_, t_, d_) {
	atomic {
		result = 0;
		if :: next == last -> goto stops :: else fi;
		x.expects = e; x.holder = h_; x.token = t_; x.term = d_;
		x.state = sent
	}
	d_step {
		if
		:: x.state == won -> v = x.version; x.state = over; result = ok
		:: x.state == lost -> x.state = over; result = conflict
		:: x.state != sent -> x.state = over; result = unknown  /* the answer is lost */
		:: x.state == sent -> x.abandoned = 1; result = unknown
		fi;
		x.version = 0;
		next++
	}
}

/* Load. The answer takes any time, and is noted when it is there. */
inline load() {
#ifdef MUTANT_SEEN_WHEN_ASKED
	asked = now;
#endif
	atomic { v = version; h = holder; t = token; d = term }
	atomic {
		if
		:: v != seenVersion ->
			seenVersion = v;
#ifdef MUTANT_SEEN_WHEN_ASKED
			seenAt = asked
#else
#ifdef MUTANT_SIGHT_OUTLASTS_VERSION
			if :: h != 0 && h == seenHolder :: else -> seenAt = now fi;
			seenHolder = h
#else
			seenAt = now
#endif
#endif
		:: else
		fi
	}
}

#ifdef MUTANT_OWN_LEASE_COUNTS
#define OVER (now >= seenAt + TERM(me))
#else
#define OVER (now >= seenAt + d)
#endif

active [N] proctype client() {
	byte me, next, last, result, i;
	byte v, h, t, d;                /* the document as it is known */
	byte seenVersion, seenAt;       /* the sight of it */
	byte id, began, tried, mine;    /* the acquisition, its begin, what its write should replace, its token */
	bit blind;                      /* the known document is that of the own release */
#ifdef MUTANT_SEEN_WHEN_ASKED
	byte asked;
#endif
#ifdef MUTANT_SIGHT_OUTLASTS_VERSION
	byte seenHolder;
#endif
	d_step {
		me = _pid - W - 1;
		next = (me == 0 -> 0 : W0 + (me-1)*W1);
		last = (me == 0 -> W0 : next + W1);
		seenVersion = 255
	}

acquire:
	atomic {                        /* Acquire */
		if :: next == last -> goto stops :: else fi;
		if :: id == 0 -> acquisitions++; id = acquisitions :: else fi;
		began = now; tried = 0; mine = 0; result = 0
	}
again:
	if
	:: blind -> blind = 0
	:: !blind -> load()
	fi;
	if
	:: h != 0 && h != id && !OVER ->        /* refused: it asks again when that may help */
		atomic { seenVersion != version || OVER -> h = 0; t = 0; d = 0; goto acquire }
	:: else
	fi;
	atomic {
		tried = v;
#ifdef MUTANT_TAKEOVER_KEEPS_TOKEN
		mine = (h == 0 -> t + 1 : t);
#else
		mine = t + 1;
#endif
		h = 0; t = 0; d = 0
	}
	swap(v, id, mine, TERM(me));
	if
	:: result == ok
	:: result == conflict -> goto again
	:: result == unknown ->         /* Lookup */
look:
		load();
		if
		:: h == id ->
#ifdef MUTANT_LOOKUP_BEGINS_THE_LEASE
			began = now;
#endif
			mine = t
#ifdef MUTANT_LOOKUP_BELIEVES_THE_FIRST_LOOK
		:: h != id -> goto settled
#endif
		:: h != id && v != tried -> goto settled
		:: h != id && v == tried ->
			swap(v, 0, t, 0);       /* it may still come */
			if
			:: result == ok -> goto settled
			:: result == conflict -> goto look
			:: result == unknown -> id = 0; goto acquire
			fi
		fi
	fi;
#ifdef MUTANT_LEASE_BEGINS_WITH_THE_ANSWER
	began = now;
#endif
	atomic { h = 0; t = 0; d = 0; tried = 0; result = 0; rely(began + TERM(me)) }
	do
	:: atomic { now < until[me] -> began = now }    /* Renew */
renew:
		swap(v, id, mine, TERM(me));
		if
		:: result == ok ->
			atomic { if :: now < until[me] -> rely(began + TERM(me)) :: else fi }
		:: result == conflict ->
			load();
			if
#ifdef MUTANT_RENEWAL_ACQUIRES
			:: true -> goto renew
#else
			:: h == id -> goto renew
			:: else -> until[me] = 0; id = 0; goto acquire  /* lost */
#endif
			fi
		:: result == unknown
		fi;
		result = 0
	:: until[me] = 0;               /* Release */
free:
		swap(v, 0, mine, 0);
		if
		:: result == ok -> blind = 1; h = 0; t = mine; id = 0; goto acquire
		:: result == conflict ->
			load();
			if
#ifdef MUTANT_RELEASE_FREES_ANY
			:: true -> goto free
#else
			:: h == id -> goto free
			:: else -> id = 0; goto acquire
#endif
			fi
		:: result == unknown -> goto free
		fi
	od;

settled:
	atomic { settledOnes = settledOnes | (1 << id); id = 0; goto acquire }
stops:
	skip
}
