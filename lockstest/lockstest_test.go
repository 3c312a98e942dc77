package lockstest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/testkit/fakelock"
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

func TestALockWithoutOwnersPasses(t *testing.T) { TestTryLocker(t, lockConfig("", false, false)) }

func TestANonReentrantLockWithOwnersPasses(t *testing.T) {
	TestTryLocker(t, lockConfig("", true, false))
}

func TestAReentrantLockPasses(t *testing.T) { TestTryLocker(t, lockConfig("", true, true)) }

func TestALeasedLockPasses(t *testing.T) { TestTryLocker(t, leasedConfig("")) }

func TestAReadViewPasses(t *testing.T) { TestTryLocker(t, rwConfig("")) }

func TestALockWhoseQueueCannotBeSeenPasses(t *testing.T) {
	cfg := lockConfig("", true, true)
	cfg.Waiting = nil
	TestTryLocker(t, cfg)
}

type fake = fakelock.Lock

// plainMutex is a fake with the plain family.
type plainMutex struct {
	fake
	silent bool // Unlock does not panic
}

func (m *plainMutex) Lock()         { _ = m.LockContext(background) }
func (m *plainMutex) TryLock() bool { ok, _ := m.TryLockContext(background); return ok }
func (m *plainMutex) Unlock() {
	if err := m.UnlockContext(background); err != nil && !m.silent {
		panic(err)
	}
}

func plainConfig(silent bool) Config {
	return Config{
		New: func(testing.TB) locks.TryLocker {
			return &plainMutex{fake: fake{Reentrant: true}, silent: silent}
		},
		Reentrant: true, FIFO: true, Waiting: queue,
	}
}

func TestALockWithPlainMethodsPasses(t *testing.T) { TestTryLocker(t, plainConfig(false)) }

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
	cfg.Timeout = 100 * time.Millisecond
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

