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

// Redlock gives locks by name that live on several Redis servers which know nothing of each
// other. Who has the lock on more than half of them has it: the algorithm that is known as
// Redlock. [NewRedlock] makes one. It is a [locks.Provider], safe for concurrent use, and ends
// with [Redlock.Close].
type Redlock struct {
	store *majority
	locks *lease.Client
	multi bool // a member is a cluster
}

var _ locks.Provider = (*Redlock)(nil)

// WithNodeTimeout sets for how long one of the servers of [NewRedlock] is waited for that does
// not answer: a tenth of the lease if not given, but at least 100 milliseconds and at most a
// second. It should be much less than the lease.
func WithNodeTimeout(d time.Duration) Option { return func(o *options) { o.node = d } }

// WithRestore has a server of [NewRedlock] be given a lock again that it lacks, at a renewal that
// the majority has confirmed: because it has come back empty, or could not be reached before, or
// a rival had taken it in vain. Without it a server that was restarted stays empty until the next
// acquisition, and a hold gets thinner from failure to failure. With it a lock that somebody has
// deleted on a minority of the servers comes back.
func WithRestore() Option { return func(o *options) { o.restore = true } }

// NewRedlock returns the locks on the servers of clients, each of which is a master of its own:
// no replica, sentinel or cluster may make two of them fail together, or a lock vanish from one.
// Five are usual, three do; a lock survives the failure of any minority. Each client is used, and
// has to be set up, as told at [New]; none of them is closed.
//
// # Course
//
// All servers are asked at once, and the answers awaited until a majority has granted the lock,
// or cannot any more, each server for the node timeout at most ([WithNodeTimeout]). Whoever does
// not get a majority has what it got taken back on all servers, also on those that did not
// answer, and asks again: when it is told of a release by any of the servers, in turn, or, if
// nobody else has the majority either, after a random time that doubles. An acquisition for which
// half of the lease has passed is undone, too.
//
// A renewal counts if a majority has confirmed it, and a hold that a majority denies is lost at
// once. If a majority cannot be reached, the hold is lost at the end of its lease. A renewal
// creates nothing, but for [WithRestore].
//
// The servers keep a lock for a hundredth of the lease and 2 ms longer than the lease. That is
// for their clocks to run faster than the holder's: the holder's validity is the lease, less the
// time that the acquisition took, less [lease.WithMargin].
//
// # What it does not do
//
// There are no fencing tokens: counters on several servers have no common order. If two holders
// at a time are worse than inefficient, take a fenced lock on a store that agrees before it
// answers.
//
// A server that was restarted without what it knew, because it does not write each change to disk
// before it answers (appendonly yes, appendfsync always), can make a majority for a rival while
// the lock is held. Have it stay down for longer than the longest lease then. The first holder
// finds out at its next renewal if the majority denies it its lock.
//
// A server whose clock is set forward frees its locks too early; if that happens to several of
// them at once, the lock has two holders. Let clocks be slewed, not set. The clocks of clients do
// not matter.
//
// # Format
//
// On each server the lock is that of [Client.Mutex], Redisson's RLock, with the same channel: so
// it excludes the members of Redisson's RedissonRedLock and RedissonMultiLock of that name, which
// take them one after the other. A vote that is taken back is not published: who waits for the
// plain lock of that name on one of the servers alone may wait for as long as a lease because of
// it.
//
// [WithReplicas] is refused: what a replica knows does not count here. [WithFairWait] is without
// effect.
func NewRedlock(clients []redis.UniversalClient, opts ...Option) (*Redlock, error) {
	ports := make([]port, len(clients))
	known := make(map[redis.UniversalClient]bool)
	for i, c := range clients {
		p, err := newGoRedis(c)
		if err != nil {
			return nil, fmt.Errorf("redislock: server %d of Redlock: %w", i, err)
		}
		if known[c] {
			return nil, fmt.Errorf("redislock: server %d of Redlock is there twice", i)
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
		return nil, errors.New("redislock: Redlock takes no replicas into account")
	}
	m := &Redlock{store: newMajority(ports, o)}
	for _, p := range ports {
		m.multi = m.multi || p.Cluster()
	}
	var err error
	if m.locks, err = lease.New(m.store, o.lease...); err != nil {
		m.store.close(context.Background())
		return nil, err
	}
	return m, nil
}

// Locker returns the lock called name. It is a [*Mutex].
func (m *Redlock) Locker(name string) locks.TryLocker { return m.Mutex(name) }

// Mutex returns the lock called name. It has no fencing token.
func (m *Redlock) Mutex(name string, opts ...lease.MutexOption) *Mutex {
	return &Mutex{Mutex: m.locks.Mutex(name, opts...), bad: checkName(name, m.multi)}
}

// Close releases all holds, and has all who wait return [locks.ErrClosed]; see
// [lease.Client.Close]. It waits for what is being taken back on servers that do not answer, but
// neither for longer than [lease.DefaultReleaseTimeout] nor after ctx has ended. It closes none
// of the clients. Only the first call does anything.
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
