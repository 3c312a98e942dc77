package k8slock_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/jucgo/locks/distributed/k8slock"
)

func TestALockKeyIsTheSameInEveryProcess(t *testing.T) {
	for range 2 { // each client has an id of its own
		client, err := k8slock.New(dial(t, &rest.Config{Host: "https://cluster:6443"}), "shop")
		require.NoError(t, err)
		require.Equal(t, "it\x00kubernetes https://cluster:6443/apis/coordination.k8s.io/v1 shop",
			client.Mutex("it").LockKey())
		require.NoError(t, client.Close(t.Context()))
	}
}
