package consullock_test

import (
	"testing"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/consullock"
)

func TestALockKeyIsTheSameInEveryProcess(t *testing.T) {
	for _, x := range []struct {
		config api.Config
		want   string
	}{
		{api.Config{Address: "127.0.0.1:1"}, "127.0.0.1:1"},
		{api.Config{Address: "https://user:geheim@agent:8501"}, "agent:8501"},
		{
			api.Config{Address: "agent:1", Datacenter: "dc1", Namespace: "shop", Partition: "west", Token: "geheim"},
			"agent:1 dc1 shop west",
		},
	} {
		client, err := api.NewClient(&x.config)
		require.NoError(t, err)
		for range 2 { // each client has an id of its own
			c, err := consullock.New(client, consullock.WithPrefix("a/"))
			require.NoError(t, err)
			require.Equal(t, "a/it\x00consul "+x.want, c.Mutex("it").LockKey())
			require.NoError(t, c.Close(t.Context()))
		}
	}
}
