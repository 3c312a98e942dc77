package lockstest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/test/fakelock"
)

// queue is the Waiting of the fake.
func queue(l locks.TryLocker) int {
	return l.(interface{ Waiting() int }).Waiting()
}

func lockConfig(flaw fakelock.Flaw, owned, reentrant bool) Config {
	return Config{
		New: func(testing.TB) locks.TryLocker {
			return &fakelock.Lock{Owned: owned, Reentrant: reentrant, Flaw: flaw}
		},
		Owned: owned, Reentrant: reentrant, FIFO: true, Waiting: queue,
	}
}

func rwConfig(flaw fakelock.Flaw) Config {
	return Config{
		New: func(testing.TB) locks.TryLocker { return (&fakelock.RW{Flaw: flaw}).ReadLocker() },
		Exclusive: func(view locks.TryLocker) locks.TryLocker {
			return (*fakelock.RW)(view.(*fakelock.Reader)).WriteLocker()
		},
		Reentrant: true,
	}
}

func leasedConfig(flaw fakelock.Flaw) Config {
	return Config{
		New:       func(testing.TB) locks.TryLocker { return fakelock.NewLeased(flaw) },
		Lose:      func(l locks.TryLocker) { l.(*fakelock.Leased).Lose() },
		Reentrant: true, FIFO: true, Leased: true, Waiting: queue,
	}
}

func TestALockWithoutOwnersPasses(t *testing.T) { TestTryLocker(t, bareLock("")) }

func TestANonReentrantLockWithOwnersPasses(t *testing.T) {
	TestTryLocker(t, ownedLock(""))
}

func TestAReentrantLockPasses(t *testing.T) { TestTryLocker(t, reentrantLock("")) }

func TestALeasedLockPasses(t *testing.T) { TestTryLocker(t, leasedConfig("")) }

func TestAReadViewPasses(t *testing.T) { TestTryLocker(t, rwConfig("")) }

func TestALockWhoseQueueCannotBeSeenPasses(t *testing.T) {
	cfg := reentrantLock("")
	cfg.Waiting = nil
	TestTryLocker(t, cfg)
}

type fake = fakelock.Lock

// plainMutex is a fake with the plain family.
type plainMutex struct {
	fake
	flaw  fakelock.Flaw
	tries atomic.Int32
}

// Flaws of the plain family.
const (
	plainUnlockSilent      fakelock.Flaw = "Unlock never panics"
	plainLockIntrudes      fakelock.Flaw = "Lock does not wait"
	plainReentryFlat       fakelock.Flaw = "Lock by the holder is not counted"
	plainTrySometimesFalse fakelock.Flaw = "every 20th TryLock of a free lock is false"
	plainTryIntrudes       fakelock.Flaw = "every 20th TryLock ignores the holder"
)

func (m *plainMutex) Lock() {
	mine := m.Owner() == locks.CurrentOwner(background)
	if m.flaw == plainLockIntrudes && m.Count() > 0 || m.flaw == plainReentryFlat && mine {
		return
	}
	_ = m.LockContext(background)
}

func (m *plainMutex) TryLock() bool {
	if m.tries.Add(1)%20 == 0 {
		switch m.flaw {
		case plainTrySometimesFalse:
			return false
		case plainTryIntrudes:
			return true
		}
	}
	ok, _ := m.TryLockContext(background)
	return ok
}

func (m *plainMutex) Unlock() {
	if err := m.UnlockContext(background); err != nil && m.flaw != plainUnlockSilent {
		panic(err)
	}
}

func plainFlaw(flaw fakelock.Flaw) Config {
	return Config{
		New: func(testing.TB) locks.TryLocker {
			return &plainMutex{fake: fake{Reentrant: true}, flaw: flaw}
		},
		Reentrant: true, FIFO: true, Waiting: queue,
	}
}

// Flaws of a TryLockFor.
const (
	tryForSometimesFalse fakelock.Flaw = "one TryLockFor of a free lock in ten is false"
	tryForNeverWaits     fakelock.Flaw = "TryLockFor does not wait"
	tryForIgnoresHolder  fakelock.Flaw = "TryLockFor with no time left ignores the holder"
	tryForFails          fakelock.Flaw = "TryLockFor waits, and fails although the lock was released in time"
	tryForTakesNothing   fakelock.Flaw = "TryLockFor is true without taking the lock"
	tryForQueuesAgain    fakelock.Flaw = "TryLockFor by the holder fails"
	tryForOverflows      fakelock.Flaw = "the deadline of the longest TryLockFor overflows"
)

