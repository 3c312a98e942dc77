package suite

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
)

// Inspected returns what is known of l.
func Inspected(tb testing.TB, l locks.TryLocker) locks.Info {
	tb.Helper()
	i, err := l.(locks.Inspector).Inspect(Background)
	require.NoError(tb, err)
	return i
}

// Introduced waits until the clients of a server, n of them, have told who they are.
func Introduced(tb testing.TB, direct *redis.Client, n int) {
	tb.Helper()
	require.Eventually(tb, func() bool {
		return len(direct.Keys(Background, "locks_client:*").Val()) == n
	}, Hang, time.Millisecond)
}

func InspectDescribesTheHolderToOtherProcesses(t *testing.T, on Driver) {
	t.Parallel()
	Servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		for kind, lock := range AllKinds {
			t.Run(kind, func(t *testing.T) {
				flush(t, direct)
				l := lock(on.Open(t, addr, redislock.WithLabel("orders 'é' {}"), Term(lease.DefaultLease)), "it")
				other := lock(on.Open(t, addr), "it")
				require.False(t, Inspected(t, other).Held)
				began := time.Now()
				o := locks.NewOwner()
				own := locks.WithOwner(Background, o)
				Hold(t, l.(*lease.Mutex), own)
				Introduced(t, direct, 1)
				h, err := l.(locks.Leased).Hold(own)
				require.NoError(t, err)
				host, err := os.Hostname()
				require.NoError(t, err)
				for viewer, l := range map[string]locks.TryLocker{"the same client": l, "another one": other} {
					i := Inspected(t, l)
					require.True(t, i.Held, viewer)
					require.Equal(t, kind == "read", i.Shared, viewer)
					require.Len(t, i.Holders, 1, viewer)
					p := i.Holders[0]
					require.Equal(t, "orders 'é' {}", p.Label, viewer)
					require.Equal(t, host, p.Host, viewer)
					require.Equal(t, os.Getpid(), p.PID, viewer)
					require.Equal(t, h.Token(), p.Token, viewer)
					require.WithinDuration(t, began, p.Since, time.Minute, viewer)
					require.InDelta(t, lease.DefaultLease, p.Left, float64(20*time.Second), viewer)
					require.Empty(t, i.Waiters, viewer)
					if viewer == "another one" {
						require.Zero(t, p.Owner)
					} else {
						require.Equal(t, o, p.Owner)
					}
				}
				require.NoError(t, l.UnlockContext(own))
				require.False(t, Inspected(t, other).Held)
			})
		}
	})
}

func InspectListsWaitersInOrder(t *testing.T, on Driver) {
	t.Parallel()
	Servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		for kind, list := range map[string]string{
			"plain": "locks_waiting:{it}", "fenced": "locks_waiting:{it}", "fair": "redisson_lock_queue:{it}",
		} {
			t.Run(kind, func(t *testing.T) {
				flush(t, direct)
				lock := AnyKind[kind]
				holder := lock(on.Open(t, addr), "it")
				a := Someone()
				Hold(t, holder.(*lease.Mutex), a)
				ctx, stop := context.WithCancel(Background)
				defer stop()
				done := make(chan error)
				for i, label := range []string{"first", "second"} {
					l := lock(on.Open(t, addr, redislock.WithLabel(label)), "it")
					go func() { done <- l.LockContext(ctx) }()
					require.Eventually(t, func() bool {
						return direct.LLen(Background, list).Val() == int64(i+1)
					}, Hang, time.Millisecond)
				}
				Introduced(t, direct, 3)
				i := Inspected(t, holder)
				require.Equal(t, 2, i.Waiting)
				require.Len(t, i.Waiters, 2)
				require.Equal(t, "first", i.Waiters[0].Label)
				require.Equal(t, "second", i.Waiters[1].Label)
				require.False(t, i.Waiters[1].Since.Before(i.Waiters[0].Since))
				stop()
				require.ErrorIs(t, <-done, context.Canceled)
				require.ErrorIs(t, <-done, context.Canceled)
				require.Eventually(t, func() bool { return Inspected(t, holder).Waiting == 0 }, Hang, time.Millisecond)
				require.NoError(t, holder.UnlockContext(a))
			})
		}
	})
}

