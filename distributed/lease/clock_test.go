package lease

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// free is a store that always gives its locks.
type free struct{}

func (free) Acquire(context.Context, driver.Request) (driver.Reply, error) {
	return driver.Reply{Held: true}, nil
}
func (free) Lookup(context.Context, driver.Request) (driver.Reply, error) {
	return driver.Reply{Held: true}, nil
}
func (free) Renew(_ context.Context, holds []driver.HoldID, _ time.Duration) ([]bool, error) {
	return make([]bool, len(holds)), nil
}
func (free) Release(context.Context, driver.HoldID) (driver.Released, error) {
	return driver.Released{Held: true}, nil
}
func (free) Watch(context.Context, driver.HoldID) (driver.Watch, error) { return nil, nil }

func TestASuspensionEndsAHoldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var slept atomic.Int64
		suspended := func(time.Time) time.Duration { return time.Duration(slept.Load()) }
		c, err := newClient(free{}, suspended, WithTTL(30*time.Second))
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

func (s answering) Renew(_ context.Context, holds []driver.HoldID, _ time.Duration) ([]bool, error) {
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
		suspended := func(time.Time) time.Duration { return time.Duration(slept.Load()) }
		store := answering{sent: &sent, answers: make(chan struct{})}
		c, err := newClient(store, suspended, WithTTL(30*time.Second))
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