// timedMutex is a fake with TryLockFor.
type timedMutex struct {
	fake
	flaw fakelock.Flaw
}

func (m *timedMutex) TryLockFor(d time.Duration) bool {
	free := m.Count() == 0
	switch {
	case m.flaw == tryForSometimesFalse && free && rand.IntN(10) == 0:
		return false
	case m.flaw == tryForTakesNothing:
		return free
	case m.flaw == tryForIgnoresHolder && d <= 0:
		return true
	case m.flaw == tryForQueuesAgain && d <= 0 && !free:
		return false
	case d <= 0, m.flaw == tryForNeverWaits, m.flaw == tryForOverflows && time.Now().UnixNano()+int64(d) < 0:
		ok, _ := m.TryLockContext(background)
		return ok
	}
	ctx, cancel := context.WithTimeout(background, d)
	defer cancel()
	if m.LockContext(ctx) != nil {
		return false
	}
	if m.flaw == tryForFails && !free {
		_ = m.UnlockContext(background)
		return false
	}
	return true
}

func timedConfig(flaw fakelock.Flaw) Config {
	return Config{
		New: func(testing.TB) locks.TryLocker {
			return &timedMutex{fake: fake{Reentrant: true, Flaw: flaw}, flaw: flaw}
		},
		Reentrant: true, FIFO: true, Waiting: queue,
	}
}

func TestALockWithTryLockForPasses(t *testing.T) { TestTryLocker(t, timedConfig("")) }

// Flaws of an Inspect.
const (
	inspectNeverHeld        fakelock.Flaw = "Inspect says that a held lock is free"
	inspectAlwaysHeld       fakelock.Flaw = "Inspect says that a free lock is held"
	inspectOverlooksWaiters fakelock.Flaw = "Inspect does not count waiters"
	inspectNamesAnother     fakelock.Flaw = "Inspect names another holder"
	inspectIgnoresContext   fakelock.Flaw = "Inspect ignores its context"
	inspectOtherToken       fakelock.Flaw = "Inspect returns another token"
	inspectOldHold          fakelock.Flaw = "Inspect says that a new hold is old"
	inspectShared           fakelock.Flaw = "Inspect says that an exclusive hold is shared"
	inspectCountsTheGone    fakelock.Flaw = "Inspect counts waiters that have left"
)

// inspectedMutex is a fake with Inspect.
type inspectedMutex struct {
	fake
	flaw fakelock.Flaw
}

func (m *inspectedMutex) Inspect(ctx context.Context) (i locks.Info, err error) {
	return inspectFake(ctx, &m.fake, m.flaw)
}

func inspectFake(ctx context.Context, m *fake, flaw fakelock.Flaw) (i locks.Info, err error) {
	switch {
	case flaw == inspectIgnoresContext:
	case ctx == nil:
		return i, locks.ErrNilContext
	case ctx.Err() != nil:
		return i, ctx.Err()
	}
	i.Held = (m.Count() > 0 || flaw == inspectAlwaysHeld) && flaw != inspectNeverHeld
	if flaw == inspectNamesAnother && i.Held {
		i.Holders = []locks.Party{{Owner: locks.NewOwner()}}
	}
	i.Shared = i.Held && flaw == inspectShared
	switch flaw {
	case inspectOverlooksWaiters:
	case inspectCountsTheGone:
		i.Waiting = m.Waits()
	default:
		i.Waiting = m.Waiting()
	}
	return i, nil
}

// inspectedLease is a leased fake with Inspect.
type inspectedLease struct {
	*fakelock.Leased
	flaw fakelock.Flaw
}

func (m *inspectedLease) Inspect(ctx context.Context) (i locks.Info, err error) {
	i, err = inspectFake(ctx, &m.Lock, m.flaw)
	if i.Held {
		p := locks.Party{Owner: m.Owner(), Since: time.Now()}
		switch m.flaw {
		case inspectOtherToken:
			p.Token = 1 << 40
		case inspectOldHold:
			p.Since = p.Since.Add(-time.Hour)
		}
		i.Holders = []locks.Party{p}
	}
	return i, err
}

