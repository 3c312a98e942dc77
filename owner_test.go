package locks_test

import (
	"context"
	"math"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/reentrant"
)

func TestNewOwnersAreNegativeAndDistinct(t *testing.T) {
	const goroutines, each = 8, 100
	var (
		mu   sync.Mutex
		seen = map[locks.Owner]bool{}
		wg   sync.WaitGroup
	)
	for range goroutines {
		wg.Go(func() {
			for range each {
				o := locks.NewOwner()
				mu.Lock()
				seen[o] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Len(t, seen, goroutines*each)
	for o := range seen {
		require.Negative(t, int64(o))
	}
}

func TestTheCurrentOwnerIsTheContextsOrGoroutines(t *testing.T) {
	me := locks.CurrentOwner(context.Background())
	require.Positive(t, int64(me))
	var none context.Context
	require.Equal(t, me, locks.CurrentOwner(none))
	others := make(chan locks.Owner)
	go func() { others <- locks.CurrentOwner(context.Background()) }()
	require.NotEqual(t, me, <-others)

	o := locks.NewOwner()
	ctx := locks.WithOwner(context.Background(), o)
	require.Equal(t, o, locks.CurrentOwner(ctx))
	child, cancel := context.WithCancel(ctx)
	cancel()
	require.Equal(t, o, locks.CurrentOwner(child), "a child that has ended carries it too")
	go func() { others <- locks.CurrentOwner(ctx) }()
	require.Equal(t, o, <-others, "in another goroutine too")
}

func TestTheInnermostOwnerCountsAndZeroResetsIt(t *testing.T) {
	me := locks.CurrentOwner(context.Background())
	outer, inner := locks.NewOwner(), locks.NewOwner()
	ctx := locks.WithOwner(context.Background(), outer)
	require.Equal(t, inner, locks.CurrentOwner(locks.WithOwner(ctx, inner)))
	require.Equal(t, me, locks.CurrentOwner(locks.WithOwner(ctx, 0)))
}

func TestWithOwnerPanicsOnANilContext(t *testing.T) {
	var none context.Context
	require.Panics(t, func() { locks.WithOwner(none, 1) })
}

func TestWithOwnerPanicsOnNumbersOutOfRange(t *testing.T) {
	for _, o := range []locks.Owner{math.MinInt64, -1<<57 - 1, 1 << 57, 1<<58 + 7, math.MaxInt64} {
		require.Panics(t, func() { locks.WithOwner(ctx, o) }, "%d", int64(o))
	}
	for _, o := range []locks.Owner{-1 << 57, 1<<57 - 1} {
		l := &reentrant.Mutex{}
		require.NoError(t, l.LockContext(locks.WithOwner(ctx, o)))
		require.True(t, l.IsLocked())
		require.Equal(t, o, l.Owner())
		require.NoError(t, l.UnlockContext(locks.WithOwner(ctx, o)))
	}
}

func TestAnOwnerSaysWhatItIs(t *testing.T) {
	require.Equal(t, "nobody", locks.Owner(0).String())
	require.Equal(t, "goroutine 7", locks.Owner(7).String())
	require.Equal(t, "owner 3", locks.Owner(-3).String())
	require.Equal(t, "owner "+strconv.FormatUint(1<<63, 10), locks.Owner(-1<<63).String())
}
