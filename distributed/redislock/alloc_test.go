package redislock_test

import (
	"testing"

	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

// go-redis allocates eight times for the two requests. The name of the acquisition, the hold, and a
// large token are one allocation each.
func TestUncontendedPairsAllocateLittle(t *testing.T) {
	suite.UncontendedPairsAllocateLittle(t, onGoRedis, map[string]float64{"plain": 10, "simple": 10, "fenced": 11})
}