func inspectedLeaseConfig(flaw fakelock.Flaw) Config {
	cfg := leasedConfig("")
	cfg.New = func(testing.TB) locks.TryLocker { return &inspectedLease{fakelock.NewLeased(""), flaw} }
	cfg.Lose = func(l locks.TryLocker) { l.(*inspectedLease).Lose() }
	return cfg
}

func inspectedConfig(flaw fakelock.Flaw) Config {
	return Config{
		New: func(testing.TB) locks.TryLocker {
			return &inspectedMutex{fake: fake{Reentrant: true}, flaw: flaw}
		},
		Reentrant: true, FIFO: true, Waiting: queue,
	}
}

func TestALockWithInspectPasses(t *testing.T) { TestTryLocker(t, inspectedConfig("")) }

func TestALeasedLockWithInspectPasses(t *testing.T) { TestTryLocker(t, inspectedLeaseConfig("")) }

func TestALockWithPlainMethodsPasses(t *testing.T) { TestTryLocker(t, plainFlaw("")) }

// recorder is a testing.TB to which a check can fail without failing the test.
type recorder struct {
	testing.TB
	mu       sync.Mutex
	failures []string
	notes    []string
	skipped  bool
	cleanups []func()
}

// record runs c on a lock of cfg and returns what it complained about.
func record(t *testing.T, c check, cfg Config) *recorder {
	if cfg.Timeout == 0 {
		cfg.Timeout = 100 * time.Millisecond
	}
	cfg.Rounds = 100
	if strings.Contains(c.name, "Random") {
		cfg.Rounds = 2000
	}
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			for i := len(r.cleanups) - 1; i >= 0; i-- {
				r.cleanups[i]()
			}
		}()
		c.on(r, cfg.withDefaults())
	}()
	<-done
	return r
}

func (r *recorder) Helper()                     {}
func (r *recorder) Name() string                { return "recorded" }
func (r *recorder) Cleanup(f func())            { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Log(args ...any)             { r.notes = append(r.notes, fmt.Sprint(args...)) }
func (r *recorder) Logf(string, ...any)         {}
func (r *recorder) Error(args ...any)           { r.fail(fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, arg ...any) { r.fail(fmt.Sprintf(f, arg...)) }
func (r *recorder) Fatal(args ...any)           { r.fail(fmt.Sprint(args...)); runtime.Goexit() }
func (r *recorder) Fatalf(f string, arg ...any) { r.fail(fmt.Sprintf(f, arg...)); runtime.Goexit() }
func (r *recorder) Fail()                       { r.fail("Fail") }
func (r *recorder) FailNow()                    { r.fail("FailNow"); runtime.Goexit() }
func (r *recorder) Skip(...any)                 { r.skipped = true; runtime.Goexit() }

func (r *recorder) fail(message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, message)
}

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failures) > 0
}

func byName(t *testing.T, name string) check {
	for _, c := range checks {
		if c.name == name {
			return c
		}
	}
	t.Fatalf("no check %s", name)
	return check{}
}

type brokenLock struct {
	check string
	lock  func(fakelock.Flaw) Config
	flaw  fakelock.Flaw
}

