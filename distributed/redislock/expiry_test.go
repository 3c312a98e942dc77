package redislock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
)

// In its last millisecond a key exists, and its time to live is zero. Zero must not count as
// unknown: the waiter would never ask again.
func TestWaitersAskAgainAfterADeadHoldersLease(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	direct := connect(t, s.Addr)
	c := open(t, connect(t, s.Addr), redislock.WithLeaseOptions(lease.WithPoll(time.Hour)))
	rw := c.RWMutex("rw")
	for name, l := range map[string]locks.TryLocker{
		"plain": c.Mutex("plain"), "fenced": c.FencedMutex("fenced"), "fair": c.FairMutex("fair"),
		"rw": rw.ReadLocker(),
	} {
		for range 25 {
			a := someone()
			direct.HSet(background, name, "mode", "write", "dead:1:write", 1)
			if name != "rw" {
				direct.HDel(background, name, "mode")
			}
			direct.PExpire(background, name, 10*time.Millisecond)
			got := make(chan error, 1)
			go func() { got <- l.LockContext(a) }()
			select {
			case err := <-got:
				require.NoError(t, err)
			case <-time.After(hang):
				t.Fatalf("%s: it does not ask", name)
			}
			require.NoError(t, l.UnlockContext(a))
		}
	}
}
