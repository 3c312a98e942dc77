/* keyed: mutexes.go and mutex.go, one shard. An entry's lock is a word; its queue is in queue.pml. */
#ifndef N
#define N 3
#endif
#ifndef ROUNDS
#define ROUNDS 2                /* acquisitions of a goroutine */
#endif
#ifndef KEYS
#define KEYS 2
#endif
#define ENTRIES (N * ROUNDS)    /* a collected entry is not used again */
#define NONE 255
#define RETIRED 254

bit mu;
byte holder = NONE, soleKey = NONE;     /* the sole hold */
byte contended = NONE;
byte word[ENTRIES] = NONE;              /* the holder of the lock, RETIRED, or NONE */
byte users[ENTRIES];
byte key[ENTRIES] = NONE;
bit chained[ENTRIES], spare[ENTRIES];
byte made;

/* ghosts */
byte excl[KEYS], ended;
hidden byte mutual_exclusion, entry_is_in_use, entry_is_unused, unlock_succeeds, no_lost_wakeup, unused_key_is_deleted;
#define CHECK(property, expression) property = (expression); assert(property)
hidden byte i;

#define MU      atomic { mu == 0 -> mu = 1 }

/* shard.add with spareEntry; mu is held. No other goroutine has a pointer to the entry. */
inline add(by) {
	i = 0;
	do :: i < made && !spare[i] -> i++ :: else -> break od;
	if :: i == made -> made++ :: else fi;
	CHECK(entry_is_unused, users[i] == 0 && word[i] == NONE && !chained[i]);
	spare[i] = 0; chained[i] = 1; key[i] = k; word[i] = by; e = i; i = 0
}

/* shard.find with move; mu is held; e */
inline find() {
	if
	:: holder != NONE && soleKey == k -> add(holder); holder = NONE; soleKey = NONE
	:: else ->
		e = 0;
		do :: e < made && !(chained[e] && key[e] == k) -> e++ :: else -> break od;
		if :: e == made -> e = NONE :: else fi
	fi
}

/* shard.addUser, with useContended; ok if the goroutine holds the lock, else e */
inline addUser(lock, waits) {
	e = contended;
	if
	:: e != NONE ->
		if
		:: key[e] == k ->
			if
			:: lock -> d_step { if :: word[e] == NONE -> word[e] = me; ok = 1 :: else fi }
			:: else
			fi;
			if
			:: !ok ->
#ifdef MUTANT_JOINS_FROM_ZERO
				d_step { users[e]++; joined = 1 }
#else
				d_step { if :: users[e] > 0 -> users[e]++; joined = 1 :: else fi }
#endif
			:: else
			fi
		:: else
		fi
	:: else
	fi;
	if
	:: ok || joined
	:: else ->
		MU;
		d_step {
			find();
			if
			:: e != NONE
			:: lock && holder == NONE && e == NONE -> holder = me; soleKey = k; ok = 1; mu = 0
			:: !(lock && holder == NONE) && e == NONE ->
				if :: lock -> add(me); ok = 1; mu = 0 :: else -> add(NONE) fi
			fi
		}
		if
		:: ok
		:: else ->
			d_step { users[e]++; joined = (users[e] > 1 && waits && contended == NONE) }
			d_step { if :: joined -> contended = e :: else fi; mu = 0 }
		fi
	fi;
	d_step { joined = 0; if :: ok -> e = NONE :: else fi }
}

/* shard.sweep; mu is held, and given back */
inline sweep() {
	if
	:: users[e] != 0
	:: else ->
		if
		:: contended == e ->
#ifdef MUTANT_SWEEP_LOOKS_AT_LOCK
			done = (word[e] == NONE);
			if :: done -> word[e] = RETIRED :: else fi;
#else
			d_step { done = (word[e] == NONE); if :: done -> word[e] = RETIRED :: else fi }
#endif
			d_step {
				if
				:: done ->
#ifdef MUTANT_CONTENDED_SERVES_AGAIN
					word[e] = NONE; key[e] = NONE; spare[e] = 1;
#endif
					contended = NONE; CHECK(entry_is_unused, chained[e] && users[e] == 0); chained[e] = 0
				:: else
				fi
			}
		:: else ->
			d_step {
				if
				:: word[e] == NONE ->
					CHECK(entry_is_unused, chained[e] && users[e] == 0);
					chained[e] = 0; key[e] = NONE; spare[e] = 1
				:: else
				fi
			}
		fi
	fi;
	d_step { done = 0; mu = 0 }
}

