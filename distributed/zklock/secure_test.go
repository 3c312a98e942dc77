package zklock_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/zklock"
	"github.com/jucgo/locks/internal/test/testbed"
)

func TestLocksWorkOverTLSWithClientCertificates(t *testing.T) {
	t.Parallel()
	s, config := testbed.StartSecureZooKeeper(t)
	// The server takes the subject of the client's certificate for its identity.
	acl := zklock.WithACL([]zk.ACL{{Perms: zk.PermAll, Scheme: "x509", ID: "CN=client"}})
	dial := zklock.WithDialer((&tls.Dialer{Config: config}).DialContext)
	holder, waiter := open(t, s.Secure(), dial, acl).Mutex("it"), open(t, s.Secure(), dial, acl).Mutex("it")
	a, b := adaptertest.Owner(), adaptertest.Owner()
	first := adaptertest.Hold(t, holder, a)
	got := make(chan error, 1)
	go func() { got <- waiter.LockContext(b) }()
	// One of the lock and one of the identity, for each client.
	eventually(t, "four nodes", func() bool { return count(t, s, "zk_ephemerals_count") == 4 })
	require.NoError(t, holder.UnlockContext(a))
	require.NoError(t, <-got)
	second, err := waiter.Hold(b)
	require.NoError(t, err)
	require.Greater(t, second.Token(), first.Token())

	stranger := open(t, s.Addr()).Mutex("it") // without TLS, and so without an identity
	require.ErrorIs(t, stranger.LockContext(adaptertest.Owner()), zk.ErrNoAuth)
	require.NoError(t, waiter.UnlockContext(b))
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// failsToConnect returns the error of a client whose context ends with cause when an attempt to
// connect has failed in the wanted way. On a busy machine attempts may fail in other ways before.
func failsToConnect(addr string, cause error, dial dialer, wanted func(error) bool) error {
	ctx, end := context.WithCancelCause(background)
	defer end(nil)
	returned := make(chan struct{})
	defer close(returned)
	var failed atomic.Bool // noted by the next attempt
	_, err := zklock.New(ctx, []string{addr}, timeout(long), zklock.WithDialer(
		func(ctx context.Context, network, address string) (net.Conn, error) {
			if failed.Load() {
				end(cause)
				<-returned
				return nil, net.ErrClosed
			}
			conn, err := dial(ctx, network, address)
			failed.Store(wanted(err))
			return conn, err
		}))
	return err
}

func TestWithoutTheServersCertificateThereIsNoClient(t *testing.T) {
	t.Parallel()
	s, config := testbed.StartSecureZooKeeper(t)
	config.RootCAs = nil
	err := failsToConnect(s.Secure(), context.Canceled, (&tls.Dialer{Config: config}).DialContext,
		func(err error) bool { return err != nil && strings.Contains(err.Error(), "certificate") })
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "certificate", "it says why")
}

func TestAMissingTLSIsNamedByTheError(t *testing.T) {
	t.Parallel()
	s, config := testbed.StartSecureZooKeeper(t)
	for _, c := range []struct {
		addr, want string
		dial       dialer
	}{
		{s.Secure(), "may not serve yet, or want TLS", new(net.Dialer).DialContext},
		{s.Addr(), "may not want TLS", (&tls.Dialer{Config: config}).DialContext},
	} {
		require.Eventually(t, func() bool {
			conn, err := net.Dial("tcp", c.addr)
			if err == nil {
				conn.Close()
			}
			return err == nil
		}, testbed.Hang, 10*time.Millisecond, "the server listens")
		err := failsToConnect(c.addr, context.DeadlineExceeded, c.dial,
			func(err error) bool { return err == nil || errors.Is(err, io.EOF) })
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, c.want)
	}
}

func TestAServerThatEnforcesAuthenticationRefusesAtOnce(t *testing.T) {
	t.Parallel()
	for name, lines := range map[string][]string{
		"SASL": {"sessionRequireClientSASLAuth=true",
			"authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider"},
		"digest": {"enforce.auth.enabled=true", "enforce.auth.schemes=digest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := testbed.StartZooKeeper(t, lines...)
			_, err := zklock.New(background, []string{s.Addr()})
			require.ErrorIs(t, err, zk.ErrAuthFailed)
			require.ErrorContains(t, err, "SASL")
			if name == "digest" {
				open(t, s.Addr(), zklock.WithAuth("digest", []byte("user:secret")))
			}
		})
	}
}

