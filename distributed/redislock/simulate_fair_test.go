//go:build simulation

package redislock_test

import (
	"testing"

	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

// TestLivesOfFairLocks has a finding that is not explained yet: with this seed, a Renew returns
// more than a second after the end of its context.
func TestLivesOfFairLocks(t *testing.T) { suite.Lives(t, "fair", 322982682839122124) }
