package lockstest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/keytext"
)

var checks = []check{
	{"AFreeLockIsTakenAndGivenBack", nil, freeLockIsAcquired},
	{"TryLockOfAFreeLockIsAlwaysTrue", nil, freeTryIsTrue},
	{"TryLockIsFalseWhileAnotherHoldsAndNeverWaits", nil, tryIsFalse},
	{"LockWaitsForTheHolder", nil, lockWaits},
	{"OneHoldsAtATime", nil, oneHolds},
	{"EveryWaiterIsAdmitted", nil, everyWaiter},
	{"ManyAcquisitionsDoNotWearItOut", nil, wearsNotOut},
	{"AcquisitionsAndTimeoutsRetainNoMemory", not(leased), retainsNothing},
	{"TwoLocksAreIndependent", not(leased), independent},
	{"UnlockHappensBeforeTheNextLock", nil, happensBefore},
	{"UnlockOfAFreeLockIsErrNotHeld", nil, unlockOfFree},
	{"UnlockByAnotherOwnerIsErrNotHeld", owned, unlockByAnother},
	{"AnyGoroutineMayUnlock", not(owned), anyMayUnlock},
	{"OnlyTheLastReleaseFrees", reentrant, lastReleaseFrees},
	{"ManyHoldsOfOneOwnerAreCounted", reentrant, holdsAreCounted},
	{"ReentryIsNotBlockedByWaiters", reentrant, reentryPassesQueue},
	{"TryLockByTheHolderIsFalse", both(not(reentrant), not(shared)), tryByHolder},
	{"ADoneContextBeatsAFreeLock", nil, doneBeatsFree},
	{"ADoneContextBeatsReentry", reentrant, doneBeatsReentry},
	{"ADeadlineEndsTheWait", nil, deadlineEndsWait},
	{"ACancelledWaiterLeavesNoGhost", nil, cancelLeavesNoGhost},
	{"AGrantBeatsALaterEndOfTheContext", nil, grantBeatsEnd},
	{"ALockIsReleasedUnderADoneContext", nil, unlockUnderDone},
	{"AContextsMethodsMayWaitForAnotherUser", nil, contextsRunFreely},
	{"AnotherAcquiresWhileAContextsMethodWaits", nil, contextsKeepNoTurn},
	{"AContextThatEndsLaterDoesNotRelease", nil, contextDoesNotBoundHold},
	{"ANilContextIsErrNilContext", nil, nilContext},
	{"UnlockWithANilContextActsForTheGoroutine", nil, unlockWithNil},
	{"AnExplicitOwnerMovesBetweenGoroutines", owned, ownerMoves},
	{"AnExplicitOwnerSharesReentrancy", reentrant, ownerSharesReentrancy},
	{"AnotherOwnerInTheSameGoroutineHoldsNothing", owned, ownersInOneGoroutine},
	{"WaitersAreAdmittedInOrderOfArrival", both(fifo, not(shared)), fifoOrder},
	{"OrderIsKeptWhenOneInTheMiddleCancels", both(fifo, not(shared)), fifoOrderAfterCancel},
	{"AReleaserDoesNotOvertakeTheWaiter", both(fifo, not(shared)), releaserQueues},
	{"AReaderDoesNotOvertakeAWriter", both(fifo, shared), readerQueues},
	{"DoReleasesOnEveryExit", nil, doReleases},
	{"AStormOfTimeoutsLeavesAUsableLock", nil, timeoutStorm},
	{"ARandomHistoryIsLinearizable", nil, linearizable},
	{"PlainMethodsAgreeWithTheContextFamily", nil, plainFamily},
	{"TryLockForWaitsForItsTimeAndNoLonger", nil, timedFamily},
	{"InspectTellsWhoHoldsAndWhoWaits", nil, inspectAnswers},
	{"ReadersAreInsideTogether", shared, readersTogether},
	{"ReadersAndWritersExcludeEachOther", shared, readersAndWriters},
	{"ManyReadersAreCounted", shared, readersAreCounted},
	{"AViewReleasesItsOwnHoldsOnly", shared, viewsApart},
	{"AWriterThatReadsKeepsWritersOut", shared, downgrade},
	{"ACancelledWriterLetsReadersIn", shared, cancelledWriter},
	{"LeasedIsImplementedIfDeclared", nil, leasedAsDeclared},
	{"AHoldIsForTheHolder", leased, holdIsForHolder},
	{"AHoldLastsUntilTheLastRelease", leased, holdLasts},
	{"FencingTokensIncreaseFromHolderToHolder", leased, tokensIncrease},
	{"ALossIsTold", loses, lossIsReported},
	{"DoTellsALossToItsFunction", loses, doReportsLoss},
}

func owned(c Config) bool     { return c.Owned }
func reentrant(c Config) bool { return c.Reentrant }
func shared(c Config) bool    { return c.shared() }
func fifo(c Config) bool      { return c.FIFO }
func leased(c Config) bool    { return c.Leased }
func loses(c Config) bool     { return c.Leased && c.Lose != nil }

