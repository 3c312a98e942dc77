package redislock_test

import (
	"testing"

	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

func TestAFirstRequestFollowsTheClassOfAnErrorReply(t *testing.T) {
	suite.AFirstRequestFollowsTheClassOfAnErrorReply(t, onGoRedis)
}

func TestAWaitFollowsTheClassOfAnErrorReply(t *testing.T) {
	suite.AWaitFollowsTheClassOfAnErrorReply(t, onGoRedis)
}

func TestNoErrorReplyToARenewalIsALoss(t *testing.T) {
	suite.NoErrorReplyToARenewalIsALoss(t, onGoRedis)
}

func TestAReleaseFollowsTheClassOfAnErrorReply(t *testing.T) {
	suite.AReleaseFollowsTheClassOfAnErrorReply(t, onGoRedis)
}

func TestHoldsAndWaitersOutlastAFullMemory(t *testing.T) {
	suite.HoldsAndWaitersOutlastAFullMemory(t, onGoRedis)
}

func TestEachKindFollowsTheClassOfAnErrorReply(t *testing.T) {
	suite.EachKindFollowsTheClassOfAnErrorReply(t, onGoRedis)
}

func TestANumberFollowsTheClassOfAnErrorReply(t *testing.T) {
	suite.ANumberFollowsTheClassOfAnErrorReply(t, onGoRedis)
}
