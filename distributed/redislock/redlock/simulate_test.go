package redlock_test

import (
	"testing"

	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

func TestLivesOfRedlocks(t *testing.T) { suite.RedlockLives(t) }

func TestLivesOfServersThatBreakPromises(t *testing.T) { suite.RedlockLivesWithResets(t) }
