package redlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

func TestRedlockIsDescribedByAMajority(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	a := openMajority(t, m.addrs(), redislock.WithLabel("a"))
	b := openMajority(t, m.addrs(), redislock.WithLabel("b"))
	connect(t, m[0].Addr).HSet(background, "it", "java:1", 1)
	require.False(t, suite.Inspected(t, b.Mutex("it")).Held, "one server is no majority")
	o := locks.NewOwner()
	own := locks.WithOwner(background, o)
	hold(t, a.Mutex("it"), own)
	for _, s := range m {
		suite.Introduced(t, connect(t, s.Addr), 1)
	}
	m[4].Kill()
	for _, l := range []*lease.Mutex{a.Mutex("it"), b.Mutex("it")} {
		i := suite.Inspected(t, l)
		require.True(t, i.Held)
		require.Len(t, i.Holders, 1)
		require.Equal(t, "a", i.Holders[0].Label)
		require.WithinDuration(t, time.Now(), i.Holders[0].Since, time.Minute)
		require.InDelta(t, lease.DefaultLease, i.Holders[0].Left, float64(20*time.Second))
		require.Equal(t, -1, i.Waiting)
	}
	require.Equal(t, o, suite.Inspected(t, a.Mutex("it")).Holders[0].Owner)
	require.NoError(t, a.Mutex("it").UnlockContext(own))
	m[1].Kill()
	m[2].Kill()
	_, err := b.Mutex("it").Inspect(background)
	require.ErrorContains(t, err, `redlock: inspect "it": server 1`)
}
