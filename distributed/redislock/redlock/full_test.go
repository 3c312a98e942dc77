package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

func TestAHoldAndWaitersOutlastServersWithFullMemory(t *testing.T) {
	t.Parallel()
	servers := masters{startServer(t), startServer(t), startServer(t)}
	limit := func(bytes string) {
		for _, s := range servers {
			require.NoError(t, patient(t, s.Addr).ConfigSet(background, "maxmemory", bytes).Err())
		}
	}
	l := openMajority(t, servers.addrs(), term(suite.Long)).Mutex("held")
	waiting := openMajority(t, servers.addrs(), redislock.WithLeaseOptions(lease.WithPoll(50*time.Millisecond)))
	a, got := someone(), make(map[string]chan error)
	begin := func(name string) {
		done := make(chan error, 1)
		got[name] = done
		go func() { done <- waiting.Mutex(name).LockContext(someone()) }()
	}
	h := hold(t, l, a)
	before, _ := h.Deadline()
	begin("held")
	limit("1")
	begin("free")
	require.Eventually(t, func() bool {
		now, _ := h.Deadline()
		return now.After(before)
	}, hang, time.Millisecond, "the hold is renewed")
	require.NoError(t, h.Err())
	require.NoError(t, l.UnlockContext(a))
	require.Empty(t, has(t, servers.addrs(), "held"))
	asked := func() int { return commands(t, patient(t, servers[0].Addr), "evalsha") }
	refused := asked()
	require.Eventually(t, func() bool { return asked() >= refused+10 }, hang, time.Millisecond, "the waiters ask again")
	limit("0")
	for name, done := range got {
		require.NoError(t, <-done, name)
	}
}
