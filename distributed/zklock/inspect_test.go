package zklock_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adaptertest"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/zklock"
	"github.com/jucgo/locks/distributed/zklock/ephemeral"
)

func inspect(t *testing.T, l locks.TryLocker) locks.Info {
	t.Helper()
	i, err := l.(locks.Inspector).Inspect(background)
	require.NoError(t, err)
	return i
}

var inspected = map[string]func(c *zklock.Client) *lease.Mutex{
	"Mutex":          func(c *zklock.Client) *lease.Mutex { return c.Mutex("it") },
	"SemaphoreMutex": func(c *zklock.Client) *lease.Mutex { return c.SemaphoreMutex("it") },
	"ephemeral":      func(c *zklock.Client) *lease.Mutex { return ephemeral.New(c, "it") },
	"write half":     func(c *zklock.Client) *lease.Mutex { return c.RWMutex("it").WriteMutex() },
	"read half":      func(c *zklock.Client) *lease.Mutex { return c.RWMutex("it").ReadMutex() },
}

// introduced waits until the clients of a server, n of them, have told who they are.
func introduced(t *testing.T, direct admin, dir string, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		nodes, _, err := direct.Children(dir + "/locks_clients")
		return err == nil && len(nodes) == n
	}, 30*time.Second, time.Millisecond)
}

func TestInspectDescribesHolderAndWaiter(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	for kind, lock := range inspected {
		t.Run(kind, func(t *testing.T) {
			dir := "/" + strings.ReplaceAll(kind, " ", "-")
			apart := zklock.WithNamespace(dir)
			l := lock(open(t, s.Addr(), apart, zklock.WithLabel("orders")))
			require.False(t, inspect(t, l).Held)
			o := locks.NewOwner()
			own := as(o)
			h := adaptertest.Hold(t, l, own)

			billing := open(t, s.Addr(), apart, zklock.WithLabel("billing"))
			waiter := lock(billing)
			if kind == "read half" {
				waiter = billing.RWMutex("it").WriteMutex()
			}
			b := adaptertest.Owner()
			got := make(chan error, 1)
			go func() { got <- waiter.LockContext(b) }()
			require.Eventually(t, func() bool {
				i := inspect(t, l)
				return i.Waiting == 1 || kind == "ephemeral" && len(inspect(t, waiter).Waiters) == 1
			}, 30*time.Second, time.Millisecond)
			introduced(t, direct, dir, 2)
			for _, viewer := range []*lease.Mutex{l, waiter} {
				i := inspect(t, viewer)
				require.True(t, i.Held)
				require.Equal(t, kind == "read half", i.Shared)
				require.Len(t, i.Holders, 1)
				p := i.Holders[0]
				require.Equal(t, "orders", p.Label)
				require.Equal(t, os.Getpid(), p.PID)
				require.Equal(t, h.Token(), p.Token)
				require.WithinDuration(t, time.Now(), p.Since, time.Minute)
				if kind == "ephemeral" {
					require.Equal(t, -1, i.Waiting)
					continue
				}
				require.Equal(t, 1, i.Waiting)
				require.Len(t, i.Waiters, 1)
				require.Equal(t, "billing", i.Waiters[0].Label)
			}
			own1 := inspect(t, l).Holders[0]
			require.Equal(t, o, own1.Owner)
			require.Positive(t, own1.Left)
			require.NotZero(t, inspect(t, waiter).Waiters[0].Owner)
			require.NoError(t, l.UnlockContext(own))
			require.NoError(t, <-got)
			require.Equal(t, "billing", inspect(t, l).Holders[0].Label)
			require.NoError(t, waiter.UnlockContext(b))
			require.False(t, inspect(t, l).Held)
		})
	}
}

func TestInspectNamesHoldersOfCurator(t *testing.T) {
	t.Parallel()
	s := zklock.LendServer(t)
	direct := connect(t, s.Addr())
	l := open(t, s.Addr()).Mutex("it")
	for _, path := range []string{"/it", "/data"} {
		direct.directory(path)
	}
	const node = "_c_6ba7b810-9dad-41d1-80b4-00c04fd430c8-lock-"
	flags := int32(zk.FlagEphemeral | zk.FlagSequence)
	path, err := direct.Create("/it/"+node, []byte("10.1.2.3"), flags, zk.WorldACL(zk.PermAll))
	require.NoError(t, err)
	i := inspect(t, l)
	require.Len(t, i.Holders, 1)
	require.Equal(t, path[len("/it/"):], i.Holders[0].Label)
	require.Equal(t, "10.1.2.3", i.Holders[0].Host)

	c := open(t, s.Addr())
	_, err = c.RWMutex("it").ReadMutex().Inspect(background)
	require.ErrorIs(t, err, locks.ErrForeign)
	_, err = ephemeral.New(c, "data").Inspect(background)
	require.ErrorIs(t, err, locks.ErrForeign)
	_, err = c.Mutex("").Inspect(background)
	require.ErrorContains(t, err, "zklock: inspect")
}