/* shard.dropUser */
inline dropUser() {
	d_step {
		CHECK(entry_is_in_use, users[e] > 0);
#ifdef MUTANT_LAST_USER_LEAVES_ALONE
		users[e]--; done = (users[e] > 0)
#else
		if :: users[e] > 1 -> users[e]--; done = 1 :: else fi
#endif
	}
	if
	:: done
	:: else ->
		MU;
#ifndef MUTANT_LAST_USER_LEAVES_ALONE
		d_step { CHECK(entry_is_in_use, users[e] > 0); users[e]-- }
#endif
		sweep()
	fi;
	done = 0
}

/* Mutex.unlock, with unlockContended */
inline unlock() {
	e = contended;
	if
	:: e != NONE && key[e] == k && word[e] == me ->
#ifdef MUTANT_RELEASE_LOOKS_FIRST
		done = (users[e] == 0);
		word[e] = NONE;
#else
		word[e] = NONE;
		done = (users[e] == 0);
#endif
		done = (done && word[e] == NONE);
#ifdef MUTANT_RELEASE_SWEEPS_NOTHING
		done = 0;
#endif
		if :: done -> done = 0; MU; sweep() :: else fi
	:: else ->
		MU;
		d_step {
			if
			:: holder == me && soleKey == k -> holder = NONE; soleKey = NONE; done = 1; mu = 0
			:: else -> find(); CHECK(unlock_succeeds, e != NONE && word[e] == me)
			fi
		}
		if
		:: done
		:: else ->
			if
			:: users[e] == 0 -> word[e] = NONE; sweep()
#ifdef MUTANT_RELEASE_IS_NO_USER
			:: else -> mu = 0; word[e] = NONE; MU; sweep()
#else
			:: else -> d_step { users[e]++; mu = 0 } word[e] = NONE; dropUser()
#endif
			fi
		fi
	fi;
	d_step { done = 0; e = NONE }
}

proctype goroutine(byte me) {
	byte e = NONE, k, rounds;
	bit ok, joined, done, waits, lock;
	do
	:: rounds < ROUNDS ->
		rounds++;
		select(k : 0 .. KEYS - 1);
		if
		:: waits = 1; lock = 1          /* Lock */
		:: waits = 0; lock = 1          /* TryLock */
#ifdef OWNERS
		:: waits = 1; lock = 0          /* LockContext of an explicit owner */
		:: waits = 0; lock = 0          /* NewCond, until its end */
#endif
		fi;
		addUser(lock, waits);
		if
		:: ok
		:: else ->
			if
			:: waits || lock ->
				if
				:: atomic { word[e] == NONE -> word[e] = me; ok = 1 }
#ifndef LIMIT
				:: !waits
#else
				:: true
#endif
				fi
			:: else
			fi;
			dropUser()
		fi;
		e = NONE;
		if
		:: ok ->
			d_step { excl[k]++; CHECK(mutual_exclusion, excl[k] == 1) }
			d_step { excl[k]--; ok = 0 }
			unlock()
		:: else
		fi;
		d_step { k = 0; lock = 0; waits = 0 }
	:: true -> break
	od;
	ended++
}

active proctype monitor() {
	timeout ->
	CHECK(no_lost_wakeup, ended == N);
	d_step {
		i = 0;
		do
		:: i < made ->
			CHECK(unused_key_is_deleted, !chained[i] && users[i] == 0 && (word[i] == NONE || word[i] == RETIRED));
			i++
		:: else -> break
		od;
		i = 0
	}
	CHECK(unused_key_is_deleted, mu == 0 && holder == NONE && contended == NONE)
}

init {
	atomic {
		byte g = 0;
		do :: g < N -> run goroutine(g); g++ :: else -> break od
	}
}
