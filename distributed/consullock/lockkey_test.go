package consullock_test

import (
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/consullock"
)

func TestALockKeyIsTheSameInEveryProcess(t *testing.T) {
	client, err := api.NewClient(&api.Config{Address: "127.0.0.1:1"})
	require.NoError(t, err)
	for range 2 { // each client has an id of its own
		c, err := consullock.New(client, consullock.WithPrefix("a/"))
		require.NoError(t, err)
		require.Equal(t, "a/it\x00consul", c.Mutex("it").LockKey())
		require.NoError(t, c.Close(t.Context()))
	}
}
