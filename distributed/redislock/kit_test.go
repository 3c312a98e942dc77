package redislock_test

import (
	"testing"

	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

func TestLocksPassTheKitOnRedis(t *testing.T) { suite.LocksPassTheKitOnRedis(t, onGoRedis) }

func TestLocksPassTheKitBehindASentinel(t *testing.T) {
	suite.LocksPassTheKitBehindASentinel(t, onGoRedis, "fenced", "fair")
}

func TestLocksPassTheKitOnACluster(t *testing.T) {
	suite.LocksPassTheKitOnACluster(t, onGoRedis, "fenced", "fair", "write")
}

func TestSemaphoresPassTheKitOnRedis(t *testing.T) { suite.SemaphoresPassTheKitOnRedis(t, onGoRedis) }

func TestSemaphoresPassTheKitOnACluster(t *testing.T) {
	suite.SemaphoresPassTheKitOnACluster(t, onGoRedis)
}

func TestRedissonsSemaphoresPassTheKit(t *testing.T) {
	suite.RedissonsSemaphoresPassTheKit(t, onGoRedis)
}
