package redislock_test

import (
	"testing"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

// The tests of other client libraries need these, too.

type server = suite.Server

const (
	short = suite.Short
	long  = suite.Long
	hasty = suite.Hasty
	hang  = suite.Hang
)

var (
	startServer    = suite.StartServer
	startServerEnv = suite.StartServerEnv
	connect        = suite.Connect
	connectFor     = suite.ConnectFor
	options        = suite.Options
	term           = suite.Term
	someone        = suite.Someone
	hold           = suite.Hold
	patiently      = adaptertest.Patiently
	renewed        = suite.Renewed
	try            = suite.Try
	commands       = suite.Commands
	subscriptions  = suite.Subscriptions
	servers        = suite.Servers
	startCluster   = suite.StartCluster
	startReplica   = suite.StartReplica
	startMaster    = suite.StartMaster
	failOver       = suite.FailOver
	patient        = suite.Patient
	open           = suite.Open
	onGoRedis      = suite.OnGoRedis

	kinds      = suite.Kinds
	anyKind    = suite.AnyKind
	rarely     = suite.Rarely
	background = suite.Background
)

func TestLocksConformOnMiniredis(t *testing.T) { suite.LocksConformOnMiniredis(t, onGoRedis) }

func TestLocksConformOnRedis(t *testing.T) { suite.LocksConformOnRedis(t, onGoRedis) }

func TestAPartitionsLossPrecedesTheNextHolder(t *testing.T) {
	suite.ALossIsToldBeforeARivalGetsTheLockInEveryPhaseOfAPartition(t, onGoRedis)
}

func TestALostAcquisitionReplyLeavesOneHold(t *testing.T) {
	suite.ALostAcquisitionReplyLeavesOneHold(t, onGoRedis)
}

func TestACancelledAcquisitionWithoutReplyIsUndone(t *testing.T) {
	suite.ACancelledAcquisitionWhoseReplyIsLostReturnsAtOnceAndIsUndone(t, onGoRedis)
}

func TestALostReleaseReplyIsNoError(t *testing.T) {
	suite.ALostReleaseReplyIsNoError(t, onGoRedis)
}

func TestWaitersGoOnAfterTheirSubscriptionsWereCut(t *testing.T) {
	suite.WaitersGoOnAfterTheirSubscriptionsWereCut(t, onGoRedis)
}

func TestACutSubscriptionMissesNoRelease(t *testing.T) {
	suite.AReleaseDuringACutOfTheSubscriptionIsNotMissed(t, onGoRedis)
}

func TestWithoutMessagesWaitersAskInTurn(t *testing.T) {
	suite.WithoutMessagesWaitersAskInTurn(t, onGoRedis)
}

func TestMessagesWithoutAReasonGrantNothing(t *testing.T) {
	suite.MessagesWithoutAReasonGrantNothing(t, onGoRedis)
}

func TestAFlushLosesHoldsForgottenScriptsDoNot(t *testing.T) {
	suite.AFlushLosesHoldsForgottenScriptsDoNot(t, onGoRedis)
}

func TestNothingElseIsOverwritten(t *testing.T) { suite.NothingElseIsOverwritten(t, onGoRedis) }

func TestLocksLeaveInRedisWhatRedissonDoes(t *testing.T) {
	suite.LocksLeaveInRedisWhatRedissonDoes(t, onGoRedis)
}

func TestReadWriteLocksConformOnMiniredis(t *testing.T) {
	suite.ReadWriteLocksConformOnMiniredis(t, onGoRedis)
}

func TestReadWriteLocksConformOnRedis(t *testing.T) { suite.ReadWriteLocksConformOnRedis(t, onGoRedis) }

func TestLocksConformBehindASentinel(t *testing.T) { suite.LocksConformBehindASentinel(t, onGoRedis) }

func TestASentinelFailoverKeepsOrReportsTheLock(t *testing.T) {
	suite.AHolderKeepsItsLockWhenASentinelReplacesTheMasterOrIsToldOfItsLoss(t, onGoRedis)
}

func TestLocksConformOnACluster(t *testing.T) { suite.LocksConformOnACluster(t, onGoRedis) }

func TestEveryClusterServerServesAllKinds(t *testing.T) {
	suite.LocksOfAllKindsAndNamesWorkOnAllServersOfACluster(t, onGoRedis)
}

func TestAWaiterHearsAgainAfterAClusterForgotIt(t *testing.T) {
	suite.AWaiterHearsAgainAfterAClusterHasForgottenItsSubscriptions(t, onGoRedis)
}

func TestAClustersReadersShareALock(t *testing.T) {
	suite.AClustersReadersShareALock(t, onGoRedis)
}

func TestLocksOfAClusterSurviveAFailover(t *testing.T) {
	suite.LocksOfAClusterSurviveAServerWhoseReplicaTakesItsPlace(t, onGoRedis)
}

func TestClusterLocksWakeWaitersByEitherChannel(t *testing.T) {
	suite.LocksOfAClusterWakeThoseWhoWaitByEitherKindOfChannel(t, onGoRedis)
}

func TestManyHoldsOfAClusterAreRenewed(t *testing.T) {
	suite.ManyHoldsOfAClusterAreRenewed(t, onGoRedis)
}

func TestAClusterHasReadWriteAndFairLocks(t *testing.T) {
	suite.AClusterHasReadWriteAndFairLocks(t, onGoRedis)
}

func TestOneConnectionHearsOfAllLocks(t *testing.T) { suite.OneConnectionHearsOfAllLocks(t, onGoRedis) }

func TestReadWriteHistoriesInTroubleFitOneLock(t *testing.T) {
	suite.ReadWriteHistoriesInTroubleFitOneLock(t, onGoRedis)
}

func TestWaitersCancelledAtRandomLeaveNothingBehind(t *testing.T) {
	suite.WaitersCancelledAtRandomLeaveNothingBehind(t, onGoRedis)
}

func TestAfterACutAllSlotsWaitersHear(t *testing.T) {
	suite.WaitersInSeveralSlotsOfAServerAreToldAlsoAfterTheirSubscriptionsWereCut(t, onGoRedis)
}

func TestTenThousandWaitersHaveOneConnection(t *testing.T) {
	suite.TenThousandWaitersHaveOneConnection(t, onGoRedis)
}

func TestAnUnlockOutlastsAServerThatRefusesWrites(t *testing.T) {
	suite.AnUnlockOutlastsAServerThatRefusesWrites(t, onGoRedis)
}

func TestWaitersAreWokenAfterPlannedFailovers(t *testing.T) {
	suite.WaitersAreWokenAfterPlannedFailovers(t, onGoRedis)
}

func TestPlannedFailoversLeaveOneHolder(t *testing.T) {
	suite.PlannedFailoversLeaveOneHolder(t, "hold in turn")
}

func TestAForcedUnlockTellsRemoteHoldersAtOnce(t *testing.T) {
	suite.AForcedUnlockTellsRemoteHoldersAtOnce(t, onGoRedis)
}

func TestAFalseForcedUnlockNoticeEndsNoHold(t *testing.T) {
	suite.AFalseForcedUnlockNoticeEndsNoHold(t, onGoRedis)
}

func TestNamesListsHeldLocks(t *testing.T) { suite.NamesListsHeldLocks(t, onGoRedis) }

func TestNamesOfAllMastersAreListed(t *testing.T) { suite.NamesOfAllMastersAreListed(t, onGoRedis) }
