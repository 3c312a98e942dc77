package redislock_test

import (
	"testing"

	"github.com/stretchr/testify/require"

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