func not(f func(Config) bool) func(Config) bool { return func(c Config) bool { return !f(c) } }
func both(f, g func(Config) bool) func(Config) bool {
	return func(c Config) bool { return f(c) && g(c) }
}

func freeLockIsAcquired(s *suite) {
	a, b := s.party(), s.party()
	for range 3 {
		a.mustLock(s.l)
		s.mustBeHeld("LockContext has returned nil")
		a.mustUnlock(s.l)
		b.mustTry(s.l)
		s.mustBeHeld("TryLockContext has returned true")
		b.mustUnlock(s.l)
	}
	s.mustBeFree("every hold was given back")
	require.NoError(s, a.lock(s.l, context.Background()), "with a context that never ends")
	a.mustUnlock(s.l)
}

// tries is how often a free lock is tried. A lock that fails one try in ten passes so many tries
// with a probability of 1 in a billion.
const tries = 200

// spuriousFor is how long the tries of a lock that declares SpuriousTry may fail.
const spuriousFor = 30 * time.Second

func freeTryIsTrue(s *suite) {
	a, b := s.party(), s.party()
	for i := range tries {
		p, l := a, s.l
		switch i % 4 { // the release before was by the same party, or by the other party, of either view
		case 1:
			l = s.x
		case 2, 3:
			p = b
		}
		ok, err := p.try(l, s.ctx)
		for begun := time.Now(); s.cfg.SpuriousTry && !ok && err == nil && time.Since(begun) < spuriousFor; {
			ok, err = p.try(l, s.ctx)
		}
		require.NoError(s, err)
		require.True(s, ok, "the lock is free, but try %d of %d fails", i+1, tries)
		p.mustUnlock(l)
		if i%10 == 9 { // LockContext has come before the next try
			p.mustLock(l)
			p.mustUnlock(l)
		}
	}
}

func tryIsFalse(s *suite) {
	a, b := s.party(), s.party()
	for _, pair := range [][2]locks.TryLocker{{s.x, s.l}, {s.l, s.x}} {
		a.mustLock(pair[0])
		for range 3 {
			ok, err := b.try(pair[1], s.ctx)
			require.NoError(s, err, "that another one holds the lock is no error")
			require.False(s, ok)
		}
		a.mustUnlock(pair[0])
		s.mustBeFree("a failed TryLockContext leaves nothing behind")
	}
}

func lockWaits(s *suite) {
	a, b := s.party(), s.party()
	a.mustLock(s.x)
	c := b.startLock(s.l, s.ctx)
	s.mustWait(c, s.l, 1)
	s.mustStillWait(c, "the lock is held")
	a.mustUnlock(s.x)
	s.await(c, "LockContext of a lock that was released")
	require.NoError(s, c.err)
	s.mustCount(s.l, 0, "the only one was admitted")
	s.mustBeHeld("the waiter was admitted")
	b.mustUnlock(s.l)
	s.mustBeFree("the waiter has released it")
}

// acquire takes l in the i-th of several ways. False without an error is a try that failed.
func (s *suite) acquire(l locks.TryLocker, i int) (bool, error) {
	limit := time.Duration(i%50) * s.cfg.Settle / 100
	switch i % 7 {
	case 6:
		if l, ok := l.(timed); ok {
			return l.TryLockFor(limit), nil
		}
		fallthrough
	case 5:
		if l, ok := l.(plain); ok {
			l.Lock()
			return true, nil
		}
		fallthrough
	case 4:
		if l, ok := l.(plain); ok {
			return l.TryLock(), nil
		}
		fallthrough
	case 0:
		return true, l.LockContext(context.Background())
	case 1:
		return true, l.LockContext(s.ctx)
	case 2:
		ok, err := l.TryLockContext(s.ctx)
		if !ok {
			runtime.Gosched()
		}
		return ok, err
	}
	ctx, cancel := context.WithTimeout(s.ctx, limit)
	defer cancel()
	err := l.LockContext(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return false, nil
	}
	return true, err
}

// release gives l back in the i-th of several ways.
func (s *suite) release(l locks.TryLocker, i int) error {
	if l, ok := l.(plain); ok && i%3 == 0 {
		l.Unlock()
		return nil
	}
	return l.UnlockContext(s.ctx)
}

// linger passes the time of a holder in its i-th turn, before it releases. Often it lets other
// goroutines run. Now and then it sleeps, so that the others can get in wrongly even on a busy
// machine.
func (s *suite) linger(i int) {
	switch {
	case i%48 == 0:
		time.Sleep(s.cfg.Settle / 20)
	case i%4 == 0:
		runtime.Gosched()
	}
}

func oneHolds(s *suite) {
	var inside, most atomic.Int32
	s.together(s.cfg.Goroutines, func(g int) error {
		for i := range s.cfg.Rounds {
			ok, err := s.acquire(s.x, g+i)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			if n := inside.Add(1); n > 1 {
				most.Store(n)
			}
			s.linger(i)
			inside.Add(-1)
			if err := s.release(s.x, i); err != nil {
				return err
			}
		}
		return nil
	})
	require.Zero(s, most.Load(), "several were inside at once")
	s.mustBeFree("all have released it")
}