func EitherHalfDescribesAReadWriteLock(t *testing.T, on Driver) {
	t.Parallel()
	Servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		l := on.Open(t, addr).RWMutex("it")
		o := locks.NewOwner()
		own := locks.WithOwner(Background, o)
		both := func(shared bool) {
			t.Helper()
			for _, half := range []locks.TryLocker{l.ReadLocker(), l.WriteLocker()} {
				i := Inspected(t, half)
				require.True(t, i.Held)
				require.Equal(t, shared, i.Shared)
				require.Len(t, i.Holders, 1)
				require.Equal(t, o, i.Holders[0].Owner)
			}
		}
		Hold(t, l.WriteMutex(), own)
		both(false)
		Hold(t, l.ReadMutex(), own)
		both(false)
		require.NoError(t, l.WriteLocker().UnlockContext(own))
		both(true)
		require.NoError(t, l.ReadLocker().UnlockContext(own))
		require.False(t, Inspected(t, l.ReadLocker()).Held)
		direct.HSet(Background, "it", "mode", "read", "java:7", 1)
		require.Equal(t, "java:7", Inspected(t, l.WriteLocker()).Holders[0].Label)
	})
}

func InspectNamesHoldersOfOtherLibraries(t *testing.T, on Driver) {
	t.Parallel()
	Servers(t, func(t *testing.T, direct *redis.Client, addr string) {
		c := on.Open(t, addr)
		const java = "6ba7b810-9dad-41d1-80b4-00c04fd430c8:31"
		direct.HSet(Background, "it", java, 2)
		direct.PExpire(Background, "it", time.Minute)
		for _, l := range []locks.TryLocker{c.Mutex("it"), c.FencedMutex("it"), c.FairMutex("it")} {
			i := Inspected(t, l)
			require.True(t, i.Held)
			require.Equal(t, java, i.Holders[0].Label)
			require.InDelta(t, time.Minute, i.Holders[0].Left, float64(30*time.Second))
		}
		rw := c.RWMutex("it")
		for _, l := range []locks.TryLocker{c.SimpleMutex("it"), rw.ReadLocker(), rw.WriteLocker()} {
			_, err := l.(locks.Inspector).Inspect(Background)
			require.ErrorIs(t, err, locks.ErrForeign)
		}
		direct.Set(Background, "text", "somebody", time.Minute)
		require.Equal(t, "somebody", Inspected(t, c.SimpleMutex("text")).Holders[0].Label)
		_, err := c.Mutex("text").Inspect(Background)
		require.ErrorIs(t, err, locks.ErrForeign)
		_, err = c.Mutex("").Inspect(Background)
		require.ErrorContains(t, err, `redislock: inspect ""`)
	})
}

func InspectWorksOnACluster(t *testing.T, on Driver) {
	t.Parallel()
	s, _ := StartCluster(t)
	direct := Connect(t, s.Addr)
	c := on.across(t, []*Server{s}, redislock.WithLabel("a"))
	d := on.across(t, []*Server{s}, redislock.WithLabel("b"))
	a := Someone()
	Hold(t, c.FencedMutex("it"), a)
	ctx, stop := context.WithCancel(Background)
	done := make(chan error)
	go func() { done <- d.FencedMutex("it").LockContext(ctx) }()
	waits := func() bool { return len(Inspected(t, c.FencedMutex("it")).Waiters) == 1 }
	require.Eventually(t, waits, Hang, time.Millisecond)
	Introduced(t, direct, 2)
	i := Inspected(t, c.FencedMutex("it"))
	require.Equal(t, "a", i.Holders[0].Label)
	require.Equal(t, "b", i.Waiters[0].Label, "its identity is in another slot")
	stop()
	require.ErrorIs(t, <-done, context.Canceled)
	require.NoError(t, c.FencedMutex("it").UnlockContext(a))
}
