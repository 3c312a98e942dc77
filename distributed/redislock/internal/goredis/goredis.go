// Package goredis is the [redisport.Port] over go-redis.
package goredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// port is the [redisport.Port] over go-redis.
type port struct {
	c     redis.UniversalClient
	cc    *redis.ClusterClient // c, if it is one
	one   *redis.Client        // c, if it is one
	known sync.Map             // the scripts that the server has seen, with their hashes; in a cluster, one server
	heeds bool                 // c ends a request with its context
	alone atomic.Bool          // the server is not one of a cluster

	copied atomic.Pointer[copied] // see punctual
}

// Carrier is a client that carries a Port of another client library through the functions New and
// NewGate of packages redislock and redlock. A Carrier itself contains no client of go-redis.
type Carrier struct {
	redis.UniversalClient
	Port redisport.Port
}

// New returns a Port of c, unless c is of a kind that cannot be one.
func New(c redis.UniversalClient) (redisport.Port, error) {
	none := errors.New("nil client")
	switch c := c.(type) {
	case nil:
		return nil, none
	case *Carrier:
		return c.Port, nil
	case *redis.Client:
		if c == nil {
			return nil, none
		}
	case *redis.Ring:
		return nil, errors.New("a Ring is refused, it moves keys to other servers when one is down")
	case *redis.AutoPipeliner:
		return nil, errors.New("an AutoPipeliner is refused, it defers requests: pass its client")
	case *redis.ClusterClient:
		if c == nil {
			return nil, none
		}
		return &port{c: c, cc: c, heeds: c.Options().ContextTimeoutEnabled}, nil
	}
	one, _ := c.(*redis.Client)
	p := &port{c: c, one: one, heeds: one != nil && one.Options().ContextTimeoutEnabled}
	p.alone.Store(one != nil) // otherwise its redirections tell
	return p, nil
}

// ask returns an error if c is not a client of go-redis itself, and its server belongs to a
// cluster. A wrapper of a ClusterClient hides the methods that locks need.
func (p *port) ask(ctx context.Context) error {
	if p.cc != nil || p.alone.Load() {
		return nil
	}
	hello := redis.NewMapStringInterfaceCmd(ctx, "hello")
	err := p.c.Process(ctx, hello)
	if hello.Val()["mode"] == "cluster" {
		return redisport.Never(fmt.Errorf("a %T is refused: %w", p.c, redisport.ErrCluster))
	}
	var reply redis.Error // of a server that does not know the command, or refuses it
	p.alone.Store(err == nil || errors.As(err, &reply))
	return nil
}

// once is a command that go-redis does not repeat when it may have reached the server, whatever
// MaxRetries is.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// sender is a client of go-redis, or a copy of it.
type sender interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

func do(ctx context.Context, c sender, firstKey int8, args []any) (any, error) {
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(firstKey)
	c.Process(ctx, once{cmd})
	r, err := cmd.Result()
	if err == redis.Nil {
		return nil, nil
	}
	return r, err
}

func (p *port) Eval(ctx context.Context, s *redisport.Script, keys int, all []any) (any, error) {
	if p.patient(ctx) {
		return p.eval(ctx, p.c, s, keys, all) // without the memory of a closure
	}
	return p.waitUntil(ctx, func() (any, error) { return p.eval(ctx, p.c, s, keys, all) })
}

func (p *port) EvalInTime(ctx context.Context, s *redisport.Script, keys int, all []any) (any, error) {
	if p.endless() {
		return apart(ctx, func() (any, error) { return p.eval(ctx, p.c, s, keys, all) })
	}
	if c := p.punctual(); c != nil && !p.heeds {
		return p.eval(ctx, c, s, keys, all)
	}
	return p.Eval(ctx, s, keys, all)
}

// endless reports whether requests of c wait for ever, whatever their contexts say: a timeout of -2
// tells go-redis to set none.
func (p *port) endless() bool {
	return p.one != nil && (p.one.Options().ReadTimeout < 0 || p.one.Options().WriteTimeout < 0)
}

// copied is a copy of a client that ends requests at the deadlines of their contexts. It has the
// client's connections.
type copied struct {
	*redis.Client
	made time.Time
}

// punctual returns such a copy of c, or nil if c cannot be copied. It makes another copy each
// second, because a copy lacks the hooks that c gets later.
func (p *port) punctual() *copied {
	if p.one == nil {
		return nil
	}
	now := time.Now()
	c := p.copied.Load()
	if c != nil && now.Sub(c.made) < time.Second {
		return c
	}
	own := p.one.Options()
	c = &copied{p.one.WithTimeout(own.ReadTimeout), now}
	opts := c.Options()
	if opts == own {
		return nil // they are not to be changed
	}
	opts.WriteTimeout, opts.ContextTimeoutEnabled = own.WriteTimeout, true
	p.copied.Store(c)
	return c
}

