package redislock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// Redlock gives locks by name that live on several independent Redis servers. A lock is held by
// the client that holds it on more than half of them. The algorithm is known as Redlock.
// [NewRedlock] makes one. It is a [locks.Provider]. It is safe for concurrent use.
// [Redlock.Close] ends it.
type Redlock struct {
	store *majority
	locks *lease.Client
	multi bool // a member is a cluster
}

var _ locks.Provider = (*Redlock)(nil)

// WithNodeTimeout sets how long [NewRedlock]'s locks wait for one server. It should be much less
// than the lease. The default is a tenth of the lease, at least 100 milliseconds and at most a
// second.
func WithNodeTimeout(d time.Duration) Option { return func(o *options) { o.node = d } }

// WithRestore makes a renewal that a majority has confirmed create the lock on servers that lack
// it. A server lacks it after it came back empty, could not be reached, or served a rival that
// got no majority. Without WithRestore such a server lacks the lock until the next acquisition,
// and each further failure weakens the hold. With it, a lock that was deleted on a minority of
// the servers comes back.
func WithRestore() Option { return func(o *options) { o.restore = true } }

// NewRedlock returns the locks on the servers of clients. Each server is an independent master,
// without a replica, sentinel or cluster by which two of them could fail together, or one could
// lose a lock. Five servers are usual, and three are enough. A lock survives the failure of any
// minority. The clients are set up as [New] says. NewRedlock closes none of them.
//
// # Protocol
//
// An acquisition asks all servers at once. It waits until a majority has granted the lock, or
// cannot any more, and for each server at most for the node timeout ([WithNodeTimeout]). Without a
// majority, it frees the lock on all servers, also on those that did not answer. Then it asks
// again, when a server publishes a release or after the poll interval. If no rival has a majority
// either, it asks after a random time that doubles. An acquisition that took half of the lease is
// undone too.
//
// A renewal counts if a majority has confirmed it. A hold that a majority denies is lost at once.
// If no majority can be reached, the hold is lost at the end of its lease. A renewal creates
// nothing, except with [WithRestore].
//
// The servers keep a lock longer than the lease, by a hundredth of it and 2 ms. So their clocks
// may run faster than the holder's. A hold is valid for the lease, less the time that the
// acquisition took, less [lease.WithMargin].
//
// # What it does not do
//
// There are no fencing tokens: counters on several servers have no common order. If two holders
// at a time are worse than inefficient, use a fenced lock of a store that agrees before it
// answers.
//
// A server that restarts without its data can give a rival the majority while the lock is held.
// To keep its data, a server has to write each change to disk before it answers (appendonly yes,
// appendfsync always). Otherwise keep it down for longer than the longest lease. The first holder
// learns at its next renewal if the majority denies its lock.
//
// A server whose clock is set forward frees its locks too early. If that happens to several
// servers at once, the lock has two holders. Let clocks be slewed, not set. The clocks of clients
// do not matter.
//
// # Format
//
// On each server the lock is that of [Client.Mutex], Redisson's RLock, with the same channel. So
// it excludes the members of Redisson's RedissonRedLock and RedissonMultiLock of that name, which
// acquire their members one after the other. An acquisition without a majority frees the lock
// without a message. A waiter of the plain lock on one of the servers may therefore wait for a
// whole lease.
//
// [WithReplicas] is refused, because replicas do not count here. [WithFairWait] has no effect.
func NewRedlock(clients []redis.UniversalClient, opts ...Option) (*Redlock, error) {
	ports := make([]port, len(clients))
	known := make(map[redis.UniversalClient]bool)
	for i, c := range clients {
		p, err := newGoRedis(c)
		if err != nil {
			return nil, fmt.Errorf("redislock: server %d of Redlock: %w", i, err)
		}
		if known[c] {
			return nil, fmt.Errorf("redislock: server %d of Redlock is given twice", i)
		}
		known[c] = true
		ports[i] = p
	}
	return newRedlock(ports, opts)
}

func newRedlock(ports []port, opts []Option) (*Redlock, error) {
	if len(ports) == 0 {
		return nil, errors.New("redislock: Redlock without servers")
	}
	o := options{fairWait: fairWait}
	for _, opt := range opts {
		opt(&o)
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.replicas > 0 {
		return nil, errors.New("redislock: Redlock is refused with WithReplicas")
	}
	m := &Redlock{store: newMajority(ports, o)}
	for _, p := range ports {
		m.multi = m.multi || p.Cluster()
	}
	var err error
	if m.locks, err = lease.New(m.store, o.leaseOptions()...); err != nil {
		m.store.close(context.Background())
		return nil, err
	}
	return m, nil
}

// Locker returns the lock called name. It is a [*Mutex].
func (m *Redlock) Locker(name string) locks.TryLocker { return m.Mutex(name) }

// Mutex returns the lock called name. It has no fencing token.
func (m *Redlock) Mutex(name string, opts ...lease.MutexOption) *Mutex {
	opts = append([]lease.MutexOption{lease.WithRefusal(checkName(name, m.multi))}, opts...)
	return &Mutex{m.locks.Mutex(name, opts...)}
}

// Close releases all holds, and makes all waiters return [locks.ErrClosed]. See
// [lease.Client.Close]. It waits for servers that do not answer until ctx ends, and for
// [lease.DefaultReleaseTimeout] at most. It closes none of the clients. Only the first call does
// anything.
func (m *Redlock) Close(ctx context.Context) error {
	err := m.locks.Close(ctx)
	m.store.close(ctx)
	return err
}

// close ends what runs in the background.
func (m *majority) close(ctx context.Context) {
	m.closing.Do(func() {
		m.mu.Lock()
		idle := make(chan struct{})
		if m.jobs == 0 {
			close(idle)
		} else {
			m.idle = idle
		}
		m.mu.Unlock()
		select {
		case <-idle:
		case <-ctx.Done():
		case <-time.After(lease.DefaultReleaseTimeout):
		}
		m.end()
		var hubs sync.WaitGroup
		for _, node := range m.nodes {
			hubs.Go(func() { node.c.hub.close(ctx) })
		}
		hubs.Wait()
	})
}
