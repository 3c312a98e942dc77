package open_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/open"
)

// The tests of package open/all open all stores. The tests here need no client of a store.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAStoreThatIsNotImportedNamesItsPackage(t *testing.T) {
	_, err := open.URL(t.Context(), "redis://user:secret@localhost")
	require.EqualError(t, err, "open: redis: invalid URL: this program does not import the store: "+
		`import _ "github.com/jucgo/locks/distributed/redislock/redisopen", `+
		`or "github.com/jucgo/locks/distributed/open/all" for all stores`)
	require.ErrorIs(t, err, open.ErrURL)
}

func TestMemoryHasLocksButNoLeases(t *testing.T) {
	for _, url := range []string{"mem:", "mem:?kind=plain", "mem:?kind=fair"} {
		store, err := open.URL(t.Context(), url)
		require.NoError(t, err, url)
		require.Equal(t, "mem:", store.String())
		first := locks.WithOwner(t.Context(), locks.NewOwner())
		second := locks.WithOwner(t.Context(), locks.NewOwner())
		require.NoError(t, store.Locker("orders").LockContext(first))
		ok, err := store.Locker("orders").TryLockContext(second)
		require.NoError(t, err)
		require.False(t, ok)
		require.NoError(t, store.Locker("orders").UnlockContext(first))
		_, leased := store.Locker("orders").(locks.Leased)
		require.False(t, leased)
		require.NoError(t, store.Close(nil)) //nolint:staticcheck // what is tested
	}
}

func TestMemoryRefusesWhatItCannotDo(t *testing.T) {
	store, err := open.URL(t.Context(), "mem:")
	require.NoError(t, err)
	_, err = store.Semaphore("orders", 3)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	_, err = store.Names(t.Context(), "")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	_, err = store.Names(nil, "") //nolint:staticcheck // what is tested
	require.ErrorIs(t, err, locks.ErrNilContext)
	_, err = store.ForceUnlock(t.Context(), "orders")
	require.ErrorIs(t, err, errors.ErrUnsupported)
}

func TestAContextThatHasEndedOpensNothing(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("no more")
	cancel(why)
	_, err := open.URL(ctx, "mem:")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, why)
	require.NotErrorIs(t, err, open.ErrURL)
	_, err = open.URL(nil, "mem:") //nolint:staticcheck // what is tested
	require.ErrorIs(t, err, locks.ErrNilContext)
}

// A program that wants the locks of one store must not carry the clients of others.
func TestTheRegistryHasNoClientOfAStore(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	for pkg := range strings.FieldsSeq(string(out)) {
		if host, _, _ := strings.Cut(pkg, "/"); strings.Contains(host, ".") &&
			!strings.HasPrefix(pkg, "github.com/jucgo/locks") {
			require.Equal(t, "github.com/petermattis/goid", pkg)
		}
	}
}