// patient reports whether a request may take as long as the client lets it.
func (p *port) patient(ctx context.Context) bool {
	_, limited := ctx.Deadline()
	return p.heeds || !limited
}

// waitUntil returns the result of f, which sends a request, or the cause of ctx when ctx ends.
func (p *port) waitUntil(ctx context.Context, f func() (any, error)) (any, error) {
	if p.patient(ctx) {
		return f()
	}
	return apart(ctx, f)
}

// apart runs f in another goroutine. The client waits for its ReadTimeout, and the caller does not.
func apart(ctx context.Context, f func() (any, error)) (any, error) {
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

func (p *port) eval(ctx context.Context, c sender, s *redisport.Script, keys int, all []any) (any, error) {
	if err := p.ask(ctx); err != nil {
		return nil, err
	}
	all[2] = keys
	if sha, known := p.known.Load(s); known {
		all[0], all[1] = "evalsha", sha
	} else {
		all[0], all[1] = "eval", s.Src // one round trip, where the hash alone might take two
	}
	r, err := do(ctx, c, redisport.Head, all)
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		all[0], all[1] = "eval", s.Src
		r, err = do(ctx, c, redisport.Head, all)
	}
	if err == nil && all[0] == "eval" {
		p.known.Store(s, s.SHA)
	}
	if err != nil {
		err = p.requestError(ctx, err)
	}
	return r, err
}

// requestError marks the error of a request. If a server of a cluster does not answer, requestError
// makes the client look for a new master. The client by itself looks only when it repeats a
// request, or once a minute.
func (p *port) requestError(ctx context.Context, err error) error {
	var reply redis.Error
	if p.cc != nil && !errors.As(err, &reply) {
		p.cc.ReloadState(ctx) // in the background
	}
	var dial *net.OpError
	switch {
	case errors.Is(err, redis.ErrClosed): // by its user, for good
		return redisport.Never(err)
	case errors.As(err, &dial) && dial.Op == "dial":
		return redisport.Unreachable(err)
	case errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted):
		return redisport.Unavailable(err)
	case !errors.As(err, &reply):
		return err
	}
	return redisport.Refused(reply.Error(), p.Cluster(), err)
}

// EvalSync is Eval, followed by WAIT on the same connection.
func (p *port) EvalSync(
	ctx context.Context, s *redisport.Script, keys int, all []any, n int, timeout time.Duration,
) (any, int, error) {
	if err := p.ask(ctx); err != nil {
		return nil, 0, err
	}
	all[2] = keys
	for try := 0; ; try++ {
		if sha, known := p.known.Load(s); known {
			all[0], all[1] = "evalsha", sha
		} else {
			all[0], all[1] = "eval", s.Src
		}
		node := p.c
		if p.cc != nil {
			// The cluster's own pipeline would send the WAIT, which names no key, to any server.
			master, err := p.cc.MasterForKey(ctx, redisport.Text(all[redisport.Head]))
			if err != nil {
				return nil, 0, err
			}
			node = master
		}
		pipe := node.Pipeline()
		cmd := redis.NewCmd(ctx, all...)
		cmd.SetFirstKeyPos(redisport.Head)
		pipe.Process(ctx, once{cmd})
		wait := redis.NewIntCmd(ctx, "wait", n, redisport.Millis(timeout))
		pipe.Process(ctx, wait)
		pipe.Exec(ctx) // its error is that of cmd or wait
		r, err := cmd.Result()
		switch {
		case err == redis.Nil:
			err = nil
		case err == nil:
		case redis.HasErrorPrefix(err, "NOSCRIPT") && try < 3:
			p.known.Delete(s)
			continue
		case redis.HasErrorPrefix(err, "MOVED") && p.cc != nil && try < 3:
			p.cc.ReloadState(ctx) // in the background
			select {
			case <-time.After(20 * time.Millisecond << try):
			case <-ctx.Done():
			}
			continue
		}
		if err != nil {
			return nil, 0, p.requestError(ctx, err)
		}
		p.known.Store(s, s.SHA)
		return r, int(wait.Val()), nil // 0 if it has failed
	}
}

// ReplyTimeout returns how long the client waits for a reply, or 0 if that is unknown.
func (p *port) ReplyTimeout() time.Duration {
	switch c := p.c.(type) {
	case *redis.Client:
		return c.Options().ReadTimeout
	case *redis.ClusterClient:
		return c.Options().ReadTimeout
	}
	return 0
}

// Set keeps value under key for ttl.
func (p *port) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	_, err := p.waitUntil(ctx, func() (any, error) {
		r, err := do(ctx, p.c, 1, []any{"set", key, value, "px", redisport.Millis(ttl)})
		if err != nil {
			err = p.requestError(ctx, err)
		}
		return r, err
	})
	return err
}

