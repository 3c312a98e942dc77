package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// ErrNotReplicated is matched by the errors of acquisitions that were undone because fewer
// replicas acknowledged them than [WithReplicas] demands.
var ErrNotReplicated = errors.New("too few replicas have acknowledged the lock")

// WithReplicas is an option of [redislock.New]. With this option, an acquisition of any lock counts
// only if n or more replicas of the master have acknowledged it within timeout. The request is a
// WAIT on the connection of the acquisition. Such a lock survives the failure of the master if one
// of these replicas takes its place. Use the option with sentinels: without it, a planned failover
// lets in second holders for some seconds.
//
// If too few replicas acknowledge the acquisition, the lock is released. TryLockContext returns an
// error matching [ErrNotReplicated]. LockContext tries again until its context ends, and its error
// then matches ErrNotReplicated. A waiter of a fair lock loses its place in the queue.
//
// The choice of the new master matters: it may be another replica, which has not heard of the lock.
// Renewals and releases do not wait for replicas. So after a failure, the lock may last shorter or
// longer by a lease. The holder learns of it at its next renewal.
//
// The timeout must be less than client's ReadTimeout. More than half of the lease counts as half of
// the lease. Each acquisition costs one more round trip to a replica. If replicas are missing, each
// acquisition costs the timeout.
func WithReplicas(n int, timeout time.Duration) redislock.Option {
	return func(o *redisport.Options) {
		o.Wrap = nil
		if n == 0 {
			return
		}
		o.Wrap = func(s redisport.Store, read time.Duration) (driver.Store, error) {
			const what = "acknowledgement by replicas within %v, "
			switch {
			case n < 0:
				return nil, fmt.Errorf("acknowledgement by %d replicas, at least 0 is needed", n)
			case timeout < time.Millisecond:
				return nil, fmt.Errorf(what+"at least 1ms is needed", timeout)
			case read > 0 && timeout >= read:
				return nil, fmt.Errorf(what+"less than the ReadTimeout %v is allowed", timeout, read)
			}
			return acked{s, n, timeout}, nil
		}
	}
}

// acked is a store of locks whose acquisitions replicas must acknowledge.
type acked struct {
	redisport.Store
	n       int
	timeout time.Duration
}

// acks is the [redisport.Evaluator] of a request that replicas must acknowledge: a WAIT follows the
// script. The reply to the WAIT goes to n.
type acks struct {
	want    int
	timeout time.Duration
	n       int
}

func (a *acks) Eval(ctx context.Context, p redisport.Port, s *redisport.Script, keys int, args []any) (r any, err error) {
	r, a.n, err = p.EvalSync(ctx, s, keys, args, a.want, a.timeout)
	return r, err
}

// asking returns req with the acks that its outcome depends on.
func (s acked) asking(req driver.Request) (driver.Request, *acks) {
	got := &acks{want: s.n, timeout: min(s.timeout, req.TTL/2)} // half of the lease is left for the holder
	req.Data = got
	return req, got
}

func (s acked) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	return s.settle(ctx, req, s.Store.Acquire)
}

// If Enqueue releases the lock because replicas are missing, the waiter waits on with its watch.
func (s acked) Enqueue(ctx context.Context, req driver.Request) (driver.Reply, error) {
	return s.settle(ctx, req, s.Store.Enqueue)
}

// settle requests the lock, and releases it if too few replicas acknowledge the acquisition.
func (s acked) settle(ctx context.Context, req driver.Request,
	ask func(context.Context, driver.Request) (driver.Reply, error),
) (driver.Reply, error) {
	req, got := s.asking(req)
	r, err := ask(ctx, req)
	if err != nil || !r.Held || got.n >= s.n {
		return r, err
	}
	if _, err := s.Release(ctx, req.HoldID); err != nil {
		return driver.Reply{}, err // the release has failed: the outcome is unknown, and Lookup follows
	}
	return driver.Reply{
		Wait:   20*time.Millisecond + rand.N(80*time.Millisecond),
		Reason: fmt.Errorf("%w: %d of %d", ErrNotReplicated, got.n, s.n),
	}, nil
}

// Lookup releases the lock if too few replicas have it. WAIT counts only the writes of its own
// connection. So the scripts that look a hold up write something, which comes after the
// acquisition on all replicas.
func (s acked) Lookup(ctx context.Context, req driver.Request) (driver.Reply, error) {
	req, got := s.asking(req)
	r, err := s.Store.Lookup(ctx, req)
	if err != nil || !r.Held || got.n >= s.n {
		return r, err
	}
	_, err = s.Release(ctx, req.HoldID)
	return driver.Reply{}, err
}