func TestAnOwnDialerServesEachNewConnection(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	p := leasetest.NewProxy(t, s.Addr())
	var dialed atomic.Int32
	var asked sync.Map
	c := open(t, "zookeeper.example:2181", zklock.WithDialer(
		func(ctx context.Context, network, address string) (net.Conn, error) {
			dialed.Add(1)
			asked.Store(address, true)
			return new(net.Dialer).DialContext(ctx, network, p.Addr())
		}))
	a := adaptertest.Owner()
	h := adaptertest.Hold(t, c.Mutex("it"), a)
	before := dialed.Load()
	p.Reset()
	eventually(t, "another connection", func() bool { return dialed.Load() > before && c.State() == zklock.Held })
	require.NoError(t, h.Err())
	require.NoError(t, c.Mutex("it").UnlockContext(a))
	asked.Range(func(name, _ any) bool {
		require.Equal(t, "zookeeper.example:2181", name, "the name, not what it resolves to")
		return true
	})
}

func TestADialErrorHidesTheContextsError(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	refused := errors.New("refused by the dialer")
	var fail atomic.Bool
	var conn atomic.Value
	c := open(t, s.Addr(), timeout(4*time.Second), zklock.WithDialer(
		func(ctx context.Context, network, address string) (net.Conn, error) {
			if fail.Load() {
				return nil, errors.Join(refused, context.DeadlineExceeded)
			}
			c, err := new(net.Dialer).DialContext(ctx, network, address)
			if err == nil {
				conn.Store(c)
			}
			return c, err
		}))
	fail.Store(true)
	conn.Load().(net.Conn).Close()
	eventually(t, "the end of the connection", func() bool { return c.State() != zklock.Held })
	err := c.Mutex("it").LockContext(adaptertest.Owner()) // its context never ends
	require.ErrorContains(t, err, refused.Error())
	require.NotErrorIs(t, err, context.DeadlineExceeded)
}

func TestDigestCredentialsOpenNodesThatStrangersCannotUse(t *testing.T) {
	t.Parallel()
	s := testbed.StartZooKeeper(t)
	p := leasetest.NewProxy(t, s.Addr())
	var log bytes.Buffer
	var mu sync.Mutex
	debug := &slog.HandlerOptions{Level: slog.LevelDebug}
	logger := zklock.WithLogger(slog.New(slog.NewTextHandler(lockedWriter{&mu, &log}, debug)))
	acl := zklock.WithACL(zk.DigestACL(zk.PermAll, "user", "secret"))
	c := open(t, p.Addr(), acl, logger, zklock.WithAuth("digest", []byte("user:secret")))
	friend := open(t, s.Addr(), acl, zklock.WithAuth("digest", []byte("user:secret"))).Mutex("it")
	a := adaptertest.Owner()
	for name, kind := range kinds {
		l := kind.lock(c, "/"+name)
		require.NoError(t, l.LockContext(a))
		require.NoError(t, l.UnlockContext(a))
	}
	require.NoError(t, c.Mutex("it").LockContext(a))
	p.Reset() // the credentials are repeated on the next connection
	require.NoError(t, c.Mutex("it").UnlockContext(a))
	require.NoError(t, c.Mutex("it").LockContext(a))
	got := make(chan error, 1)
	b := adaptertest.Owner()
	go func() { got <- friend.LockContext(b) }()
	// One of the lock and one of the identity, for each client.
	eventually(t, "the friend's nodes", func() bool { return count(t, s, "zk_ephemerals_count") == 4 })

	stranger := open(t, s.Addr(), logger, zklock.WithAuth("digest", []byte("user:guess")))
	err := stranger.Mutex("it").LockContext(adaptertest.Owner())
	require.ErrorIs(t, err, zk.ErrNoAuth)
	require.NotContains(t, err.Error(), "guess")
	ok, err := stranger.Mutex("it").TryLockContext(adaptertest.Owner())
	require.False(t, ok)
	require.ErrorIs(t, err, zk.ErrNoAuth)
	require.ErrorIs(t, stranger.Revoke(background, "it"), zk.ErrNoAuth)
	require.NoError(t, c.Mutex("it").UnlockContext(a))
	require.NoError(t, <-got)
	require.NoError(t, friend.UnlockContext(b))

	_, err = zklock.New(background, []string{s.Addr()}, logger, zklock.WithAuth("nosuch", []byte("secret")))
	require.ErrorIs(t, err, zk.ErrAuthFailed)
	require.NotContains(t, err.Error(), "secret")
	mu.Lock()
	defer mu.Unlock()
	for _, secret := range []string{"secret", "guess"} {
		require.NotContains(t, log.String(), secret)
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	b  *bytes.Buffer
}

func (w lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.b.Write(p)
}
