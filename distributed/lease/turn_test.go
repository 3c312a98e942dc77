package lease_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/internal/test/testbed"
)

// lender acquires and releases something, which some owners of this process share.
type lender func(ctx context.Context) (give func() error, err error)

// ofMutex lends a lock.
func ofMutex(l *lease.Mutex) lender {
	return func(ctx context.Context) (func() error, error) {
		ctx = locks.WithOwner(ctx, locks.NewOwner())
		give := func() error { return l.UnlockContext(context.WithoutCancel(ctx)) }
		return give, l.LockContext(ctx)
	}
}

// ofTries lends a lock that is tried for.
func ofTries(l *lease.Mutex) lender {
	return func(ctx context.Context) (func() error, error) {
		ctx = locks.WithOwner(ctx, locks.NewOwner())
		give := func() error { return l.UnlockContext(context.WithoutCancel(ctx)) }
		_, err := l.TryLockContext(ctx)
		return give, err
	}
}

// ofSemaphore lends all permits of a semaphore.
func ofSemaphore(s *lease.Semaphore) lender {
	return func(ctx context.Context) (func() error, error) {
		p, err := s.AcquireContext(ctx, s.Size())
		return func() error { return p.ReleaseContext(context.Background()) }, err
	}
}

// ofTriedPermits lends all permits of a semaphore that are tried for.
func ofTriedPermits(s *lease.Semaphore) lender {
	return func(ctx context.Context) (func() error, error) {
		p, _, err := s.TryAcquireContext(ctx, s.Size())
		return func() error { return p.ReleaseContext(context.Background()) }, err
	}
}

// passes lends and gives back, or gives up after an hour.
func passes(borrow lender) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	give, err := borrow(ctx)
	if err == nil {
		err = give()
	}
	return err
}

func TestAContextIsAskedWithoutATurn(t *testing.T) {
	for name, of := range map[string]func(c *lease.Client) (asked, other lender){
		"lock":     func(c *lease.Client) (_, _ lender) { return ofMutex(c.Mutex("it")), ofMutex(c.Mutex("it")) },
		"try lock": func(c *lease.Client) (_, _ lender) { return ofTries(c.Mutex("it")), ofMutex(c.Mutex("it")) },
		"permits":  func(c *lease.Client) (_, _ lender) { s := c.Semaphore("it", 2); return ofSemaphore(s), ofSemaphore(s) },
		"tried permits": func(c *lease.Client) (_, _ lender) {
			s := c.Semaphore("it", 2)
			return ofTriedPermits(s), ofSemaphore(s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := opened(newPool(), lease.WithTTL(term))
				defer c.Close(context.Background())
				asked, other := of(c)
				ctx := &testbed.Slow{Context: t.Context()}
				times := 0
				ctx.Arm(func() {
					times++
					require.NoError(t, passes(other), "while a method of a waiting context runs")
				})
				give, err := asked(ctx)
				ctx.Arm(nil)
				require.NoError(t, err)
				require.NotZero(t, times)
				require.NoError(t, give())
			})
		})
	}
}

func TestAContextThatHasEndedIsAskedWithoutATurn(t *testing.T) {
	for name, of := range map[string]func(c *lease.Client) lender{
		"lock":    func(c *lease.Client) lender { return ofMutex(c.Mutex("it")) },
		"permits": func(c *lease.Client) lender { return ofSemaphore(c.Semaphore("it", 2)) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pool := newPool()
				c, elsewhere := opened(pool, lease.WithTTL(term)), opened(pool, lease.WithTTL(term))
				defer c.Close(context.Background())
				defer elsewhere.Close(context.Background())
				giveElsewhere, err := of(elsewhere)(t.Context())
				require.NoError(t, err)

				here := of(c)
				end, cancel := context.WithCancelCause(t.Context())
				ctx := &testbed.Slow{Context: end}
				ended := make(chan error)
				go func() {
					_, err := here(ctx)
					ended <- err
				}()
				synctest.Wait()
				next := make(chan error, 1)
				go func() { next <- passes(here) }()
				synctest.Wait()
				ctx.Arm(func() {
					require.NoError(t, giveElsewhere())
					require.NoError(t, <-next, "the next waiter, while a method of an ended context runs")
					giveElsewhere, next = func() error { return nil }, make(chan error, 1)
					next <- nil
				})
				cancel(errNetwork)
				err = <-ended
				require.ErrorIs(t, err, context.Canceled)
				require.ErrorIs(t, err, errNetwork)
			})
		})
	}
}

// onlyDone is a context that has its own Done channel, and forgets Err.
type onlyDone struct {
	context.Context
	done chan struct{}
}

func (c onlyDone) Done() <-chan struct{} { return c.done }

func TestAContextThatEndsWithoutAnErrorGivesNoLock(t *testing.T) {
	bubble(t, func(t *testing.T, s *server) {
		l, other := open(t, s.connect()).Mutex("it"), open(t, s.connect()).Mutex("it")
		hold(t, other, as(locks.NewOwner()))
		ctx := onlyDone{as(locks.NewOwner()), make(chan struct{})}
		time.AfterFunc(time.Minute, func() { close(ctx.done) })
		require.ErrorContains(t, l.LockContext(ctx), "given up")
	})
}
