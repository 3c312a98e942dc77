package lease_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// queued is a client whose store has a queue.
type queued struct {
	*client
	waiting *[]string // guarded by the server's mutex
}

var _ driver.Queue = queued{}

func (q queued) Enqueue(ctx context.Context, req driver.Request) (r driver.Reply, err error) {
	err = q.call(ctx, "enqueue", func() {
		rec := q.s.live(req.Name)
		head := len(*q.waiting) == 0 || (*q.waiting)[0] == req.Acquisition
		switch {
		case rec == nil && head || rec != nil && rec.acquisition == req.Acquisition:
			*q.waiting = slices.DeleteFunc(*q.waiting, func(o string) bool { return o == req.Acquisition })
			q.s.locks[req.Name] = &record{req.Acquisition, 1, time.Now().Add(req.TTL), 0}
			r = driver.Reply{Held: true}
		case !slices.Contains(*q.waiting, req.Acquisition):
			*q.waiting = append(*q.waiting, req.Acquisition)
		}
	})
	return r, err
}

func (q queued) Leave(ctx context.Context, id driver.HoldID) error {
	return q.call(ctx, "leave", func() {
		*q.waiting = slices.DeleteFunc(*q.waiting, func(o string) bool { return o == id.Acquisition })
		q.s.notify(id.Name)
	})
}

func (q queued) queue() []string {
	q.s.mu.Lock()
	defer q.s.mu.Unlock()
	return slices.Clone(*q.waiting)
}

func inLine(t *testing.T, f func(t *testing.T, q queued, l, rival *lease.Mutex)) {
	t.Helper()
	bubble(t, func(t *testing.T, s *server) {
		waiting := new([]string)
		q := queued{s.connect(), waiting}
		open := func(q queued) *lease.Mutex {
			c, err := lease.New(q, lease.WithTTL(term))
			require.NoError(t, err)
			t.Cleanup(func() { c.Close(context.Background()) })
			return c.Mutex("it")
		}
		f(t, q, open(q), open(queued{s.connect(), waiting}))
	})
}

func TestACancelledWaiterLeavesTheStoresQueue(t *testing.T) {
	inLine(t, func(t *testing.T, q queued, l, rival *lease.Mutex) {
		a := as(locks.NewOwner())
		require.NoError(t, rival.LockContext(a))

		ok, err := l.TryLockContext(as(locks.NewOwner()))
		require.NoError(t, err)
		require.False(t, ok)
		require.Empty(t, q.queue(), "a try does not wait")

		ctx, cancel := context.WithCancel(as(locks.NewOwner()))
		var wg sync.WaitGroup
		wg.Go(func() { assert.ErrorIs(t, l.LockContext(ctx), context.Canceled) })
		synctest.Wait()
		require.Len(t, q.queue(), 1)
		cancel()
		wg.Wait()
		synctest.Wait()
		require.Empty(t, q.queue())

		b := as(locks.NewOwner())
		wg.Go(func() { assert.NoError(t, l.LockContext(b)) })
		synctest.Wait()
		require.Len(t, q.queue(), 1, "the next one here has a place of its own")
		require.NoError(t, rival.UnlockContext(a))
		wg.Wait()
		require.Empty(t, q.queue())
		require.NoError(t, l.UnlockContext(b))
	})
}

func TestAnAbandonedRequestLeavesTheStoresQueue(t *testing.T) {
	inLine(t, func(t *testing.T, q queued, l, rival *lease.Mutex) {
		a := as(locks.NewOwner())
		require.NoError(t, rival.LockContext(a))
		q.set(func(c *client) { c.delay["enqueue"], c.dropReply["leave"] = 2*time.Second, 2 })
		ctx, cancel := context.WithTimeout(as(locks.NewOwner()), 1500*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, l.LockContext(ctx), context.DeadlineExceeded)
		require.Len(t, q.queue(), 1)
		time.Sleep(time.Second)
		synctest.Wait()
		require.Empty(t, q.queue())
		require.NoError(t, rival.UnlockContext(a))
	})
}

func TestCloseLeavesTheQueue(t *testing.T) {
	inLine(t, func(t *testing.T, q queued, _, rival *lease.Mutex) {
		require.NoError(t, rival.LockContext(as(locks.NewOwner())))
		c, err := lease.New(q)
		require.NoError(t, err)
		var wg sync.WaitGroup
		wg.Go(func() { assert.ErrorIs(t, c.Mutex("it").LockContext(as(locks.NewOwner())), locks.ErrClosed) })
		synctest.Wait()
		require.Len(t, q.queue(), 1)
		require.NoError(t, c.Close(context.Background()))
		wg.Wait()
		require.Empty(t, q.queue())
	})
}

// refusing is a store that answers with errors.
type refusing struct {
	*client
	err error
}

