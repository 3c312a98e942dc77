package lease

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
)

// free is a store that always gives its locks.
type free struct{}

func (free) Acquire(context.Context, Request) (Reply, error) {
	return Reply{Held: true}, nil
}
func (free) Lookup(context.Context, Request) (Reply, error) { return Reply{Held: true}, nil }
func (free) Renew(_ context.Context, holds []HoldID, _ time.Duration) ([]bool, error) {
	return make([]bool, len(holds)), nil
}
func (free) Release(context.Context, HoldID) (Released, error) {
	return Released{Held: true}, nil
}
func (free) Watch(context.Context, HoldID) (Watch, error) { return nil, nil }

func TestASuspensionEndsAHoldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slept atomic.Int64
		clock := func(c *Client) {
			c.suspended = func(time.Time) time.Duration { return time.Duration(slept.Load()) }
		}
		c, err := New(free{}, WithTTL(30*time.Second), clock)
		require.NoError(t, err)
		defer c.Close(t.Context())
		l, ctx := c.Mutex("it"), locks.WithOwner(t.Context(), locks.NewOwner())
		slept.Store(int64(time.Hour)) // before the hold: this does not count
		require.NoError(t, l.LockContext(ctx))
		h, err := l.Hold(ctx)
		require.NoError(t, err)
		before, _ := h.Deadline()
		require.Greater(t, time.Until(before), 28*time.Second)
		require.NoError(t, h.Err())

		slept.Add(int64(20 * time.Second))
		require.NoError(t, h.Err(), "shorter than the lease")
		after, _ := h.Deadline()
		require.Equal(t, 20*time.Second, before.Sub(after))

		slept.Add(int64(9 * time.Second))
		require.ErrorIs(t, h.Err(), locks.ErrLost)
		select {
		case <-h.Lost():
		default:
			require.Fail(t, "Lost is open")
		}
		require.ErrorIs(t, l.LockContext(ctx), locks.ErrLost, "re-entry")
		require.ErrorIs(t, l.UnlockContext(ctx), locks.ErrLost)
	})
}

// answering is a store whose renewals succeed, once there is an answer for each.
type answering struct {
	free
	sent    *atomic.Int64
	answers chan struct{}
}

func (s answering) Renew(_ context.Context, holds []HoldID, _ time.Duration) ([]bool, error) {
	s.sent.Add(1)
	<-s.answers
	renewed := make([]bool, len(holds))
	for i := range renewed {
		renewed[i] = true
	}
	return renewed, nil
}

func TestALateAnswerRevivesNoLostHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slept, sent atomic.Int64
		clock := func(c *Client) {
			c.suspended = func(time.Time) time.Duration { return time.Duration(slept.Load()) }
		}
		store := answering{sent: &sent, answers: make(chan struct{})}
		c, err := New(store, WithTTL(30*time.Second), clock)
		require.NoError(t, err)
		defer c.Close(t.Context())
		l, ctx := c.Mutex("it"), locks.WithOwner(t.Context(), locks.NewOwner())
		require.NoError(t, l.LockContext(ctx))
		time.Sleep(11 * time.Second)
		require.EqualValues(t, 1, sent.Load(), "the renewal is under way")
		slept.Store(int64(18500 * time.Millisecond)) // the owner sees the end before the timer does
		require.ErrorIs(t, l.UnlockContext(ctx), locks.ErrLost)
		close(store.answers)
		time.Sleep(time.Hour)
		require.EqualValues(t, 1, sent.Load(), "it would keep the lock from all others")
	})
}

func TestNowFollowsTheSystemsClock(t *testing.T) {
	earliest := time.Now()
	a := Now()
	latest := time.Now()
	time.Sleep(time.Millisecond)
	least := time.Since(latest)
	took := Now().Sub(a)
	most := time.Since(earliest)
	require.GreaterOrEqual(t, took, least-skew)
	require.LessOrEqual(t, took, most+skew)
	require.GreaterOrEqual(t, systemSuspended(), time.Duration(0))
}

func TestSettingTheWallClockIsNoSuspension(t *testing.T) {
	before := suspended(time.Now())
	defer last.Store(last.Load())
	r := *last.Load()
	r.ahead += time.Hour // as if the wall clock had been set since
	last.Store(&r)
	require.Equal(t, before, suspended(time.Now()))
	require.NotEqual(t, r.ahead, last.Load().ahead, "the system was asked")
}

func TestASuspensionIsSeenByTheWallClock(t *testing.T) {
	defer last.Store(last.Load())
	defer func(was time.Duration) { startOf = was }(startOf)
	startOf -= time.Hour // as if the machine had been suspended for an hour since the start
	require.Less(t, suspended(time.Now()), time.Hour, "nothing was seen that would ask the system")
	r := *last.Load()
	r.ahead -= time.Hour
	last.Store(&r)
	require.GreaterOrEqual(t, suspended(time.Now()), time.Hour-time.Second)
}

func BenchmarkErr(b *testing.B) {
	c, err := New(free{})
	require.NoError(b, err)
	defer c.Close(b.Context())
	l, ctx := c.Mutex("it"), locks.WithOwner(b.Context(), locks.NewOwner())
	require.NoError(b, l.LockContext(ctx))
	h, err := l.Hold(ctx)
	require.NoError(b, err)
	for b.Loop() {
		if h.Err() != nil {
			b.Fatal(h.Err())
		}
	}
}

func BenchmarkUncontended(b *testing.B) {
	c, err := New(free{})
	require.NoError(b, err)
	defer c.Close(b.Context())
	l, ctx := c.Mutex("it"), locks.WithOwner(b.Context(), locks.NewOwner())
	b.ReportAllocs()
	for b.Loop() {
		if l.LockContext(ctx) != nil || l.UnlockContext(ctx) != nil {
			b.Fatal("error")
		}
	}
}