// Place returns the servers and the database in the options. The options of a client of sentinels
// lack the name of the master.
func (p *port) Place() string {
	switch {
	case p.cc != nil:
		return "redis cluster " + strings.Join(slices.Sorted(slices.Values(p.cc.Options().Addrs)), ",")
	case p.one != nil:
		o := p.one.Options()
		return fmt.Sprintf("redis %s %s %d", o.Network, o.Addr, o.DB)
	}
	return "redis"
}

func (p *port) Cluster() bool { return p.cc != nil }

func (p *port) Shards(ctx context.Context) (bool, error) {
	_, err := p.c.PubSubShardNumSub(ctx).Result()
	var reply redis.Error
	if errors.As(err, &reply) {
		return false, nil
	}
	return err == nil, err
}

func (p *port) Subscribers(ctx context.Context, sharded bool, channel string) (int64, error) {
	count := p.c.PubSubNumSub
	switch {
	case sharded && p.cc != nil:
		node, err := p.cc.MasterForKey(ctx, channel)
		if err != nil {
			return 0, err
		}
		count = node.PubSubShardNumSub
	case sharded:
		count = p.c.PubSubShardNumSub
	}
	r, err := p.waitUntil(ctx, func() (any, error) { return count(ctx, channel).Result() })
	n, _ := r.(map[string]int64)
	return n[channel], err
}

func (p *port) Home(ctx context.Context, channel string) (string, error) {
	if p.cc == nil {
		return "", nil
	}
	node, err := p.cc.MasterForKey(ctx, channel)
	if err != nil {
		return "", err
	}
	return node.Options().Addr, nil
}

// Servers calls f for the server, or for all masters of the cluster at the same time.
func (p *port) Servers(ctx context.Context, f func(ctx context.Context, s redisport.Server) error) error {
	if err := p.ask(ctx); err != nil {
		return err
	}
	if p.cc == nil {
		return f(ctx, reader{p, p.c})
	}
	return p.cc.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		return f(ctx, reader{p, master})
	})
}

// reader is a [redisport.Server].
type reader struct {
	p *port
	c redis.UniversalClient
}

func (s reader) Read(ctx context.Context, requests ...[]any) ([]any, error) {
	cmds := make([]*redis.Cmd, len(requests))
	pipe := s.c.Pipeline()
	for i, r := range requests {
		cmds[i] = pipe.Do(ctx, r...)
	}
	r, err := s.p.waitUntil(ctx, func() (any, error) {
		pipe.Exec(ctx) // its error is that of one of cmds
		replies := make([]any, len(cmds))
		for i, cmd := range cmds {
			var err error
			var reply redis.Error
			switch replies[i], err = cmd.Result(); {
			case err == redis.Nil:
			case errors.As(err, &reply):
				replies[i] = err
			case err != nil:
				return nil, s.p.requestError(ctx, err)
			}
		}
		return replies, nil
	})
	replies, _ := r.([]any)
	return replies, err
}

func (p *port) Subscriber(ctx context.Context, sharded bool, channel string) (redisport.Subscriber, error) {
	if !sharded {
		return &subscriber{ps: p.c.Subscribe(ctx)}, nil
	}
	if p.cc == nil {
		return &subscriber{ps: p.c.SSubscribe(ctx), sharded: true}, nil
	}
	node, err := p.cc.MasterForKey(ctx, channel)
	if err != nil {
		return nil, err
	}
	return &subscriber{ps: node.SSubscribe(ctx), sharded: true}, nil
}

type subscriber struct {
	ps      *redis.PubSub
	sharded bool
}

func (s *subscriber) Subscribe(ctx context.Context, channels ...string) error {
	if s.sharded {
		for _, channel := range channels { // the channels of one request have to be in one slot
			if err := s.ps.SSubscribe(ctx, channel); err != nil {
				return err
			}
		}
		return nil
	}
	return s.ps.Subscribe(ctx, channels...)
}

func (s *subscriber) Unsubscribe(ctx context.Context, channels ...string) error {
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

func (s *subscriber) Ping(ctx context.Context) error { return s.ps.Ping(ctx) }

func (s *subscriber) Receive(ctx context.Context) (redisport.Event, error) {
	m, err := s.ps.Receive(ctx)
	if err != nil {
		var reply redis.Error
		if errors.As(err, &reply) {
			err = redisport.Never(err)
		}
		return redisport.Event{}, err
	}
	switch m := m.(type) {
	case *redis.Message:
		return redisport.Event{Kind: redisport.Message, Channel: m.Channel, Payload: m.Payload}, nil
	case *redis.Subscription:
		if strings.HasSuffix(m.Kind, "unsubscribe") {
			return redisport.Event{Kind: redisport.Unsubscribed, Channel: m.Channel}, nil
		}
		return redisport.Event{Kind: redisport.Subscribed, Channel: m.Channel}, nil
	}
	return redisport.Event{}, nil
}

func (s *subscriber) Close() error { return s.ps.Close() }
