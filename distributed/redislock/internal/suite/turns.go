package suite

import (
	"testing"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/internal/testkit/testbed"
)

// ClientsTakeTurnsOnACluster has clients that know all servers take turns on a lock of each kind.
func ClientsTakeTurnsOnACluster(t *testing.T, on Driver) {
	nodes := StartNodes(t)
	takeTurns(t, func(tb testing.TB) *redislock.Client { return on.across(tb, nodes, Term(time.Minute)) })
}

// ClientsTakeTurnsBehindASentinel does the same on a master with a replica.
func ClientsTakeTurnsBehindASentinel(t *testing.T, on Driver) {
	master := StartMaster(t)
	StartReplica(t, master.Addr)
	sentinel := startSentinel(t, master, 1)
	takeTurns(t, func(tb testing.TB) *redislock.Client { return on.sentinel(tb, sentinel, Term(time.Minute)) })
}

// takeTurns gives a wait that hears of no release five seconds, of the poll interval.
func takeTurns(t *testing.T, open func(tb testing.TB) *redislock.Client) {
	for kind, lock := range AnyKind {
		t.Run(kind, func(t *testing.T) {
			testbed.Turns{
				Open:  func() locks.TryLocker { return lock(open(t), "turns") },
				Time:  time.Second,
				Limit: 20 * time.Second,
			}.Run(t)
		})
	}
}