// broken lists locks that are wrong in one way each, by the check that must notice.
var broken = []struct {
	check string
	cfg   Config
	flaw  fakelock.Flaw
}{
	{"AFreeLockIsTakenAndGivenBack", lockConfig(fakelock.TryAlwaysFalse, true, true), fakelock.TryAlwaysFalse},
	{"AFreeLockIsTakenAndGivenBack", lockConfig(fakelock.KeepsLock, false, false), fakelock.KeepsLock},
	{"TryLockIsFalseWhileAnotherHoldsAndNeverWaits", lockConfig(fakelock.TryIgnoresHolder, true, true), fakelock.TryIgnoresHolder},
	{"TryLockIsFalseWhileAnotherHoldsAndNeverWaits", lockConfig(fakelock.TryWaits, true, true), fakelock.TryWaits},
	{"LockWaitsForTheHolder", lockConfig(fakelock.NoExclusion, true, true), fakelock.NoExclusion},
	{"LockWaitsForTheHolder", lockConfig(fakelock.KeepsLock, true, true), fakelock.KeepsLock},
	{"OneHoldsAtATime", lockConfig(fakelock.TryIgnoresHolder, false, false), fakelock.TryIgnoresHolder},
	{"UnlockOfAFreeLockIsErrNotHeldAndChangesNothing", lockConfig(fakelock.FreeUnlockAccepted, false, false), fakelock.FreeUnlockAccepted},
	{"UnlockOfAFreeLockIsErrNotHeldAndChangesNothing", lockConfig(fakelock.FreeUnlockCorrupts, true, true), fakelock.FreeUnlockCorrupts},
	{"UnlockByAnotherThanTheOwnerIsErrNotHeldAndChangesNothing", lockConfig(fakelock.AnybodyUnlocks, true, true), fakelock.AnybodyUnlocks},
	{"AnyGoroutineMayUnlock", lockConfig(fakelock.UnlockNeedsLocker, false, false), fakelock.UnlockNeedsLocker},
	{"OnlyTheLastReleaseFrees", lockConfig(fakelock.FirstUnlockFrees, true, true), fakelock.FirstUnlockFrees},
	{"OnlyTheLastReleaseFrees", lockConfig(fakelock.ReentryByTryFalse, true, true), fakelock.ReentryByTryFalse},
	{"ReentryIsNotBlockedByThoseWhoWait", lockConfig(fakelock.ReentryQueues, true, true), fakelock.ReentryQueues},
	{"TryLockByTheHolderIsFalse", lockConfig(fakelock.HolderTryTakes, true, false), fakelock.HolderTryTakes},
	{"TryLockByTheHolderIsFalse", lockConfig(fakelock.HolderTryTakes, false, false), fakelock.HolderTryTakes},
	{"ADoneContextBeatsAFreeLock", lockConfig(fakelock.DoneTakes, true, true), fakelock.DoneTakes},
	{"ADoneContextBeatsAFreeLock", lockConfig(fakelock.DoneTryTakes, true, true), fakelock.DoneTryTakes},
	{"ADoneContextBeatsAFreeLock", lockConfig(fakelock.LosesCause, true, true), fakelock.LosesCause},
	{"ADoneContextBeatsAFreeLock", lockConfig(fakelock.OnlyCause, true, true), fakelock.OnlyCause},
	{"ADoneContextBeatsReentry", lockConfig(fakelock.DoneReenters, true, true), fakelock.DoneReenters},
	{"ADeadlineEndsTheWait", lockConfig(fakelock.DeafWaiter, true, true), fakelock.DeafWaiter},
	{"ADeadlineEndsTheWait", lockConfig(fakelock.ReturnsEarly, true, true), fakelock.ReturnsEarly},
	{"ADeadlineEndsTheWait", lockConfig(fakelock.LosesCause, true, true), fakelock.LosesCause},
	{"ACancelledWaiterLeavesNoGhost", lockConfig(fakelock.Ghost, true, true), fakelock.Ghost},
	{"ACancelledWaiterLeavesNoGhost", unseen(lockConfig(fakelock.Ghost, true, true)), fakelock.Ghost},
	{"ACancelledWaiterLeavesNoGhost", lockConfig(fakelock.DeafWaiter, true, true), fakelock.DeafWaiter},
	{"ACancelledWaiterLeavesNoGhost", unseen(lockConfig(fakelock.CancelSwallowsRelease, true, true)), fakelock.CancelSwallowsRelease},
	{"ALockIsReleasedUnderADoneContext", lockConfig(fakelock.CancelledUnlockFails, true, true), fakelock.CancelledUnlockFails},
	{"AContextThatEndsLaterDoesNotRelease", lockConfig(fakelock.CtxBoundsHold, true, true), fakelock.CtxBoundsHold},
	{"ANilContextIsErrNilContext", lockConfig(fakelock.NilPanics, true, true), fakelock.NilPanics},
	{"ANilContextIsErrNilContext", lockConfig(fakelock.NilTakes, true, true), fakelock.NilTakes},
	{"UnlockWithANilContextActsForTheGoroutine", lockConfig(fakelock.NilUnlockFails, true, true), fakelock.NilUnlockFails},
	{"AnExplicitOwnerMovesBetweenGoroutines", lockConfig(fakelock.IgnoresExplicitOwner, true, true), fakelock.IgnoresExplicitOwner},
	{"AnExplicitOwnerMovesBetweenGoroutines", lockConfig(fakelock.UnlockNeedsLocker, true, false), fakelock.UnlockNeedsLocker},
	{"AnExplicitOwnerSharesReentrancy", lockConfig(fakelock.IgnoresExplicitOwner, true, true), fakelock.IgnoresExplicitOwner},
	{"AnotherOwnerInTheSameGoroutineHoldsNothing", lockConfig(fakelock.IgnoresExplicitOwner, true, true), fakelock.IgnoresExplicitOwner},
	{"WaitersAreAdmittedInOrderOfArrival", lockConfig(fakelock.LIFO, true, true), fakelock.LIFO},
	{"OrderIsKeptWhenOneInTheMiddleCancels", lockConfig(fakelock.LIFO, true, true), fakelock.LIFO},
	{"OrderIsKeptWhenOneInTheMiddleCancels", unseen(lockConfig(fakelock.Ghost, false, false)), fakelock.Ghost},
	{"DoReleasesOnEveryExit", lockConfig(fakelock.CancelledUnlockFails, true, true), fakelock.CancelledUnlockFails},
	{"DoReleasesOnEveryExit", lockConfig(fakelock.KeepsLock, true, true), fakelock.KeepsLock},
	{"AStormOfTimeoutsLeavesAUsableLock", lockConfig(fakelock.Ghost, true, true), fakelock.Ghost},
	{"ARandomHistoryIsLinearizable", lockConfig(fakelock.TrySpuriouslyFalse, true, true), fakelock.TrySpuriouslyFalse},
	{"ARandomHistoryIsLinearizable", lockConfig(fakelock.TrySpuriouslyFalse, false, false), fakelock.TrySpuriouslyFalse},
	{"ARandomHistoryIsLinearizable", rwConfig(fakelock.ReaderIntrudes), fakelock.ReaderIntrudes},
	{"ARandomHistoryIsLinearizable", rwConfig(fakelock.WriterIntrudes), fakelock.WriterIntrudes},
	{"PlainMethodsAgreeWithTheContextFamily", plainConfig(true), "Unlock never panics"},
	{"ReadersAreInsideTogether", rwConfig(fakelock.ReadersExclude), fakelock.ReadersExclude},
	{"LeasedIsImplementedIfDeclared", undeclared(leasedConfig("")), "Leased is not declared"},
	{"AHoldIsForTheHolder", leasedConfig(fakelock.HoldWithoutHold), fakelock.HoldWithoutHold},
	{"AHoldLastsUntilTheLastRelease", leasedConfig(fakelock.LostByRelease), fakelock.LostByRelease},
	{"AHoldLastsUntilTheLastRelease", leasedConfig(fakelock.DeadlineInPast), fakelock.DeadlineInPast},
	{"AHoldLastsUntilTheLastRelease", leasedConfig(fakelock.ExtendRevives), fakelock.ExtendRevives},
	{"AHoldLastsUntilTheLastRelease", leasedConfig(fakelock.NewTokenOnReentry), fakelock.NewTokenOnReentry},
	{"FencingTokensIncreaseFromHolderToHolder", leasedConfig(fakelock.TokenRepeats), fakelock.TokenRepeats},
	{"ALossIsTold", leasedConfig(fakelock.LossUnnoticed), fakelock.LossUnnoticed},
	{"ALossIsTold", leasedConfig(fakelock.LostUnlockIsFine), fakelock.LostUnlockIsFine},
	{"ALossIsTold", leasedConfig(fakelock.LostRelockSilent), fakelock.LostRelockSilent},
	{"DoTellsALossToItsFunction", leasedConfig(fakelock.LossUnnoticed), fakelock.LossUnnoticed},
}