func happensBefore(s *suite) {
	var count, inside int // deliberately not atomic: the race detector watches them
	s.together(s.cfg.Goroutines, func(g int) error {
		for i := range s.cfg.Rounds {
			for way := g + i; ; way++ {
				ok, err := s.acquire(s.x, way)
				if err != nil {
					return err
				}
				if ok {
					break
				}
			}
			inside++
			n := inside
			count++
			s.linger(i)
			inside--
			if err := s.release(s.x, i); err != nil {
				return err
			}
			if n != 1 {
				return fmt.Errorf("%d were inside at once", n)
			}
		}
		return nil
	})
	require.Equal(s, s.cfg.Goroutines*s.cfg.Rounds, count, "updates were lost")
}

func unlockOfFree(s *suite) {
	a := s.party()
	require.ErrorIs(s, a.unlock(s.l, s.ctx), locks.ErrNotHeld, "never locked")
	s.mustBeFree("UnlockContext of a free lock was refused")
	a.mustLock(s.l)
	a.mustUnlock(s.l)
	require.ErrorIs(s, a.unlock(s.l, s.ctx), locks.ErrNotHeld, "released already")
	s.mustBeFree("UnlockContext of a free lock was refused")
	a.mustLock(s.x)
	s.mustBeHeld("it was locked after a refused UnlockContext")
	a.mustUnlock(s.x)
	s.mustBeFree("it was locked once and released once")
}

func unlockByAnother(s *suite) {
	a, b, c := s.party(), s.party(), s.party()
	a.mustLock(s.l)
	require.ErrorIs(s, b.unlock(s.l, s.ctx), locks.ErrNotHeld)
	s.mustBeHeld("another one's UnlockContext was refused")
	waiting := c.startLock(s.x, s.ctx)
	s.mustWait(waiting, s.x, 1)
	require.ErrorIs(s, b.unlock(s.l, s.ctx), locks.ErrNotHeld)
	err := b.unlock(s.x, s.ctx)
	require.ErrorIs(s, err, locks.ErrNotHeld)
	require.NotRegexp(s, `\bfree\b`, err.Error(), "another one holds it")
	s.mustStillWait(waiting, "the owner has not released it")
	a.mustUnlock(s.l)
	s.await(waiting, "LockContext")
	require.NoError(s, waiting.err)
	c.mustUnlock(s.x)
	s.mustBeFree("all have released it")
}

func anyMayUnlock(s *suite) {
	a, b := s.party(), s.party()
	a.mustLock(s.l)
	b.mustUnlock(s.l)
	s.mustBeFree("another goroutine has released it")
	b.mustTry(s.l)
	require.NoError(s, a.unlock(s.l, locks.WithOwner(s.ctx, locks.NewOwner())), "owners are ignored")
	s.mustBeFree("another goroutine has released it")
}

func lastReleaseFrees(s *suite) {
	a := s.party()
	a.mustLock(s.l)
	a.mustLock(s.l)
	a.mustTry(s.l)
	for range 2 {
		a.mustUnlock(s.l)
		s.mustBeHeld("the owner has a hold left")
	}
	a.mustUnlock(s.l)
	s.mustBeFree("the owner has released every hold")
	require.ErrorIs(s, a.unlock(s.l, s.ctx), locks.ErrNotHeld, "one more than there were holds")
}

func reentryPassesQueue(s *suite) {
	a, b := s.party(), s.party()
	a.mustLock(s.l)
	c := b.startLock(s.x, s.ctx)
	s.mustWait(c, s.x, 1)
	ctx, cancel := context.WithTimeout(s.ctx, s.cfg.Timeout)
	defer cancel()
	require.NoError(s, a.lock(s.l, ctx), "re-entry while another one waits")
	a.mustTry(s.l)
	for range 3 {
		s.mustStillWait(c, "the owner has a hold left")
		a.mustUnlock(s.l)
	}
	s.await(c, "LockContext")
	require.NoError(s, c.err)
	b.mustUnlock(s.x)
}

func tryByHolder(s *suite) {
	a := s.party()
	a.mustLock(s.l)
	ok, err := a.try(s.l, s.ctx)
	require.NoError(s, err)
	require.False(s, ok, "the lock is not reentrant")
	a.mustUnlock(s.l)
	s.mustBeFree("its one hold was released")
}

var errCause = errors.New("lockstest: the cause")

// done returns contexts that have ended, each with the errors that an error about it must match.
func (s *suite) done() map[context.Context][]error {
	cancelled, cancel := context.WithCancel(s.ctx)
	cancel()
	caused, because := context.WithCancelCause(s.ctx)
	because(errCause)
	expired, cancel := context.WithDeadline(s.ctx, time.Now().Add(-time.Hour))
	cancel()
	return map[context.Context][]error{
		cancelled: {context.Canceled},
		caused:    {context.Canceled, errCause},
		expired:   {context.DeadlineExceeded},
	}
}

