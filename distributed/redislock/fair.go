package redislock

import (
	"context"
	"sync"
	"time"

	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// The state of a fair lock, Redisson's RFairLock, is the hash of a plain lock, a list and a sorted
// set. The list has the waiters, the first waiter in front. The set has the time when each waiter
// counts as dead, in milliseconds since 1970. Each waiter subscribes to a channel of its own. A
// release publishes 0 on the channel of the first waiter.
//
// These differences from Redisson are harmless to its clients:
//
//   - The time is the server's, not the client's.
//   - A waiter moves its time when it asks. So it keeps its place, however long the lock is held.
//   - Ids of our clients are UUIDs of version 8, Redisson's of version 4. A waiter of ours directly
//     behind another waiter of ours adds no wait to the other's time. So a row of our waiters
//     counts as one waiter for Redisson's waiters behind the row. The last waiter of the row takes
//     the row's wait back when it leaves.
//   - A release wakes the first waiter whose channel has a subscriber. The waiters in front of the
//     woken waiter count as dead after a grace of 750 milliseconds, all at the same time. A server
//     of a cluster does not count all subscribers: there the first waiter counts as woken. If the
//     first waiter is ours, it counts as dead after ten seconds, or when its time is over before.
//     So our waiter must ask more often.
//   - List and set expire with the last waiter's time, unless the last waiter is Redisson's.
//   - A waiter in the list without a time counts as dead. A waiter that is only in the set returns
//     to the list.

// fairWait is how long after the lease a waiter that does not ask counts as alive. In Redisson it
// is five minutes.
const fairWait = 30 * time.Second

// fair is the [driver.Store] of fair locks.
//
// A waiter subscribes to its channel before it asks for a place, if the last acquisition of the
// lock here waited. Then the waiter cannot miss a release, and asks once. The first acquisition
// that waits has its place sooner, and asks twice.
type fair struct {
	self
	c     *core
	wait  time.Duration
	cache nameCache

	mu      sync.Mutex
	waiters map[string]*fairWaiter // by acquisition
}

var _ redisport.Store = (*fair)(nil)

const fairChannel = "redisson_lock__channel"

func newFair(c *core, wait time.Duration) *fair {
	return &fair{c: c, wait: wait, waiters: make(map[string]*fairWaiter)}
}

// fairWaiter is the [driver.Watch] of an acquisition.
type fairWaiter struct {
	*watch
	s           *fair
	acquisition string
	watched     bool // package lease has it, and closes it. Guarded by fair.mu
}

func (w *fairWaiter) Close() {
	w.s.mu.Lock()
	if w.s.waiters[w.acquisition] == w {
		delete(w.s.waiters, w.acquisition)
	}
	w.s.mu.Unlock()
	w.watch.Close()
}

// find returns the waiter of an acquisition, or nil. watched says that package lease has the waiter
// from now on.
func (s *fair) find(acquisition string, watched bool) *fairWaiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.waiters[acquisition]
	if w != nil && watched {
		w.watched = true
	}
	return w
}

// onGrant ends the waiter of an acquisition that has the lock, unless package lease has it.
func (s *fair) onGrant(acquisition string) {
	s.mu.Lock()
	w := s.waiters[acquisition]
	over := w != nil && !w.watched
	s.mu.Unlock()
	if over {
		w.Close()
	}
}

// subscribe returns a waiter that is subscribed to its channel.
func (s *fair) subscribe(ctx context.Context, id driver.HoldID, watched bool) (*fairWaiter, error) {
	channels := []string{s.names(id.Name).channel + ":" + id.Acquisition}
	if !s.c.p.Cluster() {
		channels = append(channels, clientKey(s.client)) // for [link.look]
	}
	w := &fairWaiter{
		watch: newWatch(hearReleases), s: s, acquisition: id.Acquisition, watched: watched,
	}
	if err := s.c.attach(ctx, w.watch, channels...); err != nil {
		w.Close()
		return nil, err
	}
	s.mu.Lock()
	s.waiters[id.Acquisition] = w
	s.mu.Unlock()
	return w, nil
}

