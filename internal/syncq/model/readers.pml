/* The refusal of a wait that would close a cycle, as in cycles.pml, for locks with shared holds. The
 * mutex of Begin is held during a search. Therefore no wait begins meanwhile, a goroutine stands for
 * its wait's WaitID, and there is one copy of the search's variables. The queue is FIFO. */
#ifndef N
#define N 3                     /* goroutines */
#endif
#ifndef L
#define L 2                     /* locks */
#endif
#define bit_(g) (1 << (g))

byte owner[L];                  /* g + 1 of the exclusive holder, or 0 */
byte readers[L];                /* a bit for each shared holder */
byte q[L * N], length[L];       /* the queue of lock l begins at q[l * N] */
byte at[N];                     /* l + 1 of the queue that the goroutine is in, or 0 */
bit sh[N];                      /* its wait is shared */
byte awaited[N];                /* l + 1, or 0; may be out of date */
bit begin;

/* the search */
byte lo, lh, lb, c;             /* look: the owner, the holders, behind, and a counter */
bit ok, all, joined, third, closes;
byte who[N], for_[N], from[N], holders[N], behind[N], n, k, g, j, seen, followed;
byte pathWho[N], pathFor[N], length_;

/* ghosts */
byte ended;
bit stood[N];
hidden byte mutual_exclusion, no_deadlock, refused_in_cycle, one_refusal, cancelled_is_out, lock_is_free_at_last;
#define CHECK(property, expression) property = (expression); assert(property)
hidden byte i, x, y, z;

inline remove(w) {
	z = at[w] - 1; i = z * N;
	do :: q[i] != w -> i++ :: else -> break od;
	do :: i < z * N + length[z] - 1 -> q[i] = q[i+1]; i++ :: else -> break od;
	q[i] = 0; length[z]--; at[w] = 0; i = 0; z = 0
}

/* advance with KEEP, FIFO */
inline advance(l) {
	do
	:: length[l] && !sh[q[l * N]] && owner[l] == 0 && readers[l] == 0 -> x = q[l * N]; remove(x); owner[l] = x + 1
	:: length[l] && sh[q[l * N]] && owner[l] == 0 -> x = q[l * N]; remove(x); readers[l] = readers[l] | bit_(x)
	:: else -> break
	od;
	x = 0
}

/* the nearest exclusive wait ahead of goroutine w, which waits for lock l: x is its goroutine + 1 */
inline ahead(l, w) {
	i = (l) * N; x = 0;
	do
	:: q[i] == w -> break
	:: else -> if :: sh[q[i]] :: else -> x = q[i] + 1 fi; i++
	od;
	i = 0
}

/* ghost: y has a bit for each goroutine that the wait of me leads to */
inline onCycle() {
	y = 0; c = 0; j = me;
	do
	:: c < N * N ->
		if
		:: at[j] && (j == me || (y & bit_(j))) ->
			if
			:: owner[at[j]-1] -> y = y | bit_(owner[at[j]-1] - 1)
			:: owner[at[j]-1] == 0 && !sh[j] -> y = y | readers[at[j]-1]
			:: else -> ahead(at[j]-1, j); if :: x -> y = y | bit_(x - 1) :: else fi
			fi
		:: else
		fi;
		j = (j + 1) % N; c++
	:: else -> break
	od;
	c = 0; j = 0; x = 0
}

/* Entry.Enqueue, with watcher.Queued: ok is its result */
inline Enqueue(l) {
	d_step {
		if
		:: !sh[me] && owner[l] == 0 && readers[l] == 0 -> owner[l] = me + 1; ok = 0
		:: sh[me] && owner[l] == 0 && length[l] == 0 -> readers[l] = readers[l] | bit_(me); ok = 0
		:: else -> q[l * N + length[l]] = me; length[l]++; at[me] = l + 1; awaited[me] = l + 1; ok = 1
		fi
	}
}

/* Holders, with the owner lo; Kind.Holders has a step for each goroutine */
inline Holders(l) {
	lh = 0;
	if
	:: lo -> lh = bit_(lo - 1)
	:: else ->
		do
		:: c < N -> d_step { lh = lh | (readers[l] & bit_(c)); c++ }
		:: else -> break
		od;
		c = 0
	fi;
	lo = 0
}

/* look for the wait of goroutine w: ok, lh and lb */
inline look(l, w) {
	lo = owner[l];
	d_step {
		ok = (at[w] == l + 1); lb = 0; lh = 0;
		if :: ok && sh[w] && lo == 0 -> ahead(l, w); lb = x; x = 0 :: else fi;
		if :: !ok || (sh[w] && lo == 0) -> x = 0 :: else -> x = 1 fi
	}
	if
	:: ok && (!sh[w] || lo != 0) -> Holders(l)
	:: else -> lo = 0
	fi
}

inline append(w, l) {
	d_step {
		if
		:: !(seen & bit_(w)) ->
			seen = seen | bit_(w); who[n] = w; for_[n] = l; from[n] = k; holders[n] = lh; behind[n] = lb; n++
		:: else
		fi;
		lh = 0; lb = 0; ok = 0
	}
}

