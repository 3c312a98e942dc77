package lease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// telling is a queued store that knows, without being asked, who is the next one when the lock is
// free, if it wants to.
type telling struct {
	queued
	knows bool
	then  func() // called by Granted
}

func (k *telling) Granted(name, acquisition string) (r lease.Reply, ok bool) {
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	if !k.knows || k.s.live(name) != nil || len(*k.waiting) == 0 || (*k.waiting)[0] != acquisition {
		return r, false
	}
	*k.waiting = (*k.waiting)[1:]
	k.s.locks[name] = &record{acquisition, 1, time.Now().Add(term), 0}
	if k.then != nil {
		k.then()
	}
	return lease.Reply{Held: true, Token: 7}, true
}

func (k *telling) asked() int {
	k.s.mu.Lock()
	defer k.s.mu.Unlock()
	return k.s.calls["enqueue"]
}

// told has somebody wait for a lock of a telling store, which is given back then.
func told(t *testing.T, f func(t *testing.T, k *telling, l *lease.Mutex, free func()), opts ...lease.MutexOption) {
	t.Helper()
	inLine(t, func(t *testing.T, q queued, _, rival *lease.Mutex) {
		k := &telling{queued: q, knows: true}
		c, err := lease.New(k, lease.WithTTL(term))
		require.NoError(t, err)
		t.Cleanup(func() { c.Close(context.Background()) })
		a := as(locks.NewOwner())
		require.NoError(t, rival.LockContext(a))
		f(t, k, c.Mutex("it", opts...), func() { require.NoError(t, rival.UnlockContext(a)) })
	})
}

// waited waits for l, which free frees meanwhile. It returns the owner's context, and how many
// requests the store had since then.
func waited(t *testing.T, k *telling, l *lease.Mutex, free func()) (ctx context.Context, asked int) {
	t.Helper()
	ctx, cancel := context.WithCancel(as(locks.NewOwner()))
	t.Cleanup(cancel)
	got := make(chan error, 1)
	go func() { got <- l.LockContext(ctx) }()
	synctest.Wait()
	before := k.asked()
	free()
	require.NoError(t, <-got)
	return ctx, k.asked() - before
}

func TestAPredictedTurnNeedsNoRequest(t *testing.T) {
	told(t, func(t *testing.T, k *telling, l *lease.Mutex, free func()) {
		ctx, asked := waited(t, k, l, free)
		require.Zero(t, asked)
		h, err := l.Hold(ctx)
		require.NoError(t, err)
		require.EqualValues(t, 7, h.Token())
		time.Sleep(2 * term)
		require.NoError(t, h.Err(), "it is renewed")
		require.NoError(t, l.UnlockContext(ctx))
	})
}

func TestAnUnpredictedTurnNeedsARequest(t *testing.T) {
	told(t, func(t *testing.T, k *telling, l *lease.Mutex, free func()) {
		k.knows = false
		ctx, asked := waited(t, k, l, free)
		require.Equal(t, 1, asked)
		require.NoError(t, l.UnlockContext(ctx))
	})
}

func TestAHoldOfItsOwnLengthIsAskedFor(t *testing.T) {
	told(t, func(t *testing.T, k *telling, l *lease.Mutex, free func()) {
		ctx, asked := waited(t, k, l, free)
		require.Equal(t, 1, asked)
		require.NoError(t, l.UnlockContext(ctx))
	}, lease.WithFixedTTL(term/2))
}

func TestAPredictedTurnAfterTheEndIsGivenBack(t *testing.T) {
	for range 20 { // either end is seen first
		told(t, func(t *testing.T, k *telling, l *lease.Mutex, free func()) {
			ctx, cancel := context.WithCancel(as(locks.NewOwner()))
			k.then = cancel
			got := make(chan error, 1)
			go func() { got <- l.LockContext(ctx) }()
			synctest.Wait()
			free()
			require.ErrorIs(t, <-got, context.Canceled)
			synctest.Wait()
			time.Sleep(time.Millisecond)
			k.s.mu.Lock()
			defer k.s.mu.Unlock()
			require.Nil(t, k.s.live("it"))
			require.Empty(t, *k.waiting)
		})
	}
}

// telltale is a telling store that tells of the end of a hold as soon as it knows of it, before
// anybody else does.
type telltale struct {
	*telling
	lost func(lease.HoldID, error)
}

var _ lease.LossNotifier = (*telltale)(nil)

func (s *telltale) NotifyLoss(lost func(lease.HoldID, error)) { s.lost = lost }

func (s *telltale) Granted(name, acquisition string) (lease.Reply, bool) {
	r, ok := s.telling.Granted(name, acquisition)
	if ok {
		s.lost(lease.HoldID{Name: name, Acquisition: acquisition}, errNetwork)
	}
	return r, ok
}

func TestAPredictedTurnAfterItsLossIsLost(t *testing.T) {
	inLine(t, func(t *testing.T, q queued, _, rival *lease.Mutex) {
		c, err := lease.New(&telltale{telling: &telling{queued: q, knows: true}}, lease.WithTTL(term))
		require.NoError(t, err)
		defer c.Close(context.Background())
		a := as(locks.NewOwner())
		require.NoError(t, rival.LockContext(a))
		ctx, cancel := context.WithCancel(as(locks.NewOwner()))
		defer cancel()
		l, got := c.Mutex("it"), make(chan error, 1)
		go func() { got <- l.LockContext(ctx) }()
		synctest.Wait()
		require.NoError(t, rival.UnlockContext(a))
		require.NoError(t, <-got)
		h, err := l.Hold(ctx)
		require.NoError(t, err)
		require.ErrorIs(t, h.Err(), locks.ErrLost)
		require.ErrorIs(t, h.Err(), errNetwork)
		require.ErrorIs(t, l.UnlockContext(ctx), locks.ErrLost)
	})
}
