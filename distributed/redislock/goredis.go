package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks/distributed/redislock/internal/driver"
)

// goRedis is the port over go-redis.
type goRedis struct {
	c     redis.UniversalClient
	cc    *redis.ClusterClient // c, if it is one
	known sync.Map             // the scripts that the server has seen, with their hashes; in a cluster, one server
	heeds bool                 // c ends a request with its context
	alone atomic.Bool          // the server is not one of a cluster
}

func newGoRedis(c redis.UniversalClient) (*goRedis, error) {
	none := errors.New("redislock: nil client")
	switch c := c.(type) {
	case nil:
		return nil, none
	case *redis.Client:
		if c == nil {
			return nil, none
		}
	case *redis.Ring:
		return nil, errors.New("redislock: a Ring is refused, it moves keys to other servers when one is down")
	case *redis.AutoPipeliner:
		return nil, errors.New("redislock: an AutoPipeliner is refused, it defers requests: pass its client")
	case *redis.ClusterClient:
		if c == nil {
			return nil, none
		}
		return &goRedis{c: c, cc: c, heeds: c.Options().ContextTimeoutEnabled}, nil
	}
	one, ok := c.(*redis.Client)
	g := &goRedis{c: c, heeds: ok && one.Options().ContextTimeoutEnabled}
	g.alone.Store(ok) // otherwise its redirections tell
	return g, nil
}

// ask returns an error if c is no client of go-redis itself, and its server is one of a cluster. A
// wrapper of a ClusterClient hides what locks need of it.
func (g *goRedis) ask(ctx context.Context) error {
	if g.cc != nil || g.alone.Load() {
		return nil
	}
	hello := redis.NewMapStringInterfaceCmd(ctx, "hello")
	err := g.c.Process(ctx, hello)
	if hello.Val()["mode"] == "cluster" {
		return driver.Never(fmt.Errorf("a %T is refused: %w", g.c, driver.ErrCluster))
	}
	var reply redis.Error // of a server that does not know the command, or refuses it
	g.alone.Store(err == nil || errors.As(err, &reply))
	return nil
}

// once is a command that go-redis does not repeat when it may have reached the server, whatever
// MaxRetries is.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

func (g *goRedis) do(ctx context.Context, firstKey int8, args []any) (any, error) {
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(firstKey)
	g.c.Process(ctx, once{cmd})
	r, err := cmd.Result()
	if err == redis.Nil {
		return nil, nil
	}
	return r, err
}

func (g *goRedis) Eval(ctx context.Context, s *script, keys int, all []any) (any, error) {
	if g.patient(ctx) {
		return g.eval(ctx, s, keys, all) // without the memory of a closure
	}
	return g.limited(ctx, func() (any, error) { return g.eval(ctx, s, keys, all) })
}

// patient reports whether a request may take as long as the client lets it.
func (g *goRedis) patient(ctx context.Context) bool {
	_, limited := ctx.Deadline()
	return g.heeds || !limited
}

