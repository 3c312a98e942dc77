package onrueidis_test

import (
	"testing"

	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

func TestLocksPassTheKitOnRedis(t *testing.T) { suite.LocksPassTheKitOnRedis(t, onRueidis) }

func TestLocksPassTheKitBehindASentinel(t *testing.T) {
	suite.LocksPassTheKitBehindASentinel(t, onRueidis, "fenced")
}

func TestLocksPassTheKitOnACluster(t *testing.T) {
	suite.LocksPassTheKitOnACluster(t, onRueidis, "fenced", "fair")
}

func TestLocksThatReplicasAcknowledgePassTheKit(t *testing.T) {
	suite.LocksThatReplicasAcknowledgePassTheKit(t, onRueidis, "fenced")
}

func TestRedlockPassesTheKit(t *testing.T) { suite.RedlockPassesTheKit(t, onRueidis) }

func TestSemaphoresPassTheKitOnRedis(t *testing.T) { suite.SemaphoresPassTheKitOnRedis(t, onRueidis) }

func TestSemaphoresThatReplicasAcknowledgePassTheKit(t *testing.T) {
	suite.SemaphoresThatReplicasAcknowledgePassTheKit(t, onRueidis)
}

func TestRedissonsSemaphoresPassTheKit(t *testing.T) {
	suite.RedissonsSemaphoresPassTheKit(t, onRueidis)
}
