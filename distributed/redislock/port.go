package redislock

import (
	"time"

	"github.com/jucgo/locks/distributed/redislock/internal/driver"
)

// What this package needs of a client of Redis, under the names that it has here.
type (
	port       = driver.Port
	script     = driver.Script
	subscriber = driver.Subscriber
	event      = driver.Event
)

const head = driver.Head

func millis(d time.Duration) int64 { return driver.Millis(d) }
