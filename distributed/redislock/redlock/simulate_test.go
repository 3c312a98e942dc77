package redlock_test

import (
	"testing"

	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

func TestLivesOfRedlocks(t *testing.T) { suite.RedlockLives(t) }

// resetSeeds are the seeds of lives that have found something.
var resetSeeds = []uint64{
	5325686068858680231, // the clock of a simulated server stood still after two jumps that cancel out
}

func TestLivesOfServersThatBreakPromises(t *testing.T) {
	suite.RedlockLivesWithResets(t, resetSeeds...)
}
