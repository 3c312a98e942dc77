package gcslock_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/gcslock"
)

func TestALockKeyIsTheSameInEveryProcess(t *testing.T) {
	for _, c := range []struct {
		opts []gcslock.Option
		want string
	}{
		{nil, "locks/it\x00gcs storage.googleapis.com shop"},
		{
			[]gcslock.Option{gcslock.WithEndpoint("http://user:geheim@store:4443"), gcslock.WithPrefix("a/")},
			"a/it\x00gcs store:4443 shop",
		},
	} {
		for range 2 { // each client has an id of its own
			client, err := gcslock.New(new(http.Client), "shop", c.opts...)
			require.NoError(t, err)
			require.Equal(t, c.want, client.Mutex("it").LockKey())
			require.NoError(t, client.Close(t.Context()))
		}
	}
}
