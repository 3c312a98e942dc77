package redislock

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/distributed/lease"
)

// core is what the stores of one client share.
type core struct {
	p      port
	hub    *hub
	pubsub PubSub
	auto   atomic.Int32 // what Auto has come to: a mode, or 0
}

// mode is by which kinds of channel a release is told.
type mode int32

const (
	classic mode = iota + 1
	sharded
	both
)

func (c *core) mode(ctx context.Context) (mode, error) {
	switch {
	case c.pubsub == Sharded:
		return sharded, nil
	case c.pubsub == Both:
		return both, nil
	case c.pubsub == Classic || !c.p.cluster():
		return classic, nil
	}
	if m := mode(c.auto.Load()); m != 0 {
		return m, nil
	}
	ok, err := c.p.shards(ctx)
	if err != nil {
		return 0, err
	}
	m := classic
	if ok {
		m = sharded
	}
	c.auto.Store(int32(m))
	return m, nil
}

func (c *core) watch(ctx context.Context, channel string) (lease.Watch, error) {
	m, err := c.mode(ctx)
	if err != nil {
		return nil, err
	}
	return c.hub.watch(ctx, channel, m)
}

// released reads the reply to a release: how many heard of it on channel, or nil.
func (c *core) released(r any, err error, channel string) (lease.Released, error) {
	if err != nil || r == nil {
		return lease.Released{}, err
	}
	heard, ok := r.(int64)
	if !ok {
		return lease.Released{}, unexpected(r)
	}
	// In a cluster a server counts its own subscribers only.
	awaited := c.p.cluster() || heard > 0 && heard > c.hub.receivers(channel)
	return lease.Released{Held: true, Awaited: awaited}, nil
}

// renew runs a script of renewal: once, or in a cluster for each slot, where all keys of a request have to be in one.
func (c *core) renew(ctx context.Context, s *script, holds []lease.Ref, d time.Duration) ([]bool, error) {
	held := make([]bool, len(holds))
	if !c.p.cluster() {
		return held, c.renewSome(ctx, s, holds, nil, d, held)
	}
	slots := make(map[uint16][]int)
	for i, h := range holds {
		n := slot(h.Name)
		slots[n] = append(slots[n], i)
	}
	errs := make(chan error, len(slots))
	for _, which := range slots {
		go func() { errs <- c.renewSome(ctx, s, holds, which, d, held) }()
	}
	var failed error
	for range slots {
		if err := <-errs; err != nil {
			failed = err
		}
	}
	return held, failed
}

// renewSome renews those of holds that which names, or all without it, and sets their places in held.
func (c *core) renewSome(ctx context.Context, s *script, holds []lease.Ref, which []int, d time.Duration, held []bool) error {
	if which == nil {
		which = make([]int, len(holds))
		for i := range which {
			which[i] = i
		}
	}
	args := make([]any, head, head+2*len(which)+1)
	for _, i := range which {
		args = append(args, holds[i].Name)
	}
	args = append(args, millis(d))
	for _, i := range which {
		args = append(args, holds[i].Owner)
	}
	r, err := c.p.eval(ctx, s, len(which), args)
	if err != nil {
		return err
	}
	list, ok := r.([]any)
	if !ok || len(list) != len(which) {
		return unexpected(r)
	}
	for k, i := range which {
		held[i] = list[k] == int64(1)
	}
	return nil
}