// broken lists locks with one flaw each, by the check that must notice.
var broken = []brokenLock{
	{"AFreeLockIsTakenAndGivenBack", reentrantLock, fakelock.TryAlwaysFalse},
	{"AFreeLockIsTakenAndGivenBack", bareLock, fakelock.KeepsLock},
	{"TryLockIsFalseWhileAnotherHoldsAndNeverWaits", reentrantLock, fakelock.TryIgnoresHolder},
	{"TryLockIsFalseWhileAnotherHoldsAndNeverWaits", reentrantLock, fakelock.TryWaits},
	{"LockWaitsForTheHolder", reentrantLock, fakelock.NoExclusion},
	{"LockWaitsForTheHolder", reentrantLock, fakelock.KeepsLock},
	{"OneHoldsAtATime", bareLock, fakelock.TryIgnoresHolder},
	{"UnlockOfAFreeLockIsErrNotHeld", bareLock, fakelock.FreeUnlockAccepted},
	{"UnlockOfAFreeLockIsErrNotHeld", reentrantLock, fakelock.FreeUnlockCorrupts},
	{"UnlockByAnotherOwnerIsErrNotHeld", reentrantLock, fakelock.AnybodyUnlocks},
	{"UnlockByAnotherOwnerIsErrNotHeld", reentrantLock, fakelock.FreeClaimed},
	{"AnyGoroutineMayUnlock", bareLock, fakelock.UnlockNeedsLocker},
	{"OnlyTheLastReleaseFrees", reentrantLock, fakelock.FirstUnlockFrees},
	{"OnlyTheLastReleaseFrees", reentrantLock, fakelock.ReentryByTryFalse},
	{"ReentryIsNotBlockedByWaiters", reentrantLock, fakelock.ReentryQueues},
	{"TryLockByTheHolderIsFalse", ownedLock, fakelock.HolderTryTakes},
	{"TryLockByTheHolderIsFalse", bareLock, fakelock.HolderTryTakes},
	{"ADoneContextBeatsAFreeLock", reentrantLock, fakelock.DoneTakes},
	{"ADoneContextBeatsAFreeLock", reentrantLock, fakelock.DoneTryTakes},
	{"ADoneContextBeatsAFreeLock", reentrantLock, fakelock.LosesCause},
	{"ADoneContextBeatsAFreeLock", reentrantLock, fakelock.OnlyCause},
	{"ADoneContextBeatsReentry", reentrantLock, fakelock.DoneReenters},
	{"ADeadlineEndsTheWait", reentrantLock, fakelock.DeafWaiter},
	{"ADeadlineEndsTheWait", reentrantLock, fakelock.ReturnsEarly},
	{"ADeadlineEndsTheWait", reentrantLock, fakelock.LosesCause},
	{"ACancelledWaiterLeavesNoGhost", reentrantLock, fakelock.Ghost},
	{"ACancelledWaiterLeavesNoGhost", unseen(reentrantLock), fakelock.Ghost},
	{"ACancelledWaiterLeavesNoGhost", reentrantLock, fakelock.DeafWaiter},
	{"ACancelledWaiterLeavesNoGhost", unseen(reentrantLock), fakelock.CancelSwallowsRelease},
	{"AGrantBeatsALaterEndOfTheContext", reentrantLock, fakelock.GrantGivenBack},
	{"ALockIsReleasedUnderADoneContext", reentrantLock, fakelock.CancelledUnlockFails},
	{"AContextsMethodsMayWaitForAnotherUser", reentrantLock, fakelock.AsksWithMutex},
	{"AContextsMethodsMayWaitForAnotherUser", bareLock, fakelock.AsksWithMutex},
	{"AnotherAcquiresWhileAContextsMethodWaits", reentrantLock, fakelock.AsksWithMutex},
	{"AnotherAcquiresWhileAContextsMethodWaits", bareLock, fakelock.AsksWithLock},
	{"AnotherAcquiresWhileAContextsMethodWaits", ownedLock, fakelock.AsksAsWaiter},
	{"AnotherAcquiresWhileAContextsMethodWaits", unseen(reentrantLock), fakelock.AsksInQueue},
	{"AContextThatEndsLaterDoesNotRelease", reentrantLock, fakelock.CtxBoundsHold},
	{"ANilContextIsErrNilContext", reentrantLock, fakelock.NilPanics},
	{"ANilContextIsErrNilContext", reentrantLock, fakelock.NilTakes},
	{"UnlockWithANilContextActsForTheGoroutine", reentrantLock, fakelock.NilUnlockFails},
	{"AnExplicitOwnerMovesBetweenGoroutines", reentrantLock, fakelock.IgnoresExplicitOwner},
	{"AnExplicitOwnerMovesBetweenGoroutines", ownedLock, fakelock.UnlockNeedsLocker},
	{"AnExplicitOwnerSharesReentrancy", reentrantLock, fakelock.IgnoresExplicitOwner},
	{"AnotherOwnerInTheSameGoroutineHoldsNothing", reentrantLock, fakelock.IgnoresExplicitOwner},
	{"WaitersAreAdmittedInOrderOfArrival", reentrantLock, fakelock.LIFO},
	{"OrderIsKeptWhenOneInTheMiddleCancels", reentrantLock, fakelock.LIFO},
	{"OrderIsKeptWhenOneInTheMiddleCancels", unseen(bareLock), fakelock.Ghost},
	{"DoReleasesOnEveryExit", reentrantLock, fakelock.CancelledUnlockFails},
	{"DoReleasesOnEveryExit", reentrantLock, fakelock.KeepsLock},
	{"AStormOfTimeoutsLeavesAUsableLock", reentrantLock, fakelock.Ghost},
	{"ARandomHistoryIsLinearizable", reentrantLock, fakelock.TrySpuriouslyFalse},
	{"ARandomHistoryIsLinearizable", bareLock, fakelock.TrySpuriouslyFalse},
	{"ARandomHistoryIsLinearizable", rwConfig, fakelock.ReaderIntrudes},
	{"ARandomHistoryIsLinearizable", rwConfig, fakelock.WriterIntrudes},
	{"PlainMethodsAgreeWithTheContextFamily", plainFlaw, plainUnlockSilent},
	{"TryLockForWaitsForItsTimeAndNoLonger", timedConfig, tryForSometimesFalse},
	{"TryLockForWaitsForItsTimeAndNoLonger", timedConfig, tryForNeverWaits},
	{"TryLockForWaitsForItsTimeAndNoLonger", timedConfig, tryForIgnoresHolder},
	{"TryLockForWaitsForItsTimeAndNoLonger", timedConfig, tryForFails},
	{"TryLockForWaitsForItsTimeAndNoLonger", timedConfig, tryForTakesNothing},
	{"TryLockForWaitsForItsTimeAndNoLonger", timedConfig, tryForQueuesAgain},
	{"TryLockForWaitsForItsTimeAndNoLonger", timedConfig, fakelock.Ghost},
	{"TryLockForWaitsForItsTimeAndNoLonger", timedConfig, fakelock.ReturnsEarly},
	{"TryLockOfAFreeLockIsAlwaysTrue", reentrantLock, fakelock.TrySometimesFalse},
	{"TryLockOfAFreeLockIsAlwaysTrue", bareLock, fakelock.TrySometimesFalse},
	{"InspectTellsWhoHoldsAndWhoWaits", inspectedConfig, inspectNeverHeld},
	{"InspectTellsWhoHoldsAndWhoWaits", inspectedConfig, inspectAlwaysHeld},
	{"InspectTellsWhoHoldsAndWhoWaits", inspectedConfig, inspectOverlooksWaiters},
	{"InspectTellsWhoHoldsAndWhoWaits", inspectedConfig, inspectNamesAnother},
	{"InspectTellsWhoHoldsAndWhoWaits", inspectedConfig, inspectIgnoresContext},
	{"InspectTellsWhoHoldsAndWhoWaits", inspectedLeaseConfig, inspectOtherToken},
	{"InspectTellsWhoHoldsAndWhoWaits", inspectedLeaseConfig, inspectOldHold},
	{"ReadersAreInsideTogether", rwConfig, fakelock.ReadersExclude},
	{"LeasedIsImplementedIfDeclared", undeclared, "Leased is not declared"},
	{"AHoldIsForTheHolder", leasedConfig, fakelock.HoldWithoutHold},
	{"AHoldLastsUntilTheLastRelease", leasedConfig, fakelock.LostByRelease},
	{"AHoldLastsUntilTheLastRelease", leasedConfig, fakelock.DeadlineInPast},
	{"AHoldLastsUntilTheLastRelease", leasedConfig, fakelock.ExtendRevives},
	{"AHoldLastsUntilTheLastRelease", leasedConfig, fakelock.NewTokenOnReentry},
	{"FencingTokensIncreaseFromHolderToHolder", leasedConfig, fakelock.TokenRepeats},
	{"ALossIsTold", leasedConfig, fakelock.LossUnnoticed},
	{"ALossIsTold", leasedConfig, fakelock.LostUnlockIsFine},
	{"ALossIsTold", leasedConfig, fakelock.LostRelockSilent},
	{"DoTellsALossToItsFunction", leasedConfig, fakelock.LossUnnoticed},
	{"EveryWaiterIsAdmitted", bareLock, fakelock.ShortQueue},
	{"EveryWaiterIsAdmitted", reentrantLock, fakelock.ShortQueue},
	{"OneHoldsAtATime", bareLock, fakelock.WakeupLost},
	{"OneHoldsAtATime", bareLock, fakelock.BlindHandoff},
	{"OneHoldsAtATime", bareLock, fakelock.SpuriousError},
	{"AStormOfTimeoutsLeavesAUsableLock", reentrantLock, fakelock.TimeoutSucceeds},
	{"AStormOfTimeoutsLeavesAUsableLock", unseen(reentrantLock), fakelock.GhostSometimes},
	{"ManyAcquisitionsDoNotWearItOut", patient(bareLock), fakelock.WearsOut},
	{"ManyHoldsOfOneOwnerAreCounted", reentrantLock, fakelock.ThirdHoldLost},
	{"ManyHoldsOfOneOwnerAreCounted", reentrantLock, fakelock.ByteOfHolds},
	{"ManyHoldsOfOneOwnerAreCounted", patient(reentrantLock), fakelock.WordOfHolds},
	{"OnlyTheLastReleaseFrees", reentrantLock, fakelock.TryReentryUncounted},
	{"AcquisitionsAndTimeoutsRetainNoMemory", bareLock, fakelock.Hoards},
	{"AcquisitionsAndTimeoutsRetainNoMemory", bareLock, fakelock.HoardsTimeouts},
	{"TwoLocksAreIndependent", sharingLock, "two locks have one state"},
	{"TwoLocksAreIndependent", keyedLock, fickleKey},
	{"TwoLocksAreIndependent", keyedLock, sameKey},
	{"UnlockOfAFreeLockIsErrNotHeld", bareLock, fakelock.FreeUnlockOwes},
	{"ADeadlineEndsTheWait", bareLock, fakelock.FarDeadline},
	{"AGrantBeatsALaterEndOfTheContext", reentrantLock, fakelock.GrantLost},
	{"AGrantBeatsALaterEndOfTheContext", withoutOrder(reentrantLock), fakelock.GrantLost},
	{"AnExplicitOwnerMovesBetweenGoroutines", ownedLock, fakelock.TryIgnoresOwner},
	{"AnExplicitOwnerMovesBetweenGoroutines", ownedLock, fakelock.IgnoresGoroutineOwner},
	{"AnotherOwnerInTheSameGoroutineHoldsNothing", ownedLock, fakelock.OwnerOf16Bits},
	{"AnotherOwnerInTheSameGoroutineHoldsNothing", reentrantLock, fakelock.OwnerOf32Bits},
	{"AnotherOwnerInTheSameGoroutineHoldsNothing", reentrantLock, fakelock.OwnerWithoutSign},
	{"WaitersAreAdmittedInOrderOfArrival", bareLock, fakelock.JumpsQueue},
	{"WaitersAreAdmittedInOrderOfArrival", bareLock, fakelock.ShortOrder},
	{"WaitersAreAdmittedInOrderOfArrival", unseen(bareLock), fakelock.TimedJumps},
	{"OrderIsKeptWhenOneInTheMiddleCancels", bareLock, fakelock.CancelReverses},
	{"OrderIsKeptWhenOneInTheMiddleCancels", bareLock, fakelock.CancelTakesNext},
	{"AReleaserDoesNotOvertakeTheWaiter", bareLock, fakelock.ReleaseBarges},
	{"AReaderDoesNotOvertakeAWriter", orderedRW, "a read-write lock without order declares FIFO"},
	{"OneHoldsAtATime", rwConfig, fakelock.WriterIgnoresWriter},
	{"AWriterThatReadsKeepsWritersOut", rwConfig, fakelock.DowngradeGap},
	{"ReentryIsNotBlockedByWaiters", rwConfig, fakelock.ReaderReentryQueues},
	{"OnlyTheLastReleaseFrees", rwConfig, fakelock.FirstReadUnlockFrees},
	{"UnlockByAnotherOwnerIsErrNotHeld", rwConfig, fakelock.AnyReaderUnlocks},
	{"AViewReleasesItsOwnHoldsOnly", rwConfig, fakelock.ViewsMixed},
	{"ManyReadersAreCounted", patient(rwConfig), fakelock.ByteOfReaders},
	{"ACancelledWriterLetsReadersIn", rwConfig, fakelock.CancelledWriterExcludes},
	{"PlainMethodsAgreeWithTheContextFamily", plainFlaw, plainLockIntrudes},
	{"PlainMethodsAgreeWithTheContextFamily", plainFlaw, plainReentryFlat},
	{"PlainMethodsAgreeWithTheContextFamily", plainFlaw, plainTrySometimesFalse},
	{"OneHoldsAtATime", plainFlaw, plainTryIntrudes},
	{"TryLockForWaitsForItsTimeAndNoLonger", timedConfig, tryForOverflows},
	{"InspectTellsWhoHoldsAndWhoWaits", inspectedConfig, inspectShared},
	{"InspectTellsWhoHoldsAndWhoWaits", inspectedConfig, inspectCountsTheGone},
	{"AHoldIsForTheHolder", leasedConfig, fakelock.HoldIgnoresOwner},
	{"AHoldLastsUntilTheLastRelease", leasedConfig, fakelock.DeadlineFalls},
	{"AHoldLastsUntilTheLastRelease", leasedConfig, fakelock.ExtendIdle},
	{"FencingTokensIncreaseFromHolderToHolder", leasedConfig, fakelock.TokenWraps},
	{"FencingTokensIncreaseFromHolderToHolder", leasedConfig, fakelock.TokenNotByTry},
	{"FencingTokensIncreaseFromHolderToHolder", leasedConfig, fakelock.TokenFallsByQueue},
	{"FencingTokensIncreaseFromHolderToHolder", leasedConfig, fakelock.TokenFollows},
	{"ALossIsTold", leasedConfig, fakelock.LostHoldForgotten},
	{"ALossIsTold", leasedConfig, fakelock.LostAfterNext},
}

