package onrueidis_test

import (
	"testing"

	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

func TestAFirstRequestFollowsTheClassOfAnErrorReply(t *testing.T) {
	suite.AFirstRequestFollowsTheClassOfAnErrorReply(t, onRueidis)
}

func TestAWaitFollowsTheClassOfAnErrorReply(t *testing.T) {
	suite.AWaitFollowsTheClassOfAnErrorReply(t, onRueidis)
}

func TestNoErrorReplyToARenewalIsALoss(t *testing.T) {
	suite.NoErrorReplyToARenewalIsALoss(t, onRueidis)
}

func TestAReleaseFollowsTheClassOfAnErrorReply(t *testing.T) {
	suite.AReleaseFollowsTheClassOfAnErrorReply(t, onRueidis)
}

func TestHoldsAndWaitersOutlastAFullMemory(t *testing.T) {
	suite.HoldsAndWaitersOutlastAFullMemory(t, onRueidis)
}

func TestEachKindFollowsTheClassOfAnErrorReply(t *testing.T) {
	suite.EachKindFollowsTheClassOfAnErrorReply(t, onRueidis)
}

func TestANumberFollowsTheClassOfAnErrorReply(t *testing.T) {
	suite.ANumberFollowsTheClassOfAnErrorReply(t, onRueidis)
}

func TestARedlockFollowsTheClassOfAnErrorReply(t *testing.T) {
	suite.ARedlockFollowsTheClassOfAnErrorReply(t, onRueidis)
}