// limited returns what f does, which sends a request, or the cause of ctx when that ends.
func (g *goRedis) limited(ctx context.Context, f func() (any, error)) (any, error) {
	if g.patient(ctx) {
		return f()
	}
	// The client waits for its ReadTimeout, however long that is. The caller does not.
	type outcome struct {
		r   any
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		r, err := f()
		done <- outcome{r, err}
	}()
	select {
	case o := <-done:
		return o.r, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (g *goRedis) eval(ctx context.Context, s *script, keys int, all []any) (any, error) {
	if err := g.ask(ctx); err != nil {
		return nil, err
	}
	all[2] = keys
	if sha, known := g.known.Load(s); known {
		all[0], all[1] = "evalsha", sha
	} else {
		all[0], all[1] = "eval", s.Src // one round trip, where the hash alone might take two
	}
	r, err := g.do(ctx, head, all)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		all[0], all[1] = "eval", s.Src
		r, err = g.do(ctx, head, all)
	}
	if err == nil && all[0] == "eval" {
		g.known.Store(s, s.SHA)
	}
	if err != nil {
		err = g.failed(ctx, err)
	}
	return r, err
}

// failed returns what the error of a request means. If a server of a cluster does not answer, it
// makes the client look for a new master. The client itself does that only when it repeats a
// request, or once a minute.
func (g *goRedis) failed(ctx context.Context, err error) error {
	var reply redis.Error
	if g.cc != nil && !errors.As(err, &reply) {
		g.cc.ReloadState(ctx) // in the background
	}
	var dial *net.OpError
	switch {
	case errors.Is(err, redis.ErrClosed): // by its user, for good
		return driver.Never(err)
	case errors.As(err, &dial) && dial.Op == "dial":
		return driver.Unreachable(err)
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return driver.Unavailable(err)
	case !errors.As(err, &reply):
		return err
	}
	return driver.Refused(reply.Error(), g.Cluster(), err)
}

func (g *goRedis) Cluster() bool { return g.cc != nil }

func (g *goRedis) Shards(ctx context.Context) (bool, error) {
	_, err := g.c.PubSubShardNumSub(ctx).Result()
	var reply redis.Error
	if errors.As(err, &reply) {
		return false, nil
	}
	return err == nil, err
}

func (g *goRedis) Subscribers(ctx context.Context, sharded bool, channel string) (int64, error) {
	count := g.c.PubSubNumSub
	switch {
	case sharded && g.cc != nil:
		node, err := g.cc.MasterForKey(ctx, channel)
		if err != nil {
			return 0, err
		}
		count = node.PubSubShardNumSub
	case sharded:
		count = g.c.PubSubShardNumSub
	}
	r, err := g.limited(ctx, func() (any, error) { return count(ctx, channel).Result() })
	n, _ := r.(map[string]int64)
	return n[channel], err
}

func (g *goRedis) Home(ctx context.Context, channel string) (string, error) {
	if g.cc == nil {
		return "", nil
	}
	node, err := g.cc.MasterForKey(ctx, channel)
	if err != nil {
		return "", err
	}
	return node.Options().Addr, nil
}

func (g *goRedis) Subscriber(ctx context.Context, sharded bool, channel string) (subscriber, error) {
	if !sharded {
		return &goSubscriber{ps: g.c.Subscribe(ctx)}, nil
	}
	if g.cc == nil {
		return &goSubscriber{ps: g.c.SSubscribe(ctx), sharded: true}, nil
	}
	node, err := g.cc.MasterForKey(ctx, channel)
	if err != nil {
		return nil, err
	}
	return &goSubscriber{ps: node.SSubscribe(ctx), sharded: true}, nil
}

type goSubscriber struct {
	ps      *redis.PubSub
	sharded bool
}

func (s *goSubscriber) Subscribe(ctx context.Context, channels ...string) error {
	if s.sharded {
		for _, channel := range channels { // those of one request have to be in one slot
			if err := s.ps.SSubscribe(ctx, channel); err != nil {
				return err
			}
		}
		return nil
	}
	return s.ps.Subscribe(ctx, channels...)
}

func (s *goSubscriber) Unsubscribe(ctx context.Context, channels ...string) error {
	if s.sharded {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var failed error
		for _, channel := range channels {
			if err := s.ps.SUnsubscribe(ctx, channel); err != nil {
				failed = err
				cancel() // so that the client forgets the other channels too, without requests
			}
		}
		return failed
	}
	return s.ps.Unsubscribe(ctx, channels...)
}

func (s *goSubscriber) Ping(ctx context.Context) error { return s.ps.Ping(ctx) }

func (s *goSubscriber) Receive(ctx context.Context) (event, error) {
	m, err := s.ps.Receive(ctx)
	if err != nil {
		var reply redis.Error
		if errors.As(err, &reply) {
			err = driver.Never(err)
		}
		return event{}, err
	}
	switch m := m.(type) {
	case *redis.Message:
		return event{Kind: driver.Message, Channel: m.Channel, Payload: m.Payload}, nil
	case *redis.Subscription:
		if strings.HasSuffix(m.Kind, "unsubscribe") {
			return event{Kind: driver.Unsubscribed, Channel: m.Channel}, nil
		}
		return event{Kind: driver.Subscribed, Channel: m.Channel}, nil
	}
	return event{}, nil
}

func (s *goSubscriber) Close() error { return s.ps.Close() }