func doneBeatsFree(s *suite) {
	a := s.party()
	for ctx, want := range s.done() {
		for range 5 { // a select would take either way
			err := a.lock(s.l, ctx)
			ok, tryErr := a.try(s.l, ctx)
			require.False(s, ok, "TryLockContext under a ctx that has ended")
			for _, target := range want {
				require.ErrorIs(s, err, target, "LockContext")
				require.ErrorIs(s, tryErr, target, "TryLockContext")
			}
		}
		s.mustBeFree("nobody could lock it")
	}
}

func doneBeatsReentry(s *suite) {
	a := s.party()
	a.mustLock(s.l)
	for ctx, want := range s.done() {
		err := a.lock(s.l, ctx)
		ok, tryErr := a.try(s.l, ctx)
		require.False(s, ok, "TryLockContext under a ctx that has ended")
		for _, target := range want {
			require.ErrorIs(s, err, target, "LockContext")
			require.ErrorIs(s, tryErr, target, "TryLockContext")
		}
	}
	s.mustBeHeld("only re-entry was refused")
	a.mustUnlock(s.l)
	s.mustBeFree("re-entry was refused, so there was one hold")
}

func deadlineEndsWait(s *suite) {
	a, b := s.party(), s.party()
	a.mustLock(s.x)
	for _, cause := range []error{nil, errCause} {
		deadline := time.Now().Add(s.cfg.Settle)
		ctx, cancel := context.WithDeadlineCause(s.ctx, deadline, cause)
		err := b.lock(s.l, ctx)
		cancel()
		require.ErrorIs(s, err, context.DeadlineExceeded)
		if cause != nil {
			require.ErrorIs(s, err, cause)
		}
		require.False(s, time.Now().Before(deadline), "LockContext returned before the deadline")
		s.mustCount(s.l, 0, "LockContext has returned")
	}
	s.mustBeHeld("the holder has not released it")
	far, cancel := context.WithDeadline(s.ctx, time.Now().AddDate(300, 0, 0)) // more than a Duration
	defer cancel()
	c := b.startLock(s.l, far)
	s.mustWait(c, s.l, 1)
	s.mustStillWait(c, "the deadline is in the far future")
	a.mustUnlock(s.x)
	s.await(c, "LockContext with a deadline in the far future")
	require.NoError(s, c.err)
	b.mustUnlock(s.l)
	s.mustBeFree("the waiter has released it")
}

func cancelLeavesNoGhost(s *suite) {
	a, b, c, d := s.party(), s.party(), s.party(), s.party()
	a.mustLock(s.x)
	ctx, cancel := context.WithCancelCause(s.ctx)
	first := b.startLock(s.l, ctx)
	s.mustWait(first, s.l, 1)
	second := c.startLock(s.l, s.ctx)
	s.mustWait(second, s.l, 2)
	third := d.startLock(s.l, ctx)
	s.mustWait(third, s.l, 3)
	cancel(errCause)
	for _, gone := range []*call{first, third} {
		s.await(gone, "LockContext whose ctx was cancelled")
		require.ErrorIs(s, gone.err, context.Canceled)
		require.ErrorIs(s, gone.err, errCause)
	}
	s.mustCount(s.l, 1, "two of three were cancelled")
	s.mustStillWait(second, "the lock is held")
	a.mustUnlock(s.x)
	s.await(second, "LockContext behind a cancelled waiter")
	require.NoError(s, second.err)
	c.mustUnlock(s.l)
	s.mustCount(s.l, 0, "nobody waits")
	s.mustBeFree("cancelled waiters do not hold it")
}

// grantBeatsEnd ends ctx right after a release. In a FIFO lock the release is the grant. The
// exception is a lock that must also be acquired elsewhere: such a lock declares SpuriousTry. For
// any other lock, the check sees only that the result tells the truth. The same applies to every
// second round, in which ctx ends right before the release.
func grantBeatsEnd(s *suite) {
	a, b, other := s.party(), s.party(), s.party()
	least, most := max(s.cfg.Rounds/4, 1), 4*s.cfg.Rounds
	if s.cfg.Waiting != nil && !s.cfg.Leased {
		least = most // a round takes no time to speak of, and a busy machine needs as many
	}
	for begun, i := time.Now(), 0; i < least || i < most && time.Since(begun) < 250*s.cfg.Settle; i++ {
		endsFirst := i%2 == 1
		a.mustLock(s.x)
		ctx, cancel := context.WithCancel(s.ctx)
		c := b.startLock(s.l, ctx)
		s.mustWait(c, s.l, 1)
		released := a.do("UnlockContext", func(c *call) {
			if endsFirst {
				cancel()
			}
			c.err = s.x.UnlockContext(s.ctx)
			cancel()
		})
		require.NoError(s, released.err)
		s.await(c, "LockContext of a lock that was released")
		if c.err == nil {
			ok, err := other.try(s.x, s.ctx)
			require.NoError(s, err)
			require.False(s, ok, "the lock is free, but LockContext has returned nil")
			b.mustUnlock(s.l)
			continue
		}
		require.ErrorIs(s, c.err, context.Canceled)
		if s.cfg.FIFO && !s.cfg.SpuriousTry && !endsFirst {
			s.Fatalf("LockContext returned %v, but the release before had granted it the lock", c.err)
		}
	}
	s.mustBeFree("no hold is left")
}

