package consullock_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
)

func hold(tb testing.TB, l locks.Leased, ctx context.Context) locks.Hold {
	tb.Helper()
	require.NoError(tb, l.LockContext(ctx))
	h, err := l.Hold(ctx)
	require.NoError(tb, err)
	return h
}

func try(tb testing.TB, l locks.TryLocker, ctx context.Context) bool {
	tb.Helper()
	ok, err := l.TryLockContext(ctx)
	require.NoError(tb, err)
	return ok
}

// start waits for l in a goroutine of its own.
func start(l locks.Locker, ctx context.Context) <-chan error {
	got := make(chan error, 1)
	go func() { got <- l.LockContext(ctx) }()
	return got
}

// result returns what came of [start], which must have come soon.
func result(tb testing.TB, got <-chan error) error {
	tb.Helper()
	select {
	case err := <-got:
		return err
	case <-time.After(long):
		tb.Fatal("it still waits")
		return nil
	}
}

// isLost waits for the loss of h.
func isLost(tb testing.TB, h locks.Hold) {
	tb.Helper()
	select {
	case <-h.Lost():
	case <-time.After(long):
		tb.Fatal("the loss is not told")
	}
	require.ErrorIs(tb, h.Err(), locks.ErrLost)
}

// pairOf returns the pair of a key that is there.
func pairOf(tb testing.TB, direct *api.Client, key string) *api.KVPair {
	tb.Helper()
	pair, _, err := direct.KV().Get(key, nil)
	require.NoError(tb, err)
	require.NotNil(tb, pair, key)
	return pair
}

func readme(tb testing.TB) string {
	tb.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(tb, err)
	return string(text)
}