// Locks to break.
func bareLock(flaw fakelock.Flaw) Config      { return lockConfig(flaw, false, false) }
func ownedLock(flaw fakelock.Flaw) Config     { return lockConfig(flaw, true, false) }
func reentrantLock(flaw fakelock.Flaw) Config { return lockConfig(flaw, true, true) }

// unseen hides the queue of a lock from the suite.
func unseen(lock func(fakelock.Flaw) Config) func(fakelock.Flaw) Config {
	return func(flaw fakelock.Flaw) Config {
		cfg := lock(flaw)
		cfg.Waiting = nil
		return cfg
	}
}

// patient gives the lock enough time for 65,537 calls.
func patient(lock func(fakelock.Flaw) Config) func(fakelock.Flaw) Config {
	return func(flaw fakelock.Flaw) Config {
		cfg := lock(flaw)
		cfg.Timeout = 40 * time.Second
		return cfg
	}
}

func withoutOrder(lock func(fakelock.Flaw) Config) func(fakelock.Flaw) Config {
	return func(flaw fakelock.Flaw) Config {
		cfg := lock(flaw)
		cfg.FIFO = false
		return cfg
	}
}

func orderedRW(fakelock.Flaw) Config {
	cfg := rwConfig("")
	cfg.FIFO = true
	return cfg
}

