package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/fence"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
)

// Every lock that expires can let two holders at the resource. A Gate refuses the old one.
//
// The first holder is paused for longer than its lease. Here the server's clock goes forward, which
// is the same to the server. The second holder acquires the lock and writes. Then the first holder
// goes on.
func ExampleGate() {
	server := miniredis.NewMiniRedis() // yours is a real one
	server.Start()
	defer server.Close()
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer client.Close()
	ctx := context.Background()

	// Two processes, as far as the locks can tell.
	process := func() *redislock.Client {
		c, err := redislock.New(client, redislock.WithTTL(time.Minute))
		if err != nil {
			panic(err)
		}
		return c
	}
	first, second := process(), process()
	defer first.Close(ctx)
	defer second.Close(ctx)
	gate, err := redislock.NewGate(client)
	if err != nil {
		panic(err)
	}
	enter := func(c *redislock.Client) (*lease.Mutex, uint64) {
		lock := c.FencedMutex("account")
		if err := lock.LockContext(ctx); err != nil {
			panic(err)
		}
		hold, err := lock.Hold(ctx)
		if err != nil {
			panic(err)
		}
		return lock, hold.Token()
	}
	write := func(who string, token uint64) {
		err := gate.Set(ctx, "balance", token, "written by the "+who)
		if errors.Is(err, fence.ErrStale) {
			fmt.Printf("%s: refused;\n", who)
			return
		}
		fmt.Printf("%s: written;\n", who)
	}

	a, tokenA := enter(first)
	write("first", tokenA)
	server.FastForward(2 * time.Minute) // the pause
	b, tokenB := enter(second)
	write("second", tokenB)
	write("first", tokenA) // it still believes that it holds the lock
	fmt.Printf("lost: %v;\n", errors.Is(a.UnlockContext(ctx), locks.ErrLost))
	if err := b.UnlockContext(ctx); err != nil {
		panic(err)
	}
	fmt.Println(client.Get(ctx, "balance").Val())
	// Output:
	// first: written;
	// second: written;
	// first: refused;
	// lost: true;
	// written by the second
}

func gates(t *testing.T, test func(t *testing.T, g *redislock.Gate, direct *redis.Client)) {
	for name, addr := range map[string]func(tb testing.TB) string{
		"on miniredis": func(tb testing.TB) string { return miniredis.RunT(tb).Addr() },
		"on redis":     func(tb testing.TB) string { return startServer(tb).Addr },
	} {
		t.Run(name, func(t *testing.T) {
			direct := connect(t, addr(t))
			g, err := redislock.NewGate(direct)
			require.NoError(t, err)
			test(t, g, direct)
		})
	}
}

func TestAGateWritesUnlessTheTokenIsStale(t *testing.T) {
	t.Parallel()
	gates(t, func(t *testing.T, g *redislock.Gate, direct *redis.Client) {
		value := func() string { return direct.Get(background, "it").Val() }
		require.NoError(t, g.Set(background, "it", 9, "a"))
		require.NoError(t, g.Set(background, "it", 9, "b"), "a holder writes more than once")
		require.Equal(t, "b", value())
		require.NoError(t, g.Check(background, "it", 10), "longer is higher, whatever the digits")
		require.Equal(t, "b", value())
		err := g.Set(background, "it", 9, "c")
		require.ErrorIs(t, err, fence.ErrStale)
		require.ErrorIs(t, err, locks.ErrLost)
		require.ErrorIs(t, g.Check(background, "it", 2), fence.ErrStale)
		require.Equal(t, "b", value())
		require.ErrorContains(t, err, "token 9 after 10")
		require.NoError(t, g.Set(background, "other", 1, ""), "another resource")
		require.EqualValues(t, 1, direct.Exists(background, "other").Val(), "an empty value is one")
	})
}

func TestAGateIsExactForAllTokens(t *testing.T) {
	t.Parallel()
	gates(t, func(t *testing.T, g *redislock.Gate, _ *redis.Client) {
		for _, token := range []uint64{1<<53 + 1, 1<<63 + 1, math.MaxUint64} {
			require.NoError(t, g.Check(background, "it", token))
			require.ErrorIs(t, g.Check(background, "it", token-1), fence.ErrStale)
			require.NoError(t, g.Check(background, "it", token))
		}
	})
}

// expired is a hook with a time limit of its own, which is over.
type expired struct{ unanswered }

func (expired) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(context.Context, redis.Cmder) error { return context.DeadlineExceeded }
}

func TestAGatesLateAnswerIsNoEndOfTheCallersContext(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	client.AddHook(expired{})
	g, err := redislock.NewGate(client)
	require.NoError(t, err)
	err = g.Set(background, "it", 1, "")
	require.EqualError(t, err, `redislock: Gate.Set of "it": no answer in time`)
	require.NotErrorIs(t, err, context.DeadlineExceeded)
}

func TestAGateRefusesWrongTokensAndNames(t *testing.T) {
	t.Parallel()
	gates(t, func(t *testing.T, g *redislock.Gate, direct *redis.Client) {
		require.ErrorIs(t, g.Set(background, "it", 0, "x"), fence.ErrNoToken)
		require.Error(t, g.Set(background, "", 1, "x"))
		require.ErrorIs(t, g.Set(nil, "it", 1, "x"), locks.ErrNilContext)
		require.NoError(t, direct.Set(background, "locks_fence:{it}", "x", 0).Err())
		require.ErrorIs(t, g.Set(background, "it", 1, "x"), locks.ErrForeign)
		require.Zero(t, direct.Exists(background, "it").Val())
	})
}