func unseen(cfg Config) Config {
	cfg.Waiting = nil
	return cfg
}

func undeclared(cfg Config) Config {
	cfg.Leased = false
	return cfg
}

func TestABrokenLockIsCaughtByTheCheckForIt(t *testing.T) {
	for _, b := range broken {
		t.Run(b.check+"/"+string(b.flaw), func(t *testing.T) {
			r := record(t, byName(t, b.check), b.cfg)
			require.True(t, r.Failed(), "nothing was noticed")
			require.NotContains(t, strings.Join(r.failures, "\n"), "nil pointer", "caught by accident")
		})
	}
}

func TestALockThatLeavesAGoroutineBehindIsCaught(t *testing.T) {
	r := record(t, byName(t, "AFreeLockIsTakenAndGivenBack"), lockConfig(fakelock.LeaksGoroutine, false, false))
	require.Contains(t, strings.Join(r.failures, "\n"), "found unexpected goroutines")
	time.Sleep(time.Second) // what leaked ends by then
}

// A check that finds nothing to check is no test that was left out: whoever counts skipped tests would look into it.
func TestACheckOfWhatTheLockDoesNotHavePassesWithANote(t *testing.T) {
	for check, cfg := range map[string]Config{
		"PlainMethodsAgreeWithTheContextFamily":   lockConfig("", true, true),
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
var racy = []struct {
	check string
	cfg   Config
}{
	{"UnlockHappensBeforeTheNextLock", lockConfig(fakelock.TryIgnoresHolder, false, false)},
	{"ReadersAndWritersExcludeEachOther", rwConfig(fakelock.ReaderIntrudes)},
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

func TestALockThatAdmitsTwoFailsUnderTheSuite(t *testing.T) {
	for _, r := range racy {
		t.Run(r.check, func(t *testing.T) {
			child := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v")
			child.Env = append(os.Environ(), childEnv+"="+r.check)
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
		if r.check == name {
			TestTryLocker(t, r.cfg)
		}
	}
}

var background = context.Background()