func unlockUnderDone(s *suite) {
	a := s.party()
	for ctx := range s.done() {
		a.mustLock(s.l)
		require.NoError(s, a.unlock(s.l, ctx), "UnlockContext under a ctx that has ended")
		s.mustBeFree("it was released")
	}
}

func contextDoesNotBoundHold(s *suite) {
	a := s.party()
	ctx, cancel := context.WithCancel(s.ctx)
	require.NoError(s, a.lock(s.l, ctx))
	cancel()
	for range 3 {
		s.mustBeHeld("only its ctx has ended")
		time.Sleep(s.cfg.Settle / 2) // nothing to observe: the rule is that nothing happens
	}
	a.mustUnlock(s.l)
	s.mustBeFree("it was released")
}

// noContext is a nil context that vet does not see.
var noContext context.Context

func nilContext(s *suite) {
	a, b := s.party(), s.party()
	refused := func() {
		s.Helper()
		require.ErrorIs(s, a.lock(s.l, noContext), locks.ErrNilContext)
		ok, err := a.try(s.l, noContext)
		require.ErrorIs(s, err, locks.ErrNilContext)
		require.False(s, ok)
	}
	refused()
	s.mustBeFree("nobody could lock it")
	b.mustLock(s.x)
	refused()
	b.mustUnlock(s.x)
	s.mustBeFree("it was released")
}

func unlockWithNil(s *suite) {
	a := s.party()
	a.mustLock(s.l)
	require.NoError(s, a.unlock(s.l, noContext))
	s.mustBeFree("it was released")
	require.ErrorIs(s, a.unlock(s.l, noContext), locks.ErrNotHeld)
}

func ownerMoves(s *suite) {
	a, b := s.party(), s.party()
	ctx := locks.WithOwner(s.ctx, locks.NewOwner())
	require.NoError(s, a.lock(s.l, ctx))
	require.ErrorIs(s, a.unlock(s.l, s.ctx), locks.ErrNotHeld, "the goroutine is not the owner")
	s.mustBeHeld("the owner has not released it")
	require.NoError(s, b.unlock(s.l, ctx), "the owner, in another goroutine")
	s.mustBeFree("the owner has released it")
	ok, err := a.try(s.l, ctx)
	require.NoError(s, err)
	require.True(s, ok)
	require.ErrorIs(s, a.unlock(s.l, s.ctx), locks.ErrNotHeld, "the owner of the try is not the goroutine")
	require.NoError(s, b.unlock(s.l, ctx), "the owner of the try, in another goroutine")

	// b acts for the goroutine of a.
	a.mustLock(s.l)
	require.NoError(s, b.unlock(s.l, locks.WithOwner(s.ctx, a.id)), "the owner is a goroutine")
	s.mustBeFree("the owner has released it")

	// The goroutine that waits is not admitted itself, but its owner is.
	a.mustLock(s.x)
	c := b.startLock(s.l, ctx)
	s.mustWait(c, s.l, 1)
	a.mustUnlock(s.x)
	s.await(c, "LockContext of an explicit owner")
	require.NoError(s, c.err)
	require.NoError(s, a.unlock(s.l, ctx))
	s.mustBeFree("the owner has released it")
}

func ownerSharesReentrancy(s *suite) {
	a, b := s.party(), s.party()
	ctx := locks.WithOwner(s.ctx, locks.NewOwner())
	require.NoError(s, a.lock(s.l, ctx))
	limited, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	require.NoError(s, b.lock(s.l, limited), "the same owner in another goroutine")
	require.NoError(s, a.unlock(s.l, ctx))
	s.mustBeHeld("the owner has a hold left")
	require.NoError(s, b.unlock(s.l, ctx))
	s.mustBeFree("the owner has released both holds")
}

func ownersInOneGoroutine(s *suite) {
	a := s.party()
	first := locks.NewOwner()
	one := locks.WithOwner(s.ctx, first)
	others := []context.Context{s.ctx, locks.WithOwner(one, 0)}
	// Owners that a lock confuses if it drops the sign or the high bits.
	for _, o := range []locks.Owner{
		locks.NewOwner(), -first, first - 1<<8, first - 1<<16, first - 1<<32, first - 1<<48,
	} {
		others = append(others, locks.WithOwner(s.ctx, o))
	}
	require.NoError(s, a.lock(s.l, one))
	for _, ctx := range others {
		ok, err := a.try(s.x, ctx)
		require.NoError(s, err)
		require.False(s, ok, "%v in the same goroutine, held by %v", locks.CurrentOwner(ctx), first)
		require.ErrorIs(s, a.unlock(s.l, ctx), locks.ErrNotHeld, "another owner in the same goroutine")
	}
	s.mustBeHeld("its owner has not released it")
	require.NoError(s, a.unlock(s.l, one))
	s.mustBeFree("its owner has released it")
}

