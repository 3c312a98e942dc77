package redislock_test

import (
	"testing"

	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

func TestTheHistoryModelRefusesWhatNoLockDoes(t *testing.T) {
	suite.TheModelOfHistoriesRefusesWhatNoLockDoes(t)
}