// sharing is a lock whose state is elsewhere.
type sharing struct{ *fake }

func sharingLock(fakelock.Flaw) Config {
	cfg := bareLock("")
	one := new(fake)
	cfg.New = func(testing.TB) locks.TryLocker { return &sharing{one} }
	return cfg
}

// Flaws of a LockKey.
const (
	fickleKey fakelock.Flaw = "LockKey depends on the holder"
	sameKey   fakelock.Flaw = "two locks have one LockKey"
)

type keyedFake struct {
	fake
	flaw fakelock.Flaw
}

func (l *keyedFake) LockKey() string {
	if l.flaw == fickleKey {
		return l.Owner().String()
	}
	return "key"
}

func keyedLock(flaw fakelock.Flaw) Config {
	cfg := bareLock("")
	cfg.New = func(testing.TB) locks.TryLocker { return &keyedFake{fake{Owned: true}, flaw} }
	cfg.Owned = true
	return cfg
}

func undeclared(fakelock.Flaw) Config {
	cfg := leasedConfig("")
	cfg.Leased = false
	return cfg
}

func TestTheCheckForItCatchesABrokenLock(t *testing.T) {
	for _, b := range broken {
		t.Run(b.check+"/"+string(b.flaw), func(t *testing.T) {
			r := record(t, byName(t, b.check), b.lock(b.flaw))
			require.True(t, r.Failed(), "nothing was noticed")
			require.NotContains(t, strings.Join(r.failures, "\n"), "nil pointer", "caught by accident")
		})
	}
}