// queueUp lets n goroutines wait for s.l, one after the other. Each admitted goroutine appends
// its number to the result and releases.
func (s *suite) queueUp(n int, ctx func(i int) context.Context) (order *[]int, waiting []*call) {
	order = new([]int)
	var mu sync.Mutex
	for i := range n {
		ctx := ctx(i)
		c := s.party().start(func(c *call) {
			if c.err = s.l.LockContext(ctx); c.err == nil {
				mu.Lock()
				*order = append(*order, i)
				mu.Unlock()
				c.err = s.l.UnlockContext(ctx)
			}
		})
		s.mustWait(c, s.l, i+1)
		waiting = append(waiting, c)
	}
	return order, waiting
}

// crowd is the number of waiters in a check of many waiters. The number is small if the suite must
// guess when a waiter begins its wait.
func (s *suite) crowd() int {
	if s.cfg.Waiting == nil {
		return 5
	}
	return min(max(s.cfg.Rounds/3, 5), 48)
}

func everyWaiter(s *suite) {
	a := s.party()
	a.mustLock(s.x)
	n := s.crowd()
	_, waiting := s.queueUp(n, func(int) context.Context { return s.ctx })
	a.mustUnlock(s.x)
	for _, c := range waiting {
		s.await(c, fmt.Sprintf("LockContext of one of %d waiters", n))
		require.NoError(s, c.err)
	}
	s.mustBeFree("every waiter has released it")
}

func fifoOrder(s *suite) {
	a := s.party()
	a.mustLock(s.l)
	limited, cancel := context.WithTimeout(s.ctx, 100*s.cfg.Timeout)
	defer cancel()
	kinds := []context.Context{s.ctx, limited, context.Background()}
	n := s.crowd()
	order, waiting := s.queueUp(n, func(i int) context.Context { return kinds[i%len(kinds)] })
	a.mustUnlock(s.l)
	var arrival []int
	for i, c := range waiting {
		s.await(c, "LockContext")
		require.NoError(s, c.err)
		arrival = append(arrival, i)
	}
	require.Equal(s, arrival, *order)
}

func fifoOrderAfterCancel(s *suite) {
	const n = 5
	for _, leave := range [][]int{{2}, {0}, {n - 1}, {1, 2}} {
		a := s.party()
		a.mustLock(s.l)
		gone, cancel := context.WithCancel(s.ctx)
		defer cancel()
		order, waiting := s.queueUp(n, func(i int) context.Context {
			if slices.Contains(leave, i) {
				return gone
			}
			return s.ctx
		})
		cancel()
		for _, i := range leave {
			s.await(waiting[i], "LockContext whose ctx was cancelled")
			require.ErrorIs(s, waiting[i].err, context.Canceled)
		}
		s.mustCount(s.l, n-len(leave), "the others were cancelled")
		a.mustUnlock(s.l)
		var arrival []int
		for i, c := range waiting {
			s.await(c, "LockContext")
			if !slices.Contains(leave, i) {
				require.NoError(s, c.err)
				arrival = append(arrival, i)
			}
		}
		require.Equal(s, arrival, *order, "the order after the cancellation of %v", leave)
	}
}

// releaserQueues makes a holder release and lock again at once. The holder runs already, and the
// waiter must wake up first. Nevertheless it is the waiter's turn.
func releaserQueues(s *suite) {
	a, b := s.party(), s.party()
	for range 10 {
		a.mustLock(s.l)
		var first atomic.Pointer[party]
		waiter := b.start(func(c *call) {
			if c.err = s.l.LockContext(s.ctx); c.err == nil {
				first.CompareAndSwap(nil, b)
				c.err = s.l.UnlockContext(s.ctx)
			}
		})
		s.mustWait(waiter, s.l, 1)
		again := a.do("LockContext after a release", func(c *call) {
			if c.err = s.l.UnlockContext(s.ctx); c.err != nil {
				return
			}
			if c.err = s.l.LockContext(s.ctx); c.err == nil {
				first.CompareAndSwap(nil, a)
				c.err = s.l.UnlockContext(s.ctx)
			}
		})
		s.await(waiter, "LockContext")
		require.NoError(s, again.err)
		require.NoError(s, waiter.err)
		require.True(s, first.Load() == b, "the releasing goroutine has overtaken the waiter")
	}
}

func readerQueues(s *suite) {
	a, b, c := s.party(), s.party(), s.party()
	a.mustLock(s.l)
	writer := b.startLock(s.x, s.ctx)
	s.mustWait(writer, s.x, 1)
	reader := c.startLock(s.l, s.ctx)
	s.mustWait(reader, s.l, 2)
	s.mustStillWait(reader, "a writer waits before this reader")
	a.mustUnlock(s.l)
	s.await(writer, "LockContext of a writer before a reader")
	require.NoError(s, writer.err)
	s.mustStillWait(reader, "the writer holds the lock")
	b.mustUnlock(s.x)
	s.await(reader, "LockContext of a reader behind a writer")
	require.NoError(s, reader.err)
	c.mustUnlock(s.l)
	s.mustBeFree("all have released it")
}

