package onrueidis_test

import (
	"context"
	"crypto/tls"
	"flag"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/suite"
	"github.com/jucgo/locks/distributed/redislock/onrueidis"
	"github.com/jucgo/locks/distributed/redislock/redlock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		f.Value.Set("12") // the tests sleep most of the time
	}
	goleak.VerifyTestMain(m, append(leaks,
		testbed.Children())...)
}

// leaks are the goroutines in which a client of a cluster asks who has which slots, up to a
// second later, and closes connections that it has replaced, five seconds later.
var leaks = []goleak.Option{
	goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
	goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"),
}

// option has a connection replaced that does not answer for the time reply, more or less.
func option(reply time.Duration, addrs ...string) rueidis.ClientOption {
	return rueidis.ClientOption{
		InitAddress:      addrs,
		Dialer:           net.Dialer{Timeout: reply, KeepAlive: min(reply, time.Second)},
		ConnWriteTimeout: reply,
		DisableCache:     true,
		// The tests have many connections.
		ReadBufferEachConn:  4 << 10,
		WriteBufferEachConn: 4 << 10,
		RingScaleEachConn:   8,
	}
}

func connect(tb testing.TB, o rueidis.ClientOption) rueidis.Client {
	tb.Helper()
	var c rueidis.Client
	require.Eventually(tb, func() (connected bool) { // the time limit of o may be short for a busy machine
		var err error
		c, err = rueidis.NewClient(o)
		return err == nil
	}, suite.Hang, time.Millisecond)
	tb.Cleanup(c.Close)
	return c
}

// open returns a Client of c that is closed with the test.
func open(tb testing.TB, c rueidis.Client, opts ...redislock.Option) *redislock.Client {
	tb.Helper()
	rc, err := onrueidis.New(c, append(slices.Clip(suite.Unhurried), opts...)...)
	require.NoError(tb, err)
	tb.Cleanup(func() { adaptertest.Close(tb, rc) })
	return rc
}

// onRueidis has the tests of package suite run on rueidis.
var onRueidis = suite.Driver{
	Client: func(tb testing.TB, to suite.Way, opts ...redislock.Option) *redislock.Client {
		c, err := onrueidis.New(dial(tb, to), opts...)
		require.NoError(tb, err)
		return c
	},
	Redlock: func(tb testing.TB, to []suite.Way, opts ...redislock.Option) *redlock.Client {
		var cs []rueidis.Client
		for _, one := range to {
			cs = append(cs, dial(tb, one))
		}
		m, err := onrueidis.NewRedlock(cs, opts...)
		require.NoError(tb, err)
		return m
	},
	Eval:  "EVAL",
	Leaks: leaks,
}

// dial returns a client that is closed with the test.
func dial(tb testing.TB, to suite.Way) rueidis.Client {
	tb.Helper()
	o := option(to.Reply, to.Addrs...)
	o.ForceSingleClient = !to.Cluster && !to.Sentinel
	if to.Sentinel {
		o.Sentinel.MasterSet = "it"
		o.Sentinel.Dialer = o.Dialer // its KeepAlive has no default
	}
	if to.Dial != nil {
		o.DialCtxFn = func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, to.Reply)
			defer cancel()
			return to.Dial(ctx, "tcp", addr)
		}
	}
	return connect(tb, o)
}

func TestLocksConformOnMiniredis(t *testing.T) { suite.LocksConformOnMiniredis(t, onRueidis) }

func TestLocksConformOnRedis(t *testing.T) { suite.LocksConformOnRedis(t, onRueidis) }

func TestAPartitionsLossPrecedesTheNextHolder(t *testing.T) {
	suite.ALossIsToldBeforeARivalGetsTheLockInEveryPhaseOfAPartition(t, onRueidis)
}

func TestALostAcquisitionReplyLeavesOneHold(t *testing.T) {
	suite.ALostAcquisitionReplyLeavesOneHold(t, onRueidis)
}

func TestACancelledAcquisitionWithoutReplyIsUndone(t *testing.T) {
	suite.ACancelledAcquisitionWhoseReplyIsLostReturnsAtOnceAndIsUndone(t, onRueidis)
}

func TestALostReleaseReplyIsNoError(t *testing.T) {
	suite.ALostReleaseReplyIsNoError(t, onRueidis)
}

func TestWaitersGoOnAfterTheirSubscriptionsWereCut(t *testing.T) {
	suite.WaitersGoOnAfterTheirSubscriptionsWereCut(t, onRueidis)
}

func TestACutSubscriptionMissesNoRelease(t *testing.T) {
	suite.AReleaseDuringACutOfTheSubscriptionIsNotMissed(t, onRueidis)
}

func TestWithoutMessagesWaitersAskInTurn(t *testing.T) {
	suite.WithoutMessagesWaitersAskInTurn(t, onRueidis)
}

func TestMessagesWithoutAReasonGrantNothing(t *testing.T) {
	suite.MessagesWithoutAReasonGrantNothing(t, onRueidis)
}

func TestAFlushLosesHoldsForgottenScriptsDoNot(t *testing.T) {
	suite.AFlushLosesHoldsForgottenScriptsDoNot(t, onRueidis)
}

func TestNothingElseIsOverwritten(t *testing.T) { suite.NothingElseIsOverwritten(t, onRueidis) }

func TestLocksLeaveInRedisWhatRedissonDoes(t *testing.T) {
	suite.LocksLeaveInRedisWhatRedissonDoes(t, onRueidis)
}

func TestLocksThatReplicasAcknowledgeConform(t *testing.T) {
	suite.LocksThatReplicasAcknowledgeConform(t, onRueidis)
}

