/* One Place of package park, place.go: a waiter that parks in both ways, in turns as it likes, and two
 * goroutines that unpark. A waiter says with the mutex that it waits. A goroutine that finds it waiting ends
 * that, and unparks it after it has given the mutex back, however late. */

#ifndef N
#define N 2                     /* goroutines that unpark */
#endif

/* Place.state */
#define empty  0
#define permit 1
#define parked 2

/* The waiter's ticket of Place.cond: a signal reaches it only after it was taken. */
#define none     0
#define taken    1
#define signaled 2

byte state, ticket;
bit withGuard;                  /* Place.guard is not nil */
byte mutex;                     /* 0, or its holder: the waiter is 1 */
bit waits;                      /* the waiter is in the queue, guarded by the mutex */

/* ghosts */
bit told;                       /* the wait was ended, and the waiter has not returned */
bit ended;

/* A property is a variable, so that an error report has its name. */
hidden byte no_lost_wakeup, one_unpark_per_park, mutex_is_held;
#define CHECK(property, expression) property = (expression); assert(property)

#define LOCK(n) atomic { mutex == 0 -> mutex = n }
#define UNLOCK(n) d_step { CHECK(mutex_is_held, mutex == n); mutex = 0 }

/* sync.Cond.Signal */
#define SIGNAL d_step { if :: ticket == taken -> ticket = signaled :: else fi }

/* Place.Park: sync.Cond.Wait takes the ticket, calls locker.Unlock, and waits for a signal. */
inline Park() {
#ifndef MUTANT_TICKET_AFTER_UNLOCK
	ticket = taken;
#endif
	if
	:: withGuard -> UNLOCK(1)
	:: else ->
#ifdef MUTANT_PARK_STORES_PARKED
		ok = (state == empty);
		if :: ok -> state = parked :: else fi;
#else
		d_step { ok = (state == empty); if :: ok -> state = parked :: else fi }
#endif
		if
		:: ok
		:: else -> state = empty; SIGNAL
		fi
	fi;
#ifdef MUTANT_TICKET_AFTER_UNLOCK
	ticket = taken;
#endif
	atomic { ticket == signaled -> ticket = none; ok = 0 }
}

/* Place.Unpark */
inline Unpark() {
	if
	:: withGuard ->
#ifdef MUTANT_GUARD_CLEARED_LATE
		SIGNAL; withGuard = 0
#else
		withGuard = 0; SIGNAL
#endif
	:: else ->
		do
		:: d_step { ok = (state == parked); if :: ok -> state = empty :: else fi }
			if :: ok -> SIGNAL; break :: else fi;
#ifdef MUTANT_UNPARK_LEAVES_NO_PERMIT
			break
#else
			d_step { ok = (state == empty); if :: ok -> state = permit :: else fi }
			if :: ok || state == permit -> break :: else fi
#endif
		od
	fi
}

active proctype waiter() {
	bit ok, keeps;
	do
	:: true ->
		if :: keeps = 0 :: keeps = 1 fi;
		atomic { LOCK(1); waits = 1 }
		if
		:: keeps ->                                             /* ParkAndUnlock */
#ifdef MUTANT_GUARD_SET_LATE
			UNLOCK(1); LOCK(1);
#endif
			withGuard = 1
		:: else -> UNLOCK(1)
		fi;
		Park();
		d_step {
			CHECK(one_unpark_per_park, told && state == empty && !withGuard);
			told = 0; keeps = 0
		}
	:: true -> break
	od;
	ended = 1
}

active [N] proctype unparker() {
	bit ok;
	do
	:: atomic { waits && mutex == 0 -> waits = 0; told = 1; mutex = 1 + _pid }
		UNLOCK(1 + _pid);
		Unpark();
		ok = 0
	:: ended -> break
	od
}

active proctype monitor() {
	timeout -> CHECK(no_lost_wakeup, ended && mutex == 0)
}