func doReleases(s *suite) {
	a := s.party()
	errFn := errors.New("lockstest: fn fails")
	cancellable, cancel := context.WithCancel(s.ctx)
	defer cancel()
	for _, exit := range []struct {
		name string
		ctx  context.Context
		fn   func(context.Context) error
		want error
	}{
		{"return", s.ctx, func(context.Context) error { return nil }, nil},
		{"error", s.ctx, func(context.Context) error { return errFn }, errFn},
		{"cancel", cancellable, func(context.Context) error { cancel(); return nil }, nil},
		{"panic", s.ctx, func(context.Context) error { panic(errFn) }, nil},
	} {
		c := a.do("Do", func(c *call) {
			defer func() {
				if r := recover(); r != nil && r != errFn {
					c.err = fmt.Errorf("panic in Do: %w", keytext.Panic(r))
				}
			}()
			c.err = locks.Do(exit.ctx, s.l, exit.fn)
		})
		require.ErrorIs(s, c.err, exit.want, exit.name)
		s.mustBeFree("Do has ended by " + exit.name)
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		_ = locks.Do(s.ctx, s.l, func(context.Context) error { runtime.Goexit(); return nil })
	}()
	select {
	case <-left:
	case <-time.After(s.cfg.Timeout):
		s.Fatalf("Do hangs after Goexit")
	}
	s.mustBeFree("Do has ended by Goexit")
}

func timeoutStorm(s *suite) {
	s.together(s.cfg.Goroutines, func(g int) error {
		for i := range s.cfg.Rounds {
			ctx, cancel := context.WithTimeout(s.ctx, time.Duration(1+(g+i)%20)*time.Microsecond)
			err := s.x.LockContext(ctx)
			cancel()
			switch {
			case err == nil:
				if i%3 == 0 {
					runtime.Gosched()
				}
				if err := s.x.UnlockContext(ctx); err != nil {
					return err
				}
			case !errors.Is(err, context.DeadlineExceeded):
				return err
			}
		}
		return nil
	})
	s.mustCount(s.x, 0, "all calls have returned")
	s.mustBeFree("all have released it or timed out")
	a, b := s.party(), s.party()
	a.mustLock(s.x)
	// On a busy machine, the time of each wait above may be over before the wait begins.
	s.together(s.cfg.Goroutines, func(int) error {
		for range 1 + 40/s.cfg.Goroutines {
			ctx, cancel := context.WithTimeout(s.ctx, time.Millisecond)
			err := s.x.LockContext(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("a wait for a held lock ends with %v, and not with its time limit", err)
			}
		}
		return nil
	})
	c := b.startLock(s.l, s.ctx)
	s.mustWait(c, s.l, 1)
	a.mustUnlock(s.x)
	s.await(c, "LockContext")
	require.NoError(s, c.err)
	b.mustUnlock(s.l)
}

// plain has the methods of a local lock besides the Context family.
type plain interface {
	sync.Locker
	TryLock() bool
}

func plainFamily(s *suite) {
	l, ok := s.l.(plain)
	if !ok {
		s.Log("the lock has no plain family, and need not have")
		return
	}
	a, b := s.party(), s.party()
	try := func(p *party) bool {
		return p.do("TryLock", func(c *call) { c.ok = l.TryLock() }).ok
	}
	unlock := func(p *party) error {
		return p.do("Unlock", func(c *call) {
			defer func() {
				if r := recover(); r != nil {
					c.err = keytext.Panic(r)
					if _, ok := r.(error); !ok {
						c.err = fmt.Errorf("panic in Unlock with another value: %w", c.err)
					}
				}
			}()
			l.Unlock()
		}).err
	}
	for i := range tries {
		require.True(s, try(a), "the lock is free, but TryLock %d of %d fails", i+1, tries)
		require.NoError(s, unlock(a))
	}
	a.mustLock(s.x)
	waiter := b.start(func(*call) { l.Lock() })
	s.mustWait(waiter, s.l, 1)
	s.mustStillWait(waiter, "the lock is held")
	a.mustUnlock(s.x)
	s.await(waiter, "Lock of a lock that was released")
	s.mustBeHeld("Lock has returned")
	if s.cfg.Reentrant {
		b.do("Lock by the holder", func(*call) { l.Lock() })
		require.True(s, try(b), "TryLock by the holder")
		for range 2 {
			require.NoError(s, unlock(b))
			s.mustBeHeld("the owner has a hold left")
		}
	}
	require.NoError(s, unlock(b))

	a.do("Lock", func(*call) { l.Lock() })
	s.mustBeHeld("Lock has returned")
	if s.cfg.Owned {
		require.ErrorIs(s, unlock(b), locks.ErrNotHeld, "Unlock by another goroutine panics with it")
		s.mustBeHeld("another one's Unlock was refused")
	}
	c := b.startLock(s.x, s.ctx)
	s.mustWait(c, s.x, 1)
	require.NoError(s, unlock(a))
	s.await(c, "LockContext of a lock that Unlock released")
	require.NoError(s, c.err)
	require.False(s, try(a), "TryLock of a lock that LockContext took")
	b.mustUnlock(s.x)
	require.True(s, try(a))
	s.mustBeHeld("TryLock has returned true")
	a.mustUnlock(s.l)
	require.ErrorIs(s, unlock(a), locks.ErrNotHeld, "Unlock of a free lock panics with it")
	s.mustBeFree("it was released")
}

