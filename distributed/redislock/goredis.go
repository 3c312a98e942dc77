package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
)

// goRedis is the port over go-redis.
type goRedis struct {
	c     redis.UniversalClient
	cc    *redis.ClusterClient // c, if it is one
	known sync.Map             // the scripts that the server has seen; in a cluster one of them
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
		return nil, errors.New("redislock: a Ring moves keys to other servers when one is down, and so cannot exclude anybody")
	case *redis.AutoPipeliner:
		return nil, errors.New("redislock: an AutoPipeliner defers requests: give the client below it")
	case *redis.ClusterClient:
		if c == nil {
			return nil, none
		}
		return &goRedis{c: c, cc: c}, nil
	}
	return &goRedis{c: c}, nil
}

// once is a command that go-redis does not repeat, whatever its MaxRetries says, once it may have reached the
// server.
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

func (g *goRedis) eval(ctx context.Context, s *script, keys int, all []any) (any, error) {
	all[2] = keys
	if _, known := g.known.Load(s); known {
		all[0], all[1] = "evalsha", s.sha
	} else {
		all[0], all[1] = "eval", s.src // one round trip, where the hash alone might take two
	}
	r, err := g.do(ctx, head, all)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		all[0], all[1] = "eval", s.src
		r, err = g.do(ctx, head, all)
	}
	if err == nil && all[0] == "eval" {
		g.known.Store(s, nil)
	}
	if err != nil {
		err = g.failed(ctx, err)
	}
	return r, err
}

// failed returns what the error of a request means. A cluster's client that may not repeat a request does not ask by itself whether
// another server has taken the place of one that does not answer, but for once a minute.
func (g *goRedis) failed(ctx context.Context, err error) error {
	var reply redis.Error
	if g.cc != nil && !errors.As(err, &reply) {
		g.cc.ReloadState(ctx) // in the background
	}
	return classify(err)
}

// classify tells what was surely not carried out from what is unknown.
func classify(err error) error {
	var reply redis.Error
	var dial *net.OpError
	switch {
	case errors.Is(err, redis.ErrClosed): // by its user: nothing will change that
		return fmt.Errorf("%w: %w", lease.ErrRefused, err)
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted), errors.As(err, &dial) && dial.Op == "dial":
		return fmt.Errorf("%w: %w: %w", lease.ErrRefused, lease.ErrUnavailable, err)
	case !errors.As(err, &reply):
		return err
	}
	text := reply.Error()
	if strings.Contains(text, "WRONGTYPE") || strings.HasPrefix(text, "FOREIGN") || strings.Contains(text, "is not an integer") {
		return fmt.Errorf("%w: %w", locks.ErrForeign, err)
	}
	for _, prefix := range passing {
		if strings.HasPrefix(text, prefix) {
			return fmt.Errorf("%w: %w: %w", lease.ErrRefused, lease.ErrUnavailable, err)
		}
	}
	return fmt.Errorf("%w: %w", lease.ErrRefused, err)
}

// passing are the beginnings of error replies that have to do with the state of a server, not with the request: it loads its
// data, runs a long script, is a replica since a moment ago, or its cluster is about to heal.
var passing = []string{
	"LOADING ", "BUSY ", "READONLY ", "MASTERDOWN ", "CLUSTERDOWN ", "TRYAGAIN ", "NOREPLICAS ", "ERR max number of clients reached",
}

func (g *goRedis) cluster() bool { return g.cc != nil }

func (g *goRedis) shards(ctx context.Context) (bool, error) {
	_, err := g.c.PubSubShardNumSub(ctx).Result()
	var reply redis.Error
	if errors.As(err, &reply) {
		return false, nil
	}
	return err == nil, err
}

func (g *goRedis) home(ctx context.Context, channel string) (string, error) {
	if g.cc == nil {
		return "", nil
	}
	node, err := g.cc.MasterForKey(ctx, channel)
	if err != nil {
		return "", err
	}
	return node.Options().Addr, nil
}

func (g *goRedis) subscriber(ctx context.Context, sharded bool, channel string) (subscriber, error) {
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
		return s.ps.SSubscribe(ctx, channels...)
	}
	return s.ps.Subscribe(ctx, channels...)
}

func (s *goSubscriber) Unsubscribe(ctx context.Context, channels ...string) error {
	if s.sharded {
		return s.ps.SUnsubscribe(ctx, channels...)
	}
	return s.ps.Unsubscribe(ctx, channels...)
}

func (s *goSubscriber) Ping(ctx context.Context) error { return s.ps.Ping(ctx) }

func (s *goSubscriber) Receive(ctx context.Context) (event, error) {
	m, err := s.ps.Receive(ctx)
	if err != nil {
		var reply redis.Error
		if errors.As(err, &reply) {
			err = fmt.Errorf("%w: %w", lease.ErrRefused, err)
		}
		return event{}, err
	}
	switch m := m.(type) {
	case *redis.Message:
		return event{message, m.Channel, m.Payload}, nil
	case *redis.Subscription:
		if strings.HasSuffix(m.Kind, "unsubscribe") {
			return event{kind: unsubscribed, channel: m.Channel}, nil
		}
		return event{kind: subscribed, channel: m.Channel}, nil
	}
	return event{}, nil
}

func (s *goSubscriber) Close() error { return s.ps.Close() }
