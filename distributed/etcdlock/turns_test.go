package etcdlock_test

import (
	"testing"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/testkit/testbed"
)

// Each client sends its requests to one member after the other. The members lag behind each other
// by turns, so that a client hears of a key from one member later than from another.
func TestClientsOfThreeMembersTakeTurnsWithoutAStall(t *testing.T) {
	for _, version := range []string{"", "3.5", "3.6"} {
		t.Run("etcd "+version, func(t *testing.T) {
			members := startCluster(t, version, 3)
			var addrs []string
			for _, m := range members {
				addrs = append(addrs, m.addr)
			}
			testbed.Turns{Open: func() locks.TryLocker {
				return open(t, connect(t, addrs...)).Mutex("it")
			}}.Run(t)
		})
	}
}
