package all_test

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/open"
	"github.com/jucgo/locks/internal/test/testbed"
)

// behindHAProxy returns the URL of the server at direct behind a proxy that cuts connections on
// which nothing was sent for idle.
func behindHAProxy(t *testing.T, direct string, idle time.Duration) string {
	t.Helper()
	place, err := url.Parse(direct)
	require.NoError(t, err)
	if config := place.Query().Get("kubeconfig"); config != "" {
		text, err := os.ReadFile(config)
		require.NoError(t, err)
		host := regexp.MustCompile(`https://([^"]+)`).FindStringSubmatch(string(text))[1]
		proxied := filepath.Join(t.TempDir(), "config")
		text = []byte(strings.ReplaceAll(string(text), host, cutsIdle(t, host, idle)))
		require.NoError(t, os.WriteFile(proxied, text, 0o600))
		return serving(t, strings.Replace(direct, config, proxied, 1))
	}
	return serving(t, strings.Replace(direct, place.Host, cutsIdle(t, place.Host, idle), 1))
}

// cutsIdle returns the address of the proxy of a server.
func cutsIdle(t *testing.T, server string, idle time.Duration) string {
	t.Helper()
	at := addr(testbed.Port(t))
	config := filepath.Join(t.TempDir(), "haproxy.cfg")
	require.NoError(t, os.WriteFile(config, []byte(strings.Join([]string{
		"defaults", "mode tcp", "timeout connect 10s",
		fmt.Sprintf("timeout client %dms", idle.Milliseconds()), fmt.Sprintf("timeout server %dms", idle.Milliseconds()),
		"listen it", "bind " + at, "server it " + server, "",
	}, "\n")), 0o600))
	testbed.Start(t, exec.Command(testbed.Lookup(t, "haproxy", "/usr/sbin"), "-db", "-q", "-f", config))
	return at
}

// The proxy cuts each connection between two renewals. Advisory locks are not here: they end with
// their connection.
func TestHoldsAndWaitsOutlastAProxyThatCutsIdleConnections(t *testing.T) {
	const idle = 700 * time.Millisecond
	for _, c := range []struct {
		kinds string
		start func(tb testing.TB) string
		ttl   time.Duration
	}{
		{"plain fenced fair", startRedis, 6 * time.Second},
		{"table queue", startPostgres, 6 * time.Second},
		{"table queue", startMySQL, 6 * time.Second},
		{"mutex", startEtcd, 6 * time.Second},
		{"mutex", startZooKeeper, 6 * time.Second},
		{"mutex", startNATS, 6 * time.Second},
		{"mutex", startConsul, 10 * time.Second}, // the shortest TTL of a session
		{"mutex", startKubernetes, 6 * time.Second},
	} {
		for kind := range strings.FieldsSeq(c.kinds) {
			direct := c.start(t) + "&kind=" + kind
			scheme, _, _ := strings.Cut(direct, ":")
			t.Run(scheme+" "+kind, func(t *testing.T) {
				t.Parallel()
				proxied, option := behindHAProxy(t, direct, idle), open.WithTTL(c.ttl)
				l := opened(t, proxied, option).Locker("it").(locks.Leased)
				waiter := opened(t, proxied, option).Locker("it")
				other := opened(t, direct, option).Locker("it")
				a, b, o := someone(), someone(), someone()
				require.NoError(t, l.LockContext(a))
				hold, err := l.Hold(a)
				require.NoError(t, err)
				waited := make(chan error, 1)
				go func() { waited <- waiter.LockContext(b) }()
				for end := time.Now().Add(5 * c.ttl / 2); time.Now().Before(end); time.Sleep(time.Second) {
					require.NoError(t, hold.Err())
					ok, err := other.TryLockContext(o)
					require.NoError(t, err)
					require.False(t, ok)
				}
				select {
				case err := <-waited:
					t.Fatalf("the wait ended: %v", err)
				default:
				}
				assert.NoError(t, l.UnlockContext(a))
				require.NoError(t, <-waited)
				require.NoError(t, waiter.UnlockContext(b))
			})
		}
	}
}

func TestAnAdvisoryHoldIsLostWhenAProxyCutsItsConnection(t *testing.T) {
	direct := startPostgres(t) + "&kind=advisory"
	proxied := behindHAProxy(t, direct, 700*time.Millisecond)
	l := opened(t, proxied, open.WithTTL(6*time.Second)).Locker("it").(locks.Leased)
	other := opened(t, direct).Locker("it")
	a, b := someone(), someone()
	require.NoError(t, l.LockContext(a))
	hold, err := l.Hold(a)
	require.NoError(t, err)
	<-hold.Lost()
	require.NoError(t, other.LockContext(b))
	require.NoError(t, other.UnlockContext(b))
	require.ErrorIs(t, l.UnlockContext(a), locks.ErrLost)
}