// names returns the keys and the prefix of the channels of the lock called name.
func (s *fair) names(name string) *names {
	return s.cache.of(name, func(name string) *names {
		return &names{
			name:    name,
			channel: addPrefix(fairChannel, name),
			list:    addPrefix("redisson_lock_queue", name),
			times:   addPrefix("redisson_lock_timeout", name),
		}
	})
}

// args returns the arguments of a script for the lock called name. The last arguments are the
// commands to publish with.
func (s *fair) args(ctx context.Context, name string, args ...any) ([]any, error) {
	m, err := s.c.mode(ctx)
	if err != nil {
		return nil, err
	}
	n := s.names(name)
	all := append(newArgs(n.name, n.list, n.times), args...)
	return m.publish(append(all, n.channel, s.c.counts())), nil
}

// eval runs sc for the lock called name.
func (s *fair) eval(ctx context.Context, sc *script, name string, args ...any) (any, error) {
	all, err := s.args(ctx, name, args...)
	if err != nil {
		return nil, err
	}
	return s.c.p.Eval(ctx, sc, 3, all)
}

// ask asks for the lock, and for a place in the queue if wait is not negative.
func (s *fair) ask(ctx context.Context, req driver.Request, wait int64) (driver.Reply, error) {
	all, err := s.args(ctx, req.Name, millis(req.TTL), req.Acquisition, wait)
	if err != nil {
		return driver.Reply{}, err
	}
	return replyOf(s.c.eval(ctx, req, fairAcquire, 3, all))
}

func (s *fair) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	return s.ask(ctx, req, -1)
}

func (s *fair) Enqueue(ctx context.Context, req driver.Request) (driver.Reply, error) {
	n, w := s.names(req.Name), s.find(req.Acquisition, false)
	first := w == nil && n.waited.Load()
	if first {
		w, _ = s.subscribe(ctx, req.HoldID, false) // after an error Watch tries again
	}
	reply, err := s.ask(ctx, req, millis(s.wait))
	switch {
	case err == nil && reply.Held:
		s.onGrant(req.Acquisition)
		if first {
			n.waited.Store(false)
		}
	case err == nil:
		n.waited.Store(true)
		reply.Listening = w != nil
	case redisport.NothingDone(err):
		s.onGrant(req.Acquisition) // the acquisition may end here
	}
	return reply, err
}

func (s *fair) Leave(ctx context.Context, id driver.HoldID) error {
	if w := s.find(id.Acquisition, false); w != nil {
		w.Close()
	}
	_, err := s.eval(ctx, fairLeave, id.Name, id.Acquisition, s.wait.Milliseconds())
	return err
}

func (s *fair) Lookup(ctx context.Context, req driver.Request) (driver.Reply, error) {
	r, err := s.c.lookup(ctx, req, hashLookup, []any{req.Name}, req.Acquisition)
	if r.Held {
		s.onGrant(req.Acquisition)
	}
	return r, err
}

func (s *fair) Renew(ctx context.Context, holds []driver.HoldID, d time.Duration) ([]bool, error) {
	return s.c.renew(ctx, hashRenew, holds, d, "", func(name string) string { return name }, nil)
}

// ReleaseHeedsDeadline is false for a cluster: a request may first ask for the mode of the cluster.
func (s *fair) ReleaseHeedsDeadline() bool { return !s.c.p.Cluster() }

func (s *fair) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	all, err := s.args(ctx, id.Name, id.Acquisition)
	if err != nil {
		return driver.Released{}, err
	}
	r, err := s.c.p.EvalInTime(ctx, fairRelease, 3, all)
	if err != nil || r == nil {
		return driver.Released{}, err
	}
	return driver.Released{Held: true, Awaited: r == int64(1)}, nil
}

func (s *fair) Break(ctx context.Context, name string) (bool, error) {
	m, err := s.c.mode(ctx)
	if err != nil {
		return false, err
	}
	r, err := s.eval(ctx, fairForce, name)
	return s.c.forced(ctx, m, name, r, err)
}

func (s *fair) Watch(ctx context.Context, id driver.HoldID) (driver.Watch, error) {
	if w := s.find(id.Acquisition, true); w != nil {
		return w, nil
	}
	w, err := s.subscribe(ctx, id, true)
	if err != nil {
		return nil, err
	}
	return w, nil
}