// timed has the method of a local lock for a wait that a time limit ends.
type timed interface{ TryLockFor(d time.Duration) bool }

func timedFamily(s *suite) {
	l, ok := s.l.(timed)
	if !ok {
		s.Log("the lock has no TryLockFor, and need not have")
		return
	}
	a, b := s.party(), s.party()
	start := func(p *party, d time.Duration) *call {
		return p.start(func(c *call) { c.ok = l.TryLockFor(d) })
	}
	try := func(p *party, d time.Duration) bool {
		s.Helper()
		c := start(p, d)
		s.await(c, "TryLockFor")
		return c.ok
	}
	for i := range tries {
		p, d := a, time.Duration(i%3-1)*s.cfg.Timeout
		if i%2 == 0 {
			p = b
		}
		require.True(s, try(p, d), "the lock is free, but TryLockFor(%v) fails, try %d of %d", d, i+1, tries)
		if i == 0 {
			s.mustBeHeld("TryLockFor has returned true")
		}
		p.mustUnlock(s.l)
	}

	a.mustLock(s.x)
	// On a busy machine a short time may be over before the waiter is in the queue.
	for _, d := range []time.Duration{-s.cfg.Settle, 0, s.cfg.Settle, 10 * s.cfg.Settle, 50 * s.cfg.Settle} {
		deadline := time.Now().Add(d)
		require.False(s, try(b, d), "the lock is held")
		require.False(s, time.Now().Before(deadline), "TryLockFor(%v) returned too early", d)
		s.mustCount(s.l, 0, "TryLockFor has returned")
	}
	s.mustBeHeld("the holder has not released it")
	a.mustUnlock(s.x)
	s.mustBeFree("a failed TryLockFor leaves nothing behind")

	a.mustLock(s.x)
	c := start(b, s.cfg.Timeout)
	s.mustWait(c, s.l, 1)
	s.mustStillWait(c, "the lock is held")
	a.mustUnlock(s.x)
	s.await(c, "TryLockFor of a lock that was released")
	require.True(s, c.ok, "TryLockFor of a lock that was released in time")
	s.mustBeHeld("TryLockFor has returned true")
	if s.cfg.Reentrant {
		require.True(s, try(b, 0), "re-entry")
		b.mustUnlock(s.l)
		s.mustBeHeld("the owner has a hold left")
	}
	b.mustUnlock(s.l)
	s.mustBeFree("it was released")

	require.True(s, try(a, math.MinInt64), "TryLockFor of a free lock with the shortest time")
	a.mustUnlock(s.l)
	a.mustLock(s.x)
	require.False(s, try(b, math.MinInt64), "the lock is held")
	c = start(b, math.MaxInt64)
	s.mustWait(c, s.l, 1)
	s.mustStillWait(c, "TryLockFor has the longest time")
	a.mustUnlock(s.x)
	s.await(c, "TryLockFor of a lock that was released")
	require.True(s, c.ok, "TryLockFor with the longest time")
	b.mustUnlock(s.l)
}

func readersTogether(s *suite) {
	const n = 4
	var parties []*party
	for range n {
		p := s.party()
		ctx, cancel := context.WithTimeout(s.ctx, s.cfg.Timeout)
		require.NoError(s, p.lock(s.l, ctx), "other readers are inside")
		cancel()
		parties = append(parties, p)
	}
	for i, p := range parties {
		s.mustBeHeld(fmt.Sprintf("%d readers are inside", n-i))
		p.mustUnlock(s.l)
	}
	s.mustBeFree("all readers have left")

	// Readers that waited for a writer get in together too: none leaves before all are in.
	w := s.party()
	w.mustLock(s.x)
	var waiting []*call
	for i, p := range parties {
		c := p.startLock(s.l, s.ctx)
		s.mustWait(c, s.l, i+1)
		waiting = append(waiting, c)
	}
	w.mustUnlock(s.x)
	for _, c := range waiting {
		s.await(c, "LockContext of a reader while others are inside")
		require.NoError(s, c.err)
	}
	for _, p := range parties {
		p.mustUnlock(s.l)
	}
	s.mustBeFree("all readers have left")
}

func readersAndWriters(s *suite) {
	var readers, writers atomic.Int32
	var a, b int // deliberately not atomic: the race detector watches them
	s.together(s.cfg.Goroutines, func(g int) error {
		for i := range s.cfg.Rounds {
			write, l := (g+i)%4 == 0, s.l
			if write {
				l = s.x
			}
			ok, err := s.acquire(l, i)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			wrong := false
			if write {
				wrong = writers.Add(1) > 1 || readers.Load() > 0
			} else {
				readers.Add(1)
				wrong = writers.Load() > 0
			}
			if !wrong {
				if write {
					a++
					s.linger(g + i)
					b++
				} else {
					wrong = a != b
				}
			}
			if write {
				writers.Add(-1)
			} else {
				readers.Add(-1)
			}
			if err := s.release(l, i); err != nil {
				return err
			}
			if wrong {
				return errors.New("a reader and a writer, or two writers, were inside at once")
			}
		}
		return nil
	})
	s.mustBeFree("all have left")
}
