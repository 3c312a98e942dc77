package redislock

import (
	"context"
	"time"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock/internal/driver"
)

// The state of a fair lock, Redisson's RFairLock, is the hash of a plain lock, a list and a sorted
// set. The list has the waiters, the first one in front. The set has the time when each waiter
// counts as dead, in milliseconds since 1970. Each waiter subscribes to a channel of its own. A
// release publishes 0 on the channel of the first waiter.
//
// These differences from Redisson are harmless to its clients:
//
//   - The time is the server's, not the client's.
//   - A waiter moves its time when it asks. So it keeps its place, however long the lock is held.
//   - Ids of our clients are UUIDs of version 8, Redisson's of version 4. A waiter of ours adds
//     no wait to the time of one of ours before it. Waiters of ours in a row so count as one for
//     Redisson's waiters behind them. The last of the row takes that wait back when it leaves.
//   - A release wakes the first waiter whose channel has a subscriber. The waiters before that one
//     count as dead after a grace of 750 milliseconds, all at the same time. A server of a cluster
//     does not count all subscribers: there the first waiter counts as woken. One of ours counts as
//     dead after ten seconds, if its time is not over before, so that it has to ask more often.
//   - List and set expire with the last time, unless that is the time of a waiter of Redisson.
//   - A waiter in the list without a time counts as dead. One that is only in the set returns to
//     the list.

// fairWait is how long after the lease a waiter that does not ask counts as alive. Redisson's is
// five minutes.
const fairWait = 30 * time.Second

// fair is the [lease.Store] of fair locks.
type fair struct {
	self
	c    *core
	wait time.Duration
}

var _ driver.Store = (*fair)(nil)

const fairChannel = "redisson_lock__channel"

// eval runs sc for the lock called name.
func (s *fair) eval(ctx context.Context, sc *script, name string, args ...any) (any, error) {
	return s.ask(ctx, lease.Request{HoldID: lease.HoldID{Name: name}}, sc, args...)
}

// ask runs sc for req. The last arguments are the commands to publish with.
func (s *fair) ask(ctx context.Context, req lease.Request, sc *script, args ...any) (any, error) {
	m, err := s.c.mode(ctx)
	if err != nil {
		return nil, err
	}
	all := []any{
		head - 1: nil, req.Name, prefixed("redisson_lock_queue", req.Name), prefixed("redisson_lock_timeout", req.Name),
	}
	all = append(append(all, args...), prefixed(fairChannel, req.Name), s.c.counts())
	return s.c.eval(ctx, req, sc, 3, m.publish(all))
}

func (s *fair) Acquire(ctx context.Context, req lease.Request) (lease.Reply, error) {
	return granted(s.ask(ctx, req, fairAcquire, millis(req.TTL), req.Acquisition, -1))
}

func (s *fair) Enqueue(ctx context.Context, req lease.Request) (lease.Reply, error) {
	return granted(s.ask(ctx, req, fairAcquire, millis(req.TTL), req.Acquisition, millis(s.wait)))
}

func (s *fair) Leave(ctx context.Context, id lease.HoldID) error {
	_, err := s.eval(ctx, fairLeave, id.Name, id.Acquisition, s.wait.Milliseconds())
	return err
}

func (s *fair) Lookup(ctx context.Context, req lease.Request) (lease.Reply, error) {
	return s.c.lookup(ctx, req, hashLookup, []any{req.Name}, req.Acquisition)
}

func (s *fair) Renew(ctx context.Context, holds []lease.HoldID, d time.Duration) ([]bool, error) {
	return s.c.renew(ctx, hashRenew, holds, d, "", nil)
}

func (s *fair) Release(ctx context.Context, id lease.HoldID) (lease.Released, error) {
	r, err := s.eval(ctx, fairRelease, id.Name, id.Acquisition)
	if err != nil || r == nil {
		return lease.Released{}, err
	}
	return lease.Released{Held: true, Awaited: r == int64(1)}, nil
}

func (s *fair) Break(ctx context.Context, name string) (bool, error) {
	m, err := s.c.mode(ctx)
	if err != nil {
		return false, err
	}
	r, err := s.eval(ctx, fairForce, name)
	return s.c.forced(ctx, m, name, r, err)
}

func (s *fair) Watch(ctx context.Context, id lease.HoldID) (lease.Watch, error) {
	channels := []string{prefixed(fairChannel, id.Name) + ":" + id.Acquisition}
	if !s.c.p.Cluster() {
		channels = append(channels, clientKey(s.client)) // for [link.look]
	}
	w := &watch{c: make(chan struct{}, 1)}
	if err := s.c.attach(ctx, w, channels...); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}
