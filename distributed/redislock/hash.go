package redislock

import (
	"context"
	"fmt"
	"time"

	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// The state of a plain lock, Redisson's RLock, is a hash under its name. Its one field is the
// holder, and the value is the number of holds. Its time to live is the lease.
//
// A fenced lock, Redisson's RFencedLock, also has a counter, which never expires. Every
// acquisition makes it larger.

// single has the requests of locks with one key, or a few. Package redlock uses it without waiters.
type single struct {
	self
	c                               *core
	acquire, lookup, renew, release *script
	enqueue, leave                  *script // of waiters, see waiting
	inspect, force                  *script
	prefix                          string                                // of the key, if that is not the name
	channel                         string                                // the prefix of the channel
	token                           string                                // the prefix of the counter, if there is one
	list                            string                                // the prefix of the list of waiters
	forcedMessage                   any                                   // of a forced unlock: a string
	entrySuffix                     string                                // of acquisitions
	readersKey                      func(name string) string              // the prefix of all holds of readers, or nil
	readKey                         func(name, acquisition string) string // the key of a reader's hold, or nil
	renewKey                        func(name, acquisition string) string // another key of a renewal, or nil
	weighs                          bool                                  // it is a semaphore
	cache                           nameCache
}

func newPlain(c *core) *single {
	return &single{
		c:             c,
		acquire:       hashAcquire,
		enqueue:       waitAcquire,
		lookup:        hashLookup,
		renew:         hashRenew,
		release:       waitRelease,
		leave:         waitLeave,
		inspect:       hashInspect,
		force:         hashForce,
		channel:       "redisson_lock__channel",
		list:          waitingList,
		forcedMessage: wakeOne,
	}
}

func newFenced(c *core) *single {
	s := newPlain(c)
	s.token = "redisson_lock_token"
	return s
}

// names returns the keys and channels of the lock called name.
func (s *single) names(name string) *names {
	return s.cache.of(name, func(name string) *names {
		n := &names{name: name, key: s.key(name), channel: addPrefix(s.channel, name), list: addPrefix(s.list, name)}
		n.own = n.list + ":" + s.client
		if s.token != "" {
			n.token = addPrefix(s.token, name)
		}
		if s.readersKey != nil {
			n.readersKey = s.readersKey(name)
		}
		return n
	})
}

// key returns the key of the lock called name.
func (s *single) key(name string) string {
	if s.prefix == "" {
		return name
	}
	return addPrefix(s.prefix, name)
}

func (s *single) Acquire(ctx context.Context, req driver.Request) (driver.Reply, error) {
	return replyOf(s.ask(ctx, req, s.acquire, ""))
}

// ask runs a script that acquires. how, if not empty, is how a waiter requests. In that case the
// script also gets how and the list of waiters.
func (s *single) ask(ctx context.Context, req driver.Request, sc *script, how string) (any, error) {
	n, r := s.names(req.Name), newRequest(req.Acquisition+s.entrySuffix, req.TTL)
	r.args = append(r.args, &n.key)
	if s.readKey != nil {
		r.args = append(r.args, s.readKey(req.Name, req.Acquisition))
	}
	if how != "" {
		r.args = append(r.args, &n.list)
	}
	if s.token != "" {
		r.args = append(r.args, &n.token)
	}
	keys := len(r.args) - head
	r.args = append(r.args, &r.millis, &r.acquisition)
	if s.readKey != nil {
		r.args = append(r.args, writerOf(req))
	}
	if s.weighs {
		permits, size := req.Weigh()
		r.args = append(r.args, permits, size)
	}
	if how != "" {
		r.args = append(r.args, how)
	}
	reply, err := s.c.eval(ctx, req, sc, keys, r.args)
	r.recycle(err)
	return reply, err
}

// replyOf reads the reply to a request for a lock: a token, or a list with the time to live.
func replyOf(r any, err error) (driver.Reply, error) {
	if err != nil {
		return driver.Reply{}, err
	}
	switch r := r.(type) {
	case int64:
		return driver.Reply{Held: true, Token: uint64(max(r, 0))}, nil
	case []any:
		if len(r) == 1 {
			if ttl, ok := r[0].(int64); ok {
				// A key without a time to live has -1. A key with 0 exists, and is gone a
				// millisecond later.
				return driver.Reply{Wait: time.Duration(max(ttl+1, 0)) * time.Millisecond}, nil
			}
		}
	}
	return driver.Reply{}, replyError(r)
}

func replyError(r any) error { return fmt.Errorf("unexpected reply of type %T", r) }

func (s *single) Lookup(ctx context.Context, req driver.Request) (driver.Reply, error) {
	keys := []any{s.key(req.Name)}
	if s.token != "" {
		keys = append(keys, addPrefix(s.token, req.Name))
	}
	return s.c.lookup(ctx, req, s.lookup, keys, req.Acquisition+s.entrySuffix)
}

// lookup asks whether acquisition has the lock of keys.
func (c *core) lookup(
	ctx context.Context, req driver.Request, sc *script, keys []any, acquisition string) (driver.Reply, error) {
	args := append(append(make([]any, head), keys...), acquisition)
	if _, ok := req.Data.(redisport.Evaluator); ok {
		args = append(args, 1)
	}
	r, err := c.eval(ctx, req, sc, len(keys), args)
	if err == nil && r == nil {
		return driver.Reply{}, nil
	}
	return replyOf(r, err)
}

func (s *single) Renew(ctx context.Context, holds []driver.HoldID, d time.Duration) ([]bool, error) {
	return s.c.renew(ctx, s.renew, holds, d, s.entrySuffix, s.key, s.renewKey)
}

// ReleaseHeedsDeadline is false for a cluster: a request may first ask for the mode of the cluster.
func (s *single) ReleaseHeedsDeadline() bool { return !s.c.p.Cluster() }

func (s *single) Release(ctx context.Context, id driver.HoldID) (driver.Released, error) {
	m, err := s.c.mode(ctx)
	if err != nil {
		return driver.Released{}, err
	}
	n, r := s.names(id.Name), newRequest(id.Acquisition+s.entrySuffix, 0)
	r.args = append(r.args, &n.key, &n.channel, &n.list)
	if s.readersKey != nil {
		r.args = append(r.args, &n.readersKey)
	}
	if s.readKey != nil {
		r.args = append(r.args, s.readKey(id.Name, id.Acquisition))
	}
	keys := len(r.args) - head
	r.args = m.publish(append(r.args, &r.acquisition, s.c.counts()))
	reply, err := s.c.p.EvalInTime(ctx, s.release, keys, r.args)
	r.recycle(err)
	if reply == int64(-1) {
		return driver.Released{Held: true, Awaited: true}, err
	}
	return s.c.releaseReply(reply, err, n.channel)
}

func (s *single) Break(ctx context.Context, name string) (bool, error) {
	readersKey := name
	if s.readersKey != nil {
		readersKey = s.readersKey(name)
	}
	return s.c.force(ctx, s.force, name, s.key(name), addPrefix(s.channel, name), readersKey, s.forcedMessage)
}
