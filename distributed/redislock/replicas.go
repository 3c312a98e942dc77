package redislock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock/internal/driver"
)

// ErrNotReplicated is matched by the errors of acquisitions that were undone because fewer
// replicas acknowledged them than [WithReplicas] demands.
var ErrNotReplicated = errors.New("too few replicas have acknowledged the lock")

// WithReplicas makes an acquisition count only if n or more replicas of the master have
// acknowledged it within timeout. That is a WAIT on the connection of the acquisition. Such a
// lock survives the failure of the master if one of these replicas takes its place.
//
// If too few replicas acknowledge it, the lock is released. TryLockContext returns an error
// matching [ErrNotReplicated]. LockContext tries again until its context ends. Its error matches
// ErrNotReplicated then. A waiter of a fair lock has lost its place in the queue.
//
// The choice of the new master matters: it may be another replica, which has not heard of the
// lock. Renewals and releases do not wait for replicas. After a failure, the lock may so last
// shorter or longer by a lease. The holder learns that at its next renewal.
//
// timeout has to be less than client's ReadTimeout. More than half of the lease counts as half of
// the lease. Each acquisition costs one more round trip to a replica. If replicas are missing, it
// costs the timeout.
func WithReplicas(n int, timeout time.Duration) Option {
	return func(o *options) { o.replicas, o.sync = n, timeout }
}

// checkSync returns why client cannot wait for replicas.
func checkSync(client redis.UniversalClient, o *options) error {
	var read time.Duration
	switch c := client.(type) {
	case *redis.Client:
		read = c.Options().ReadTimeout
	case *redis.ClusterClient:
		read = c.Options().ReadTimeout
	}
	if o.replicas > 0 && read > 0 && o.sync >= read {
		return fmt.Errorf("redislock: acknowledgement by replicas within %v, less than the ReadTimeout %v is allowed",
			o.sync, read)
	}
	return nil
}

// acks is the Data of a request that replicas have to acknowledge. The reply of WAIT goes to n.
type acks struct {
	want    int
	timeout time.Duration
	n       int
}

// isProvisional reports whether the acquisition of req counts only if replicas acknowledge it.
func isProvisional(req lease.Request) bool {
	_, ok := req.Data.(*acks)
	return ok
}

// ask is Eval for req, with a WAIT after it if replicas have to acknowledge req.
func (c *core) ask(ctx context.Context, req lease.Request, s *script, keys int, args []any) (any, error) {
	a, ok := req.Data.(*acks)
	if !ok {
		return c.p.Eval(ctx, s, keys, args)
	}
	r, n, err := c.p.EvalSync(ctx, s, keys, args, a.want, a.timeout)
	a.n = n
	return r, err
}

// acked is a store of locks whose acquisitions replicas have to acknowledge.
type acked struct {
	store
	n       int
	timeout time.Duration
}

// ackedQueue is acked for stores with queues. A waiter that releases a lock because replicas are
// missing waits on, with the watch that it has. won is called when it has the lock for good.
type ackedQueue struct {
	acked
	lease.Queue
	won func(acquisition string)
}

var (
	_ store       = acked{}
	_ store       = ackedQueue{}
	_ lease.Queue = ackedQueue{}
)

// withReplicas returns s, or a store that has its acquisitions acknowledged if o says so.
func withReplicas(s store, o *options) store {
	if o.replicas == 0 {
		return s
	}
	a := acked{s, o.replicas, o.sync}
	switch q := s.(type) {
	case *waiting:
		return ackedQueue{a, q, q.end}
	case lease.Queue:
		return ackedQueue{a, q, func(string) {}}
	}
	return a
}

// asking returns req with the acks that its outcome depends on.
func (s acked) asking(req lease.Request) (lease.Request, *acks) {
	got := &acks{want: s.n, timeout: min(s.timeout, req.TTL/2)} // half of the lease is left for the holder
	req.Data = got
	return req, got
}