func (r refusing) Acquire(context.Context, driver.Request) (driver.Reply, error) {
	return driver.Reply{}, r.err
}

func TestWhatTheStoreHasRefusedIsNotUndone(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c, err := lease.New(refusing{s.connect(), driver.ErrRefused})
		require.NoError(t, err)
		defer c.Close(context.Background())
		require.ErrorIs(t, c.Mutex("it").LockContext(as(locks.NewOwner())), driver.ErrRefused)
		require.Zero(t, s.count("recall"))
		require.Zero(t, s.count("release"))
	})
}

// partial is a store that renews all but one hold, and an error.
type partial struct{ *client }

func (p partial) Renew(ctx context.Context, holds []driver.HoldID, d time.Duration) ([]bool, error) {
	ok := make([]bool, len(holds))
	for i, h := range holds {
		if h.Name != "out of reach" {
			r, err := p.client.Renew(ctx, []driver.HoldID{h}, d)
			ok[i] = err == nil && r[0]
		}
	}
	return ok, errNetwork
}

func TestAPartlyFailedRenewalKeepsTheOthers(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c, err := lease.New(partial{s.connect()}, lease.WithTTL(term))
		require.NoError(t, err)
		defer c.Close(context.Background())
		a := as(locks.NewOwner())
		h, unlucky := hold(t, c.Mutex("it"), a), hold(t, c.Mutex("out of reach"), a)
		<-unlucky.Lost()
		time.Sleep(term)
		require.NoError(t, h.Err())
	})
}

func TestALeaseOfZeroIsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		for _, d := range []time.Duration{0, -1, time.Microsecond} {
			require.Error(t, open(t, s.connect()).Mutex("it", lease.WithFixedTTL(d)).LockContext(context.Background()))
		}
		require.Zero(t, s.count("acquire"))
	})
}

func TestALateAnswerUndoesNoLaterAcquisition(t *testing.T) {
	inLine(t, func(t *testing.T, q queued, l, rival *lease.Mutex) {
		a, b := as(locks.NewOwner()), as(locks.NewOwner())
		require.NoError(t, rival.LockContext(a))
		got := make(chan error, 1)
		go func() { got <- l.LockContext(b) }()
		synctest.Wait()
		require.Len(t, q.queue(), 1)
		q.set(func(c *client) { c.delay["enqueue"], c.delay["release"] = term*3/2, term/10 })
		require.NoError(t, rival.UnlockContext(a))
		synctest.Wait()
		q.set(func(c *client) { c.delay["enqueue"] = 0 }) // of the requests that come after the request under way
		require.NoError(t, <-got)
		h, err := l.Hold(b)
		require.NoError(t, err)
		for range 20 {
			time.Sleep(term / 20)
			require.NoError(t, h.Err())
			require.NotEmpty(t, q.s.holder("it"))
		}
		q.set(func(c *client) { c.delay["release"] = 0 })
		require.NoError(t, l.UnlockContext(b))
		require.Empty(t, q.s.holder("it"))
	})
}

// A store may end the notifications of an acquisition when it gives it the lock.
func TestAWaiterWatchesAnewAfterALostAnswer(t *testing.T) {
	inLine(t, func(t *testing.T, q queued, l, rival *lease.Mutex) {
		a, b := as(locks.NewOwner()), as(locks.NewOwner())
		require.NoError(t, rival.LockContext(a))
		got := make(chan error, 1)
		go func() { got <- l.LockContext(b) }()
		synctest.Wait()
		require.Len(t, q.queue(), 1)
		q.set(func(c *client) { c.deaf = true })
		require.NoError(t, rival.UnlockContext(a))
		synctest.Wait()
		require.NotEmpty(t, q.s.holder("it")) // the waiter, which does not know
		q.s.evict("it")
		q.s.mu.Lock()
		clear(q.s.watches)
		q.s.mu.Unlock()
		require.NoError(t, rival.LockContext(a))
		q.set(func(c *client) { c.deaf = false })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.NoError(t, rival.UnlockContext(a))
		synctest.Wait()
		require.Len(t, got, 1, "the waiter has not been told")
		require.NoError(t, <-got)
	})
}

func TestAHandOffWinsOverALaterCancellation(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l, a, b := open(t, s.connect()).Mutex("it"), as(locks.NewOwner()), locks.NewOwner()
		for range 20 {
			hold(t, l, a)
			ctx, cancel := context.WithCancel(as(b))
			done := make(chan error, 1)
			go func() { done <- l.LockContext(ctx) }()
			synctest.Wait()
			require.NoError(t, l.UnlockContext(a))
			cancel()
			require.NoError(t, <-done)
			require.NoError(t, l.UnlockContext(ctx))
		}
	})
}
