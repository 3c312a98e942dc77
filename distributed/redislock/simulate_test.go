package redislock_test

import (
	"testing"

	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

// lifeSeeds are the seeds of lives that have found something.
var lifeSeeds = map[string][]uint64{
	"fenced": {2226169520768965069}, // a request that is repeated takes another token
	"fair":   {322982682839122124},  // a process stood still for longer than its plan said
	"write":  {793563173754662802},  // the write half was freed by force, and the readers counted as gone
}

func TestLivesOfLocks(t *testing.T) {
	for _, kind := range []string{"plain", "fenced", "fair", "simple", "write"} {
		t.Run(kind, func(t *testing.T) { suite.Lives(t, kind, lifeSeeds[kind]...) })
	}
}

func TestLivesOfSemaphores(t *testing.T) { suite.Lives(t, "permits", lifeSeeds["permits"]...) }

// resetSeeds are the seeds of lives that have found something.
var resetSeeds = map[string][]uint64{
	"fenced": {3537021290100323222}, // the clock was set back again and again, and a lost hold lasted as long
}

func TestLivesOfServersThatBreakPromises(t *testing.T) {
	for _, kind := range []string{"plain", "fenced", "fair", "simple"} {
		t.Run(kind, func(t *testing.T) { suite.LivesWithResets(t, kind, resetSeeds[kind]...) })
	}
}
