package etcdlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"

	"github.com/jucgo/locks/distributed/etcdlock"
)

func TestALockKeyIsTheSameInEveryProcess(t *testing.T) {
	dial := func(endpoints ...string) *clientv3.Client {
		client, err := clientv3.New(clientv3.Config{Endpoints: endpoints})
		require.NoError(t, err)
		t.Cleanup(func() { client.Close() })
		return client
	}
	hidden := dial("127.0.0.1:1")
	hidden.KV = namespace.NewKV(hidden.KV, "z/")
	for _, c := range []struct {
		client *clientv3.Client
		prefix string
		want   string
	}{
		{dial("b:2379", "a:2379"), "", "it\x00etcd a:2379,b:2379"},
		{dial("a:2379", "b:2379"), "locks/", "locks/it\x00etcd a:2379,b:2379"},
		{hidden, "", "\x00it\x00etcd 127.0.0.1:1"}, // it has no order: nobody here knows the whole key
	} {
		p, err := etcdlock.New(c.client, etcdlock.WithPrefix(c.prefix))
		require.NoError(t, err)
		require.Equal(t, c.want, p.Mutex("it").LockKey())
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		_ = p.Close(ended) // no server
	}
}
