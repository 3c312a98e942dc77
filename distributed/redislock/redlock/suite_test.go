package redlock_test

import (
	"testing"

	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

// The tests of package redislock use these declarations, too.

type server = suite.Server

const (
	short = suite.Short
	hang  = suite.Hang
)

var (
	startServer   = suite.StartServer
	connect       = suite.Connect
	connectFor    = suite.ConnectFor
	term          = suite.Term
	someone       = suite.Someone
	hold          = suite.Hold
	commands      = suite.Commands
	subscriptions = suite.Subscriptions
	startReplica  = suite.StartReplica
	startMaster   = suite.StartMaster
	patient       = suite.Patient

	background = suite.Background
	open       = suite.Open
	onGoRedis  = suite.OnGoRedis
)

func TestLocksThatReplicasAcknowledgeConform(t *testing.T) {
	suite.LocksThatReplicasAcknowledgeConform(t, onGoRedis)
}

func TestAnUnacknowledgedLockIsRefusedAndRemoved(t *testing.T) {
	suite.ALockThatNoReplicaAcknowledgesIsRefusedAndLeavesNothing(t, onGoRedis)
}

func TestAnAcknowledgedLockSurvivesItsMaster(t *testing.T) {
	suite.AnAcknowledgedLockSurvivesItsMaster(t, onGoRedis)
}

func TestAWaiterReplicasRefusedHearsTheNextRelease(t *testing.T) {
	suite.WhoGaveALockBackThatNoReplicaAcknowledgedHearsOfTheNextRelease(t, onGoRedis)
}

func TestAfterALostReplyReplicasAcknowledgeAnew(t *testing.T) {
	suite.ALostReplyOfAnAcquisitionIsAskedForWithItsAcknowledgement(t, onGoRedis)
}

func TestLocksThatReplicasAcknowledgePassTheKit(t *testing.T) {
	suite.LocksThatReplicasAcknowledgePassTheKit(t, onGoRedis, "fenced", "fair")
}

func TestRedlockPassesTheKit(t *testing.T) { suite.RedlockPassesTheKit(t, onGoRedis) }

func TestARedlockFollowsTheClassOfAnErrorReply(t *testing.T) {
	suite.ARedlockFollowsTheClassOfAnErrorReply(t, onGoRedis)
}