func TestAnUnacknowledgedLockIsRefusedAndRemoved(t *testing.T) {
	suite.ALockThatNoReplicaAcknowledgesIsRefusedAndLeavesNothing(t, onRueidis)
}

func TestAnAcknowledgedLockSurvivesItsMaster(t *testing.T) {
	suite.AnAcknowledgedLockSurvivesItsMaster(t, onRueidis)
}

func TestAWaiterReplicasRefusedHearsTheNextRelease(t *testing.T) {
	suite.WhoGaveALockBackThatNoReplicaAcknowledgedHearsOfTheNextRelease(t, onRueidis)
}

func TestAfterALostReplyReplicasAcknowledgeAnew(t *testing.T) {
	suite.ALostReplyOfAnAcquisitionIsAskedForWithItsAcknowledgement(t, onRueidis)
}

func TestReadWriteLocksConformOnMiniredis(t *testing.T) {
	suite.ReadWriteLocksConformOnMiniredis(t, onRueidis)
}

func TestReadWriteLocksConformOnRedis(t *testing.T) { suite.ReadWriteLocksConformOnRedis(t, onRueidis) }

func TestLocksConformBehindASentinel(t *testing.T) { suite.LocksConformBehindASentinel(t, onRueidis) }

func TestASentinelFailoverKeepsOrReportsTheLock(t *testing.T) {
	suite.AHolderKeepsItsLockWhenASentinelReplacesTheMasterOrIsToldOfItsLoss(t, onRueidis)
}

func TestLocksConformOnACluster(t *testing.T) { suite.LocksConformOnACluster(t, onRueidis) }

func TestEveryClusterServerServesAllKinds(t *testing.T) {
	suite.LocksOfAllKindsAndNamesWorkOnAllServersOfACluster(t, onRueidis)
}

func TestAWaiterHearsAgainAfterAClusterForgotIt(t *testing.T) {
	suite.AWaiterHearsAgainAfterAClusterHasForgottenItsSubscriptions(t, onRueidis)
}

func TestAClustersReadersShareALock(t *testing.T) {
	suite.AClustersReadersShareALock(t, onRueidis)
}

func TestLocksOfAClusterSurviveAFailover(t *testing.T) {
	suite.LocksOfAClusterSurviveAServerWhoseReplicaTakesItsPlace(t, onRueidis)
}

func TestClusterLocksWakeWaitersByEitherChannel(t *testing.T) {
	suite.LocksOfAClusterWakeThoseWhoWaitByEitherKindOfChannel(t, onRueidis)
}

func TestManyHoldsOfAClusterAreRenewed(t *testing.T) {
	suite.ManyHoldsOfAClusterAreRenewed(t, onRueidis)
}

func TestAClusterHasReadWriteAndFairLocks(t *testing.T) {
	suite.AClusterHasReadWriteAndFairLocks(t, onRueidis)
}

func TestOneConnectionHearsOfAllLocks(t *testing.T) { suite.OneConnectionHearsOfAllLocks(t, onRueidis) }

func TestReadWriteHistoriesInTroubleFitOneLock(t *testing.T) {
	suite.ReadWriteHistoriesInTroubleFitOneLock(t, onRueidis)
}

func TestWaitersCancelledAtRandomLeaveNothingBehind(t *testing.T) {
	suite.WaitersCancelledAtRandomLeaveNothingBehind(t, onRueidis)
}

func TestAfterACutAllSlotsWaitersHear(t *testing.T) {
	suite.WaitersInSeveralSlotsOfAServerAreToldAlsoAfterTheirSubscriptionsWereCut(t, onRueidis)
}

func TestTenThousandWaitersHaveOneConnection(t *testing.T) {
	suite.TenThousandWaitersHaveOneConnection(t, onRueidis)
}

func TestInspectDescribesTheHolderToOtherProcesses(t *testing.T) {
	suite.InspectDescribesTheHolderToOtherProcesses(t, onRueidis)
}

func TestInspectListsWaitersInOrder(t *testing.T) { suite.InspectListsWaitersInOrder(t, onRueidis) }

func TestEitherHalfDescribesAReadWriteLock(t *testing.T) {
	suite.EitherHalfDescribesAReadWriteLock(t, onRueidis)
}

func TestInspectNamesHoldersOfOtherLibraries(t *testing.T) {
	suite.InspectNamesHoldersOfOtherLibraries(t, onRueidis)
}

func TestInspectWorksOnACluster(t *testing.T) { suite.InspectWorksOnACluster(t, onRueidis) }

func TestAnUnlockOutlastsAServerThatRefusesWrites(t *testing.T) {
	suite.AnUnlockOutlastsAServerThatRefusesWrites(t, onRueidis)
}

func TestWaitersAreWokenAfterPlannedFailovers(t *testing.T) {
	suite.WaitersAreWokenAfterPlannedFailovers(t, onRueidis)
}

func TestAForcedUnlockTellsRemoteHoldersAtOnce(t *testing.T) {
	suite.AForcedUnlockTellsRemoteHoldersAtOnce(t, onRueidis)
}

func TestAFalseForcedUnlockNoticeEndsNoHold(t *testing.T) {
	suite.AFalseForcedUnlockNoticeEndsNoHold(t, onRueidis)
}

func TestNamesListsHeldLocks(t *testing.T) { suite.NamesListsHeldLocks(t, onRueidis) }

func TestNamesOfAllMastersAreListed(t *testing.T) { suite.NamesOfAllMastersAreListed(t, onRueidis) }
