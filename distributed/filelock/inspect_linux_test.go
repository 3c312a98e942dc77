package filelock_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/filelock"
)

func inspect(t *testing.T, l locks.TryLocker) locks.Info {
	t.Helper()
	i, err := l.(locks.Inspector).Inspect(context.Background())
	require.NoError(t, err)
	return i
}

func TestInspectTellsTheProcessThatHoldsTheFile(t *testing.T) {
	path := somewhere(t)
	f := open(t, path)
	require.False(t, inspect(t, f.ReadLocker()).Held)
	for _, kind := range []string{"write", "read"} {
		c := serving(t, kind, path)
		require.Equal(t, "<nil>", ask(c, "lock"))
		for range 2 {
			i := inspect(t, f.WriteLocker())
			require.True(t, i.Held, kind)
			require.Equal(t, kind == "read", i.Shared, kind)
			require.Equal(t, -1, i.Waiting)
			require.Len(t, i.Holders, 1, kind)
			require.Equal(t, c.Pid(), i.Holders[0].PID)
			require.NotEmpty(t, i.Holders[0].Label, "the name of the program")
		}
		require.Equal(t, "<nil>", ask(c, "unlock"))
		require.False(t, inspect(t, f.WriteLocker()).Held, kind)
	}
}

func TestInspectKnowsOwnHoldsAndWaiters(t *testing.T) {
	c := provide(t, t.TempDir(), filelock.WithTokens())
	require.False(t, inspect(t, c.Mutex("it")).Held)
	require.NoFileExists(t, c.Path("it"), "an inspection makes no file")
	l := c.RWMutex("it")
	a, b := locks.NewOwner(), locks.NewOwner()
	ctx := locks.WithOwner(context.Background(), a)
	require.NoError(t, l.WriteLocker().LockContext(ctx))
	h, err := l.WriteLocker().(locks.Leased).Hold(ctx)
	require.NoError(t, err)
	got := make(chan error, 1)
	other := locks.WithOwner(context.Background(), b)
	go func() { got <- l.ReadLocker().LockContext(other) }()
	require.Eventually(t, func() bool { return queued(l.ReadLocker()) == 1 }, 30*time.Second, time.Millisecond)
	i := inspect(t, l.ReadLocker())
	require.True(t, i.Held)
	require.False(t, i.Shared)
	require.Equal(t, a, i.Holders[0].Owner)
	require.Equal(t, h.Token(), i.Holders[0].Token)
	require.Equal(t, os.Getpid(), i.Holders[0].PID)
	require.Equal(t, b, i.Waiters[0].Owner)
	require.NoError(t, l.WriteLocker().UnlockContext(ctx))
	require.NoError(t, <-got)
	require.True(t, inspect(t, l.WriteLocker()).Shared)
	require.NoError(t, l.ReadLocker().UnlockContext(other))
	require.False(t, inspect(t, l.WriteLocker()).Held)
}

func TestInspectFailsWithTheClientsError(t *testing.T) {
	c := provide(t, filepath.Join(t.TempDir(), "dir"))
	l := c.Mutex("it")
	require.NoError(t, c.Close(context.Background()))
	_, err := l.Inspect(context.Background())
	require.ErrorIs(t, err, locks.ErrClosed)
	require.ErrorContains(t, err, `filelock: inspect "it"`)
}