/* cycleThrough, with waitsOf and nearest: length_ is the number of waits on the path, or 0 */
inline cycleThrough(l) {
	atomic { n = 0; k = 0; seen = 0; followed = 0; length_ = 0 }
	append(me, l);
	do
	:: k == n -> break
	:: k < n && (followed & bit_(for_[k])) -> k++
	:: k < n && !(followed & bit_(for_[k])) && (holders[k] & bit_(me)) ->
		d_step {
			x = k; length_ = 1;
			do :: x != 0 -> x = from[x]; length_++ :: else -> break od;
			x = k; i = length_;
			do :: i > 0 -> i--; pathWho[i] = who[x]; pathFor[i] = for_[x]; x = from[x] :: else -> break od;
			x = 0
		}
		break
	:: k < n && !(followed & bit_(for_[k])) && !(holders[k] & bit_(me)) && holders[k] ->
		followed = followed | bit_(for_[k]);
		do
		:: g < N ->
			if
			:: (holders[k] & bit_(g)) && awaited[g] ->
				j = awaited[g];
				if
				:: j -> look(j - 1, g); if :: ok -> append(g, j - 1) :: else fi
				:: else
				fi;
				j = 0
			:: else
			fi;
#ifdef MUTANT_FOLLOWS_ONE_HOLDER
			if :: holders[k] & bit_(g) -> g = N :: else -> g++ fi
#else
			g++
#endif
		:: else -> break
		od;
		g = 0; k++
	:: k < n && !(followed & bit_(for_[k])) && holders[k] == 0 ->
#ifndef MUTANT_QUEUE_IS_NO_EDGE
		lb = behind[k];
#endif
		do
		:: lb == 0 -> break
		:: lb != 0 ->
			g = lb - 1;
			look(for_[k], g);
			if :: ok -> append(g, for_[k]); break :: else fi;
			look(for_[k], who[k]);
			if :: !ok -> lb = 0 :: else fi
		od;
		atomic { g = 0; lb = 0; lh = 0; ok = 0 }
		k++
	od;
	n = 0;
	d_step {
		k = 0; seen = 0; followed = 0; lh = 0; lb = 0; ok = 0; i = 0;
		do :: i < N -> who[i] = 0; for_[i] = 0; from[i] = 0; holders[i] = 0; behind[i] = 0; i++ :: else -> break od;
		i = 0
	}
}

/* again: all says whether all waits of the path were there, and joined (closed) whether each had an
 * edge to the next one */
inline again() {
	atomic { all = 1; joined = 1 }
	do
	:: k < length_ ->
		look(pathFor[k], pathWho[k]);
		d_step {
			if :: !ok -> all = 0 :: else fi;
			x = pathWho[(k + 1 == length_ -> 0 : k + 1)];
			if :: lb != x + 1 && !(lh & bit_(x)) -> joined = 0 :: else fi;
			lh = 0; lb = 0; ok = 0; x = 0; k++
		}
	:: else -> break
	od;
	k = 0
}

/* begun and closesCycle: closes. me is in the queue of lock l, or was. */
inline closesCycle(l) {
	closes = 0; ok = 0;
	if :: sh[me] -> look(l, me) :: else fi;
	if :: !ok -> lo = owner[l]; Holders(l) :: else fi;
	do
	:: true ->
		cycleThrough(l);
		if :: length_ == 0 -> break :: else fi;
		again();
		d_step { onCycle(); stood[me] = ((y & bit_(me)) != 0); y = 0; third = all && joined }
		again();
		if :: third && all -> closes = 1; break :: else fi;
		look(l, me);
		if :: !ok -> break :: else fi           /* it has the lock */
	od;
	length_ = 0;
	d_step {
		i = 0; do :: i < N -> pathWho[i] = 0; pathFor[i] = 0; i++ :: else -> break od;
		i = 0; lh = 0; lb = 0; ok = 0; all = 0; joined = 0; third = 0
	}
}

/* watcher.Begin with Entry.Refuse, and the wait: has */
inline Lock(l) {
	atomic { begin == 0 -> begin = 1 }
	Enqueue(l);
	has = 1;
	if
	:: ok ->
		closesCycle(l);
		d_step {
			if
			:: closes && at[me] ->
				CHECK(refused_in_cycle, stood[me]);
#ifndef LIMIT
				onCycle(); CHECK(one_refusal, y & bit_(me)); y = 0;
#endif
				remove(me); advance(l); has = 0
			:: else
			fi;
			stood[me] = 0; closes = 0
		}
	:: else
	fi;
	begin = 0;
	if
	:: has ->
		if
		:: at[me] == 0
#ifdef LIMIT
		:: d_step { at[me] -> remove(me); advance(l); has = 0 }
#endif
		fi
	:: else
	fi;
	awaited[me] = 0;
	d_step {
		CHECK(cancelled_is_out, at[me] == 0 && has == (owner[l] == me + 1 || (readers[l] & bit_(me)) != 0));
		CHECK(mutual_exclusion, owner[l] == 0 || readers[l] == 0);
		sh[me] = 0
	}
}

inline Unlock(l) {
	d_step {
		if :: owner[l] == me + 1 -> owner[l] = 0 :: else -> readers[l] = readers[l] & ~bit_(me) fi;
		advance(l)
	}
}

proctype goroutine(byte me) {
	byte a, b;
	bit has;
	if :: a = me % L; b = (me + 1) % L :: b = me % L; a = (me + 1) % L fi;
#ifdef FIRST
	sh[me] = FIRST;         /* whether the first hold is shared */
#else
	if :: sh[me] = 0 :: sh[me] = 1 fi;
#endif
	Lock(a);
	if
	:: has ->
		if :: sh[me] = 0 :: sh[me] = 1 fi;
		Lock(b);
		if :: has -> Unlock(b) :: else fi;
		Unlock(a)
	:: else
	fi;
	d_step { a = 0; b = 0; has = 0 }
	ended++
}

active proctype monitor() {
	timeout ->
	CHECK(no_deadlock, ended == N && begin == 0);
	i = 0;
	do :: i < L -> CHECK(lock_is_free_at_last, owner[i] == 0 && readers[i] == 0 && length[i] == 0); i++ :: else -> break od
}

init {
	atomic {
		byte p = 0;
		do :: p < N -> run goroutine(p); p++ :: else -> break od
	}
}
