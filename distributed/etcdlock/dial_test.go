package etcdlock_test

import (
	"context"
	"crypto/tls"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
)

// guard makes a server ask for the password of the user app, and returns a client of the user.
func guard(t *testing.T, s *server) *clientv3.Client {
	t.Helper()
	admin := connect(t, s.addr)
	for _, user := range []string{"root", "app"} {
		_, err := admin.UserAdd(background, user, "secret")
		require.NoError(t, err)
		_, err = admin.UserGrantRole(background, user, "root")
		require.NoError(t, err)
	}
	_, err := admin.AuthEnable(background)
	require.NoError(t, err)
	c, err := dialAs(s.addr, "app", "secret")
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// A server of version 3.4 refuses the old token in the request for another token.
func TestAHoldOutlivesATokenThatTheServerForgot(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"", "3.5", "3.6"} {
		t.Run("etcd "+version, func(t *testing.T) {
			t.Parallel()
			s := startCluster(t, version, 1)[0]
			client := guard(t, s)
			c := open(t, client, term(20*short))
			a := adaptertest.Owner()
			h := adaptertest.Hold(t, c.Mutex("it"), a)
			_, err := client.UserChangePassword(background, "app", "secret") // the server drops its tokens
			require.NoError(t, err)
			before, _ := h.Deadline()
			require.NoError(t, c.Mutex("other").LockContext(a))
			require.NoError(t, c.Mutex("other").UnlockContext(a))
			require.Eventually(t, func() bool { now, _ := h.Deadline(); return now.After(before) }, long, time.Millisecond)
			require.NoError(t, h.Err())
			require.NoError(t, c.Mutex("it").UnlockContext(a))
		})
	}
}

func TestARefusedHandshakeEndsAFirstRequest(t *testing.T) {
	t.Parallel()
	s := lendServer(t)
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{s.addr}, Logger: zap.NewNop(), TLS: &tls.Config{MinVersion: tls.VersionTLS13},
	})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	err = open(t, client).Mutex("it").LockContext(adaptertest.Owner())
	require.ErrorIs(t, err, lease.ErrLogin)
	require.ErrorContains(t, err, "handshake")
	require.NotErrorIs(t, err, context.DeadlineExceeded)
}