// Thirty locks that fail one try in ten: before, a suite that tried a free lock only now and then
// passed 13 of them.
func TestASometimesFailingTryNeverPasses(t *testing.T) {
	for range 30 {
		r := record(t, byName(t, "TryLockOfAFreeLockIsAlwaysTrue"), reentrantLock(fakelock.TrySometimesFalse))
		require.True(t, r.Failed())
		r = record(t, byName(t, "TryLockForWaitsForItsTimeAndNoLonger"), timedConfig(tryForSometimesFalse))
		require.True(t, r.Failed())
	}
}

func TestALeftGoroutineIsCaught(t *testing.T) {
	left := make(chan struct{})
	defer close(left)
	cfg := bareLock("")
	cfg.New = func(testing.TB) locks.TryLocker {
		return &fakelock.Lock{Flaw: fakelock.LeaksGoroutine, Left: left}
	}
	r := record(t, byName(t, "AFreeLockIsTakenAndGivenBack"), cfg)
	require.Contains(t, strings.Join(r.failures, "\n"), "found unexpected goroutines")
}

// A check that finds nothing to check passes, so that nobody looks into it as into a skipped test.
func TestACheckWithoutSubjectPassesWithANote(t *testing.T) {
	for check, cfg := range map[string]Config{
		"PlainMethodsAgreeWithTheContextFamily":   reentrantLock(""),
		"TryLockForWaitsForItsTimeAndNoLonger":    reentrantLock(""),
		"InspectTellsWhoHoldsAndWhoWaits":         reentrantLock(""),
		"FencingTokensIncreaseFromHolderToHolder": leasedConfig(fakelock.NoTokens),
	} {
		t.Run(check, func(t *testing.T) {
			r := record(t, byName(t, check), cfg)
			require.False(t, r.skipped)
			require.Empty(t, r.failures)
			require.Len(t, r.notes, 1)
		})
	}
}

