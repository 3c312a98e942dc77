package redislock_test

import (
	"testing"

	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

// Eight of them are those of go-redis, for two requests, one is the name of the acquisition, and
// one the hold. A large token is another.
func TestUncontendedPairsAllocateLittle(t *testing.T) {
	suite.UncontendedPairsAllocateLittle(t, onGoRedis, map[string]float64{"plain": 10, "simple": 10, "fenced": 11})
}
