package all_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/open"
	"github.com/jucgo/locks/internal/test/testbed"
)

func startKubernetes(tb testing.TB) string {
	return "kubernetes:shop?kubeconfig=" + testbed.StartKubernetes(tb).Path() + "&context=test"
}

func TestLeaseObjectsAreOpenedByNamespace(t *testing.T) {
	t.Parallel()
	k := testbed.StartKubernetes(t)
	at := "kubernetes:shop?kubeconfig=" + k.Path() + "&context=test"
	a, b := opened(t, at+"&label=first"), opened(t, at+"&ttl=20s")
	ctx, other := someone(), someone()
	first, second := a.Locker("orders").(locks.Leased), b.Locker("orders")
	require.NoError(t, first.LockContext(ctx))
	ok, err := second.TryLockContext(other)
	require.NoError(t, err)
	require.False(t, ok)
	info, err := second.(locks.Inspector).Inspect(ctx)
	require.NoError(t, err)
	require.Equal(t, "first", info.Holders[0].Label)
	hold, err := first.Hold(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1, hold.Token())
	names, err := b.Names(ctx, "ord*")
	require.NoError(t, err)
	require.Equal(t, []string{"orders"}, names)
	forced, err := b.ForceUnlock(ctx, "orders")
	require.NoError(t, err)
	require.True(t, forced)
	require.NoError(t, second.LockContext(other))
	require.ErrorIs(t, first.UnlockContext(ctx), locks.ErrLost)
	require.NoError(t, second.UnlockContext(other))
	require.ErrorContains(t, a.Locker("or/ders").LockContext(ctx), "no Lease object has such a name")

	k.Kill()
	_, err = open.URL(t.Context(), at)
	require.ErrorIs(t, err, open.ErrUnreachable)
}

func TestNoAPIServerIsNoStore(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(config, []byte("apiVersion: v1\nkind: Config\n"), 0o600))
	for url, why := range map[string]string{
		"kubernetes:":                                         "the form is kubernetes:NAMESPACE",
		"kubernetes://host/shop":                              "names a host",
		"kubernetes:Shop?kubeconfig=" + config:                "is no namespace",
		"kubernetes:shop?kubeconfig=" + config:                "no API server is configured",
		"kubernetes:shop?kubeconfig=/no/such/file":            "no API server is configured",
		"kubernetes:shop?context=none&kubeconfig=" + config:   "no API server is configured",
		"kubernetes:shop?ttl=fast&kubeconfig=" + config:       "ttl",
		"kubernetes:shop?kind=fenced&kubeconfig=" + config:    "one of mutex",
		"kubernetes:shop?kubeconfig=" + config + "&port=6443": "Known are context, kind, kubeconfig, label, ttl",
	} {
		_, err := open.URL(t.Context(), url)
		require.ErrorIs(t, err, open.ErrURL, url)
		require.True(t, strings.Contains(err.Error(), why), "%s: %v", url, err)
	}
}