// racy lists the checks that let the race detector watch plain variables. They would
// fail this process, so they run in a child.
var racy = []brokenLock{
	{"UnlockHappensBeforeTheNextLock", bareLock, fakelock.TryIgnoresHolder},
	{"ReadersAndWritersExcludeEachOther", rwConfig, fakelock.ReaderIntrudes},
}

func TestEveryCheckCatchesSomeBrokenLock(t *testing.T) {
	caught := map[string]bool{}
	for _, b := range broken {
		caught[b.check] = true
	}
	for _, r := range racy {
		caught[r.check] = true
	}
	for _, c := range checks {
		require.True(t, caught[c.name], "no broken lock proves %s", c.name)
	}
}

const childEnv = "LOCKSTEST_BROKEN"

func TestALockThatAdmitsTwoFails(t *testing.T) {
	for _, r := range racy {
		t.Run(r.check+"/"+string(r.flaw), func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v")
			child.Env = append(os.Environ(), childEnv+"="+string(r.flaw))
			out, err := child.CombinedOutput()
			require.Error(t, err, "%s", out)
			require.Contains(t, string(out), "--- FAIL: TestChild/"+r.check, "%s", out)
		})
	}
}

// TestChild runs what the test above must see fail.
func TestChild(t *testing.T) {
	name := os.Getenv(childEnv) // empty, and the name of none, unless that test started it
	for _, r := range racy {
		if string(r.flaw) == name {
			t.Run(r.check, func(t *testing.T) { byName(t, r.check).on(t, r.lock(r.flaw).withDefaults()) })
		}
	}
}

var background = context.Background()
