package lease_test

import (
	"context"
	"fmt"
	"strings"
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

// flaky is a client whose requests fail with errors of the test's choice, once told so, and are
// counted.
type flaky struct {
	*client
	acquire, release, renew error
	sent                    map[string]int
}

func (s *server) flaky() *flaky { return &flaky{client: s.connect(), sent: make(map[string]int)} }

// next counts a request, and returns the error that it fails with.
func (f *flaky) next(kind string, err *error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent[kind]++
	return *err
}

func (f *flaky) requests(kind string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent[kind]
}

// breaks makes requests fail from now on; nil ends that.
func (f *flaky) breaks(acquire, release, renew error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.acquire, f.release, f.renew = acquire, release, renew
}

func (f *flaky) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	if err := f.next("acquire", &f.acquire); err != nil {
		return driver.Reply{}, err
	}
	return f.client.Acquire(ctx, req)
}

func (f *flaky) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	if err := f.next("release", &f.release); err != nil {
		return driver.Released{}, err
	}
	return f.client.Release(ctx, id)
}

func (f *flaky) Renew(ctx context.Context, holds []driver.HoldID, d time.Duration) ([]bool, error) {
	if err := f.next("renew", &f.renew); err != nil {
		return nil, err
	}
	return f.client.Renew(ctx, holds, d)
}

var (
	errDenied  = fmt.Errorf("%w: NOPERM", driver.ErrRefused)
	errTimeout = fmt.Errorf("the store's own time limit: %w", context.DeadlineExceeded)
)

func TestAnAnswerEndsACancelledTrysUndoing(t *testing.T) {
	for _, held := range []bool{false, true} {
		t.Run(fmt.Sprintf("held=%v", held), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *server) {
				conn := s.flaky()
				conn.set(func(c *client) {
					c.delay["acquire"], c.delay["release"] = 120*time.Millisecond, 120*time.Millisecond
				})
				c, rival, b := open(t, conn), open(t, s.connect()), as(locks.NewOwner())
				var wg sync.WaitGroup
				for i := range 100 {
					if held {
						hold(t, rival.Mutex(fmt.Sprint(i)), b)
					}
					wg.Go(func() {
						ctx, cancel := context.WithTimeout(as(locks.NewOwner()), 60*time.Millisecond)
						defer cancel()
						_, err := c.Mutex(fmt.Sprint(i)).TryLockContext(ctx)
						assert.ErrorIs(t, err, context.DeadlineExceeded)
					})
				}
				wg.Wait()
				time.Sleep(500 * time.Millisecond)
				synctest.Wait()
				for i := range 100 {
					require.Equal(t, held, s.holder(fmt.Sprint(i)) != "")
				}
				n := conn.requests("acquire") + conn.requests("release")
				require.LessOrEqual(t, n, 300, "an acquisition and two releases each")
				time.Sleep(term)
				require.Equal(t, n, conn.requests("acquire")+conn.requests("release"), "nothing goes on")
			})
		})
	}
}

func TestUndoingIsBoundedInRequests(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.flaky()
		l := open(t, conn, lease.WithTTL(24*time.Hour)).Mutex("it")
		conn.breaks(errNetwork, errNetwork, nil)
		conn.set(func(c *client) { c.down = true })
		require.ErrorIs(t, l.LockContext(as(locks.NewOwner())), errNetwork)
		time.Sleep(48 * time.Hour)
		require.LessOrEqual(t, conn.requests("release"), 45)
	})
}

func TestAnUnlockEndsDespiteAStoreIgnoringContexts(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		c, o := open(t, stubborn{s.connect()}, lease.WithReleaseTimeout(3*time.Second)), as(locks.NewOwner())
		l := c.Mutex("it")
		hold(t, l, o)
		began := time.Now()
		err := l.UnlockContext(o)
		require.Equal(t, 3*time.Second, time.Since(began))
		require.ErrorIs(t, err, locks.ErrLost)
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		time.Sleep(time.Hour)
		require.Empty(t, s.holder("it"), "the release goes on in the background")
	})
}

// prompt notes which goroutine releases.
type prompt struct {
	*client
	by locks.Owner
}

func (p *prompt) ReleaseHeedsDeadline() bool { return true }

func (p *prompt) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	p.by = locks.CurrentOwner(context.Background())
	return p.client.Release(ctx, id)
}

func TestAnUnlockCallsAStoreThatHeedsDeadlinesItself(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		store, o := &prompt{client: s.connect()}, as(locks.NewOwner())
		l := open(t, store).Mutex("it")
		hold(t, l, o)
		require.NoError(t, l.UnlockContext(o))
		require.Equal(t, locks.CurrentOwner(context.Background()), store.by)
	})
}

func TestAnErrorOfAReleaseIsALoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.flaky()
		l := open(t, conn).Mutex("it")
		do := func() error {
			return locks.Do(as(locks.NewOwner()), l, func(context.Context) error { return nil })
		}
		require.NoError(t, do())
		for _, err := range []error{errNetwork, errDenied} {
			conn.breaks(nil, err, nil)
			got := do()
			require.ErrorIs(t, got, locks.ErrLost)
			require.ErrorIs(t, got, err)
			conn.breaks(nil, nil, nil)
			s.evict("it")
		}
	})
}

func TestALossToldByTheReleaseIsFinal(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.flaky()
		l, o := open(t, conn).Mutex("it"), as(locks.NewOwner())
		hold(t, l, o)
		conn.breaks(nil, fmt.Errorf("the connection is gone: %w", locks.ErrLost), nil)
		err := l.UnlockContext(o)
		require.ErrorIs(t, err, locks.ErrLost)
		require.Equal(t, 1, strings.Count(err.Error(), locks.ErrLost.Error()), "said once: %v", err)
		require.Equal(t, 1, conn.requests("release"))
	})
}

func TestAReleaseAnsweredLateIsNoLoss(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.flaky()
		l, o := open(t, conn).Mutex("it"), as(locks.NewOwner())
		hold(t, l, o)
		conn.breaks(nil, errNetwork, nil)
		time.AfterFunc(time.Second, func() { conn.breaks(nil, nil, nil) })
		require.NoError(t, l.UnlockContext(o))
		require.Empty(t, s.holder("it"))
	})
}

func TestTheStoresTimeLimitsAreNotCallers(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		conn := s.flaky()
		l, o := open(t, conn).Mutex("it"), as(locks.NewOwner())
		h := hold(t, l, o)
		conn.breaks(errTimeout, errTimeout, errTimeout)
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		defer cancel()
		err := h.Extend(ctx, time.Minute)
		require.ErrorContains(t, err, "time limit")
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		err = l.UnlockContext(o)
		require.ErrorContains(t, err, "time limit")
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		err = l.LockContext(o)
		require.ErrorContains(t, err, "time limit")
		require.NotErrorIs(t, err, context.DeadlineExceeded)
		var e interface{ Timeout() bool }
		require.ErrorAs(t, err, &e, "what else the error is can be seen")
	})
}
