package redisson

import (
	"slices"
	"testing"
	"time"
)

var situations = []situation{
	{"either side in either part leaves the same in Redis", traces},
	{"the scripts of both sides write to the same keys", scriptsWriteTheSameKeys},
	{"Java is woken by Go", javaIsWokenByGo},
	{"Go is woken by Java", goIsWokenByJava},
	{"Java is woken while Go waits", javaIsWokenWhileGoWaits},
	{"a spin lock of Redisson takes turns with ours", aSpinLockOfRedissonTakesTurnsWithOurs},
	{"waiters of both sides have their turns after releases of either",
		waitersOfBothSidesHaveTheirTurnsAfterReleasesOfEither},
	{"holds of either side are counted to the last", holdsOfEitherSideAreCountedToTheLast},
	{"a fair lock serves both sides in order of arrival", aFairLockServesBothSidesInOrderOfArrival},
	{"a waiter that gives up leaves the fair queue to the others", aWaiterThatGivesUpLeavesTheFairQueueToTheOthers},
	{"readers of both sides read together and keep writers out", readersOfBothSidesReadTogetherAndKeepWritersOut},
	{"tokens increase from holder to holder", tokensIncreaseFromHolderToHolder},
	{"multi-locks exclude each other", multiLocksExcludeEachOther},
	{"only the owner can unlock", onlyTheOwnerCanUnlock},
	{"a lost lock is reported and not taken from its next holder", aLostLockIsReportedAndNotTakenFromItsNextHolder},
	{"our waiter is woken when Redisson forces an unlock", ourWaiterIsWokenWhenRedissonForcesAnUnlock},
	{"both watchdogs renew", bothWatchdogsRenew},
	{"Inspect describes holders of both sides", inspectDescribesHoldersOfBothSides},
	{"ours gets the lock of a Java process that was killed", oursGetsTheLockOfAJavaProcessThatWasKilled},
	{"Redisson gets the lock of a Go process that was killed", redissonGetsTheLockOfAGoProcessThatWasKilled},
	{"Redisson skips a Go process that was killed at the head of the queue",
		redissonSkipsAKilledGoProcessAtTheHead},
	{"a waiter of a read-write lock is woken by either side",
		aWaiterOfAReadWriteLockIsWokenByEitherSide},
	{"both sides count the same permits", bothSidesCountTheSamePermits},
	{"a release of permits wakes the other side", aReleaseOfPermitsWakesTheOtherSide},
	{"an acquisition waits for permits to be added", anAcquisitionWaitsForPermitsToBeAdded},
	{"our permits are renewed beyond their lease", ourPermitsAreRenewedBeyondTheirLease},
	{"either side collects lapsed permits", eitherSideCollectsLapsedPermits},
	{"permits are drained by either side", permitsAreDrainedByEitherSide},
}

func TestWithTheCurrentRedisson(t *testing.T) {
	perform(t, current, append(slices.Clone(situations), load(5*time.Second)))
}

func TestALongLoadWithTheCurrentRedisson(t *testing.T) {
	t.Parallel()
	perform(t, current, []situation{load(20 * time.Second)})
}

func TestWithAnOldRedisson(t *testing.T) {
	t.Parallel()
	perform(t, before, append(slices.Clone(situations), load(5*time.Second)))
}

// load returns a mixed load of rounds that take so long.
func load(d time.Duration) situation {
	return situation{"mixed load leaves both sides alone inside and each a share",
		func(t *testing.T, s *stage) { mixedLoad(t, s, d) }}
}
