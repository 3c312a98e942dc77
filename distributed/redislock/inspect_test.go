package redislock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/suite"
)

func TestInspectDescribesTheHolderToOtherProcesses(t *testing.T) {
	suite.InspectDescribesTheHolderToOtherProcesses(t, onGoRedis)
}

func TestInspectListsWaitersInOrder(t *testing.T) { suite.InspectListsWaitersInOrder(t, onGoRedis) }

func TestEitherHalfDescribesAReadWriteLock(t *testing.T) {
	suite.EitherHalfDescribesAReadWriteLock(t, onGoRedis)
}

func TestInspectNamesHoldersOfOtherLibraries(t *testing.T) {
	suite.InspectNamesHoldersOfOtherLibraries(t, onGoRedis)
}

func TestInspectWorksOnACluster(t *testing.T) { suite.InspectWorksOnACluster(t, onGoRedis) }

func TestRedlockIsDescribedByAMajority(t *testing.T) {
	t.Parallel()
	m := startMasters(t)
	a := openMajority(t, m.addrs(), redislock.WithLabel("a"), redislock.WithNodeTimeout(time.Second))
	b := openMajority(t, m.addrs(), redislock.WithLabel("b"), redislock.WithNodeTimeout(time.Second))
	connect(t, m[0].Addr).HSet(background, "it", "java:1", 1)
	require.False(t, suite.Inspected(t, b.Mutex("it")).Held, "one server is no majority")
	o := locks.NewOwner()
	own := locks.WithOwner(background, o)
	hold(t, a.Mutex("it"), own)
	for _, s := range m {
		suite.Introduced(t, connect(t, s.Addr), 1)
	}
	m[4].Kill()
	for _, l := range []*redislock.Mutex{a.Mutex("it"), b.Mutex("it")} {
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
	require.ErrorContains(t, err, `redislock: inspect "it": server 1`)
}

func TestABadLabelIsRefused(t *testing.T) {
	_, err := redislock.New(connect(t, startServer(t).Addr), redislock.WithLabel("two\nlines"))
	require.ErrorContains(t, err, "redislock: label")
}

// A client without permission for identities can use locks all the same.
func TestLocksNeedNoPermissionForIdentities(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	require.NoError(t, connect(t, s.Addr).Do(background,
		"acl", "setuser", "default", "resetkeys", "~it*", "~*{it}*", "allchannels", "+@all").Err())
	c := open(t, connect(t, s.Addr))
	ctx := someone()
	hold(t, c.Mutex("it"), ctx)
	i := suite.Inspected(t, c.Mutex("it"))
	require.Len(t, i.Holders, 1)
	require.NotEmpty(t, i.Holders[0].Host, "the client knows its own hold")
	other := suite.Inspected(t, open(t, connect(t, s.Addr)).Mutex("it"))
	require.Len(t, other.Holders, 1)
	require.Empty(t, other.Holders[0].Host)
	require.NotEmpty(t, other.Holders[0].Label, "the name in Redis is left")
	require.NoError(t, c.Mutex("it").UnlockContext(ctx))
}
