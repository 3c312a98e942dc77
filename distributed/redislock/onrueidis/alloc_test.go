package onrueidis_test

import (
	"testing"

	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

// One is the name of the acquisition, one the hold, one the context of its request, and one the
// lease as text. A large token is another.
func TestUncontendedPairsAllocateLittle(t *testing.T) {
	suite.UncontendedPairsAllocateLittle(t, onRueidis, map[string]float64{"plain": 4, "simple": 4, "fenced": 5})
}