func (s acked) Acquire(ctx context.Context, req lease.Request) (lease.Reply, error) {
	return s.settle(ctx, req, s.store.Acquire)
}

func (s ackedQueue) Enqueue(ctx context.Context, req lease.Request) (lease.Reply, error) {
	r, err := s.settle(ctx, req, s.Queue.Enqueue)
	if err == nil && r.Held {
		s.won(req.Acquisition)
	}
	return r, err
}

// settle requests the lock, and releases it if too few replicas acknowledge that.
func (s acked) settle(ctx context.Context, req lease.Request,
	ask func(context.Context, lease.Request) (lease.Reply, error),
) (lease.Reply, error) {
	req, got := s.asking(req)
	r, err := ask(ctx, req)
	if err != nil || !r.Held || got.n >= s.n {
		return r, err
	}
	if _, err := s.Release(ctx, req.HoldID); err != nil {
		return lease.Reply{}, err // of the release: the outcome is unknown, and Lookup follows
	}
	return lease.Reply{
		Wait:   20*time.Millisecond + rand.N(80*time.Millisecond),
		Reason: fmt.Errorf("%w: %d of %d", ErrNotReplicated, got.n, s.n),
	}, nil
}

// Lookup releases the lock if too few replicas have it. WAIT counts only the writes of its own
// connection. So the scripts that look a hold up write something, which comes after the
// acquisition on all replicas.
func (s acked) Lookup(ctx context.Context, req lease.Request) (lease.Reply, error) {
	req, got := s.asking(req)
	r, err := s.store.Lookup(ctx, req)
	if err != nil || !r.Held || got.n >= s.n {
		return r, err
	}
	_, err = s.Release(ctx, req.HoldID)
	return lease.Reply{}, err
}

func (s ackedQueue) Lookup(ctx context.Context, req lease.Request) (lease.Reply, error) {
	r, err := s.acked.Lookup(ctx, req)
	if err == nil && r.Held {
		s.won(req.Acquisition)
	}
	return r, err
}

// EvalSync is Eval, followed by WAIT on the same connection.
func (g *goRedis) EvalSync(
	ctx context.Context, s *script, keys int, all []any, n int, timeout time.Duration,
) (any, int, error) {
	if err := g.ask(ctx); err != nil {
		return nil, 0, err
	}
	all[2] = keys
	for try := 0; ; try++ {
		if sha, known := g.known.Load(s); known {
			all[0], all[1] = "evalsha", sha
		} else {
			all[0], all[1] = "eval", s.Src
		}
		node := g.c
		if g.cc != nil {
			// The cluster's own pipeline would send the WAIT, which has no key, to any server.
			master, err := g.cc.MasterForKey(ctx, driver.Text(all[head]))
			if err != nil {
				return nil, 0, err
			}
			node = master
		}
		pipe := node.Pipeline()
		cmd := redis.NewCmd(ctx, all...)
		cmd.SetFirstKeyPos(head)
		pipe.Process(ctx, once{cmd})
		wait := redis.NewIntCmd(ctx, "wait", n, millis(timeout))
		pipe.Process(ctx, wait)
		pipe.Exec(ctx) // its error is that of cmd or wait
		r, err := cmd.Result()
		switch {
		case err == redis.Nil:
			err = nil
		case err == nil:
		case redis.HasErrorPrefix(err, "NOSCRIPT") && try < 3:
			g.known.Delete(s)
			continue
		case redis.HasErrorPrefix(err, "MOVED") && g.cc != nil && try < 3:
			g.cc.ReloadState(ctx) // in the background
			select {
			case <-time.After(20 * time.Millisecond << try):
			case <-ctx.Done():
			}
			continue
		}
		if err != nil {
			return nil, 0, g.failed(ctx, err)
		}
		g.known.Store(s, s.SHA)
		return r, int(wait.Val()), nil // 0 if it has failed
	}
}
