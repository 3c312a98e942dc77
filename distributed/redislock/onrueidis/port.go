package onrueidis

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// port is the [redisport.Port] over rueidis.
//
// Its requests are marked as blocking. They have connections of the client's pool to themselves,
// not places in the client's pipeline. So no request waits behind others of the program. On one
// server, requests of locks share a few connections: see [lanes]. The connection of a request
// that times out is closed.
//
// rueidis does not repeat such a request by itself. It repeats read-only requests, requests marked
// as repeatable, and those on a pipelined connection whose ConnLifetime is over. EVAL and EVALSHA
// on a blocking connection are none of these, whatever DisableRetry is. A request that a server of
// a cluster refused for its slot goes to the right server: it was not carried out.
type port struct {
	c       rueidis.Client
	cluster bool
	known   sync.Map      // the scripts that the server has seen; in a cluster, one server
	turns   chan struct{} // has an element for each request under way that has no lane
	lanes   *lanes        // nil for a cluster, whose requests go to several servers

	mu     sync.Mutex
	window context.Context // see limitTime
	until  time.Time
}

var _ redisport.Port = (*port)(nil)

// command returns the request to run s, by its hash if the server has seen s, and otherwise as a
// whole. So it takes one round trip, where the hash alone might take two.
func (p *port) command(s *redisport.Script, whole bool, keys int, all []any) rueidis.Completed {
	name, what := "EVALSHA", s.SHA
	if whole {
		name, what = "EVAL", s.Src
	}
	// The first key says to which server the request goes. All keys are in one slot.
	c := p.c.B().Arbitrary(name, what, strconv.Itoa(keys)).Keys(redisport.Text(all[redisport.Head]))
	for _, a := range all[redisport.Head+1:] {
		c = c.Args(redisport.Text(a))
	}
	return c.Blocking()
}

// new reports whether the server may not have seen s.
func (p *port) new(s *redisport.Script) bool {
	_, known := p.known.Load(s)
	return !known
}

// limitTime returns ctx if it has a deadline. Otherwise it returns a context with the values of ctx
// that ends after replyTimeout, or up to twice that time. Requests of the same time share that
// context. While the client waits for a reply, it obeys deadlines only.
func (p *port) limitTime(ctx context.Context) context.Context {
	if _, ok := ctx.Deadline(); ok {
		return ctx
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until.Sub(now) < replyTimeout {
		p.until = now.Add(2 * replyTimeout)
		window, cancel := context.WithDeadline(context.Background(), p.until)
		context.AfterFunc(window, cancel) // at its time
		p.window = window
	}
	return adapter.Detach(p.window, ctx)
}

// begin waits until a request may have a connection.
func (p *port) begin(ctx context.Context) error {
	select {
	case p.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return redisport.Unavailable(context.Cause(ctx))
	}
}

func (p *port) end() { <-p.turns }

func (p *port) Eval(ctx context.Context, s *redisport.Script, keys int, all []any) (any, error) {
	whole := p.new(s)
	r, err := p.do(ctx, p.command(s, whole, keys, all))
	if reply, refused := rueidis.IsRedisErr(r.Error()); err == nil && refused && reply.IsNoScript() {
		whole = true
		r, err = p.do(ctx, p.command(s, whole, keys, all))
	}
	if err != nil {
		return nil, err
	}
	v, err := value(r)
	if err != nil {
		return nil, p.requestError(ctx, err)
	}
	if whole {
		p.known.Store(s, nil)
	}
	return v, nil
}

// do sends a request when it has its turn, and returns the reply.
func (p *port) do(ctx context.Context, cmd rueidis.Completed) (rueidis.RedisResult, error) {
	if p.lanes != nil {
		return p.lanes.do(ctx, cmd)
	}
	return p.alone(ctx, cmd)
}

// alone sends a request when it may have a connection of its own.
func (p *port) alone(ctx context.Context, cmd rueidis.Completed) (rueidis.RedisResult, error) {
	if err := p.begin(ctx); err != nil {
		return rueidis.RedisResult{}, err
	}
	defer p.end()
	return p.c.Do(p.limitTime(ctx), cmd), nil
}

// EvalInTime is Eval, because the client obeys deadlines by itself.
func (p *port) EvalInTime(ctx context.Context, s *redisport.Script, keys int, all []any) (any, error) {
	return p.Eval(ctx, s, keys, all)
}

// value returns the reply in r.
func value(r rueidis.RedisResult) (any, error) {
	v, err := r.ToAny()
	if rueidis.IsRedisNil(err) {
		return nil, nil
	}
	return v, err
}

// requestError marks the errors of requests that were surely not carried out.
func (p *port) requestError(ctx context.Context, err error) error {
	var dial *net.OpError
	reply, refused := rueidis.IsRedisErr(err)
	switch {
	case refused:
		return redisport.Refused(reply.Error(), p.cluster, err)
	case errors.Is(err, rueidis.ErrNoCache): // of a new connection
		return redisport.Never(err)
	case errors.As(err, &dial) && dial.Op == "dial":
		return redisport.Unreachable(err)
	case errors.Is(err, rueidis.ErrNoSlot):
		return redisport.Unavailable(err)
	case errors.Is(err, rueidis.ErrClosing) && p.closed(ctx):
		// Its user has closed the client. The request may have been carried out. But no further
		// request is possible.
		return redisport.Never(err)
	}
	return err
}

// closed reports whether the client is closed. It returns the same error when it replaces a
// connection.
func (p *port) closed(ctx context.Context) bool {
	return errors.Is(p.c.Do(p.limitTime(ctx), p.c.B().Ping().Build()).Error(), rueidis.ErrClosing)
}

const (
	// replyTimeout is how long a request without a deadline waits for its reply, or up to twice
	// that.
	replyTimeout = 2 * time.Second
	// syncGrace is how much longer than the replicas the server may take to answer.
	syncGrace = 3 * time.Second
	// redirects is how often a request follows a slot that has moved in a cluster. The pause
	// doubles each time. The client learns the new place within a second.
	redirects = 7
)

func (p *port) EvalSync(
	ctx context.Context, s *redisport.Script, keys int, all []any, n int, timeout time.Duration,
) (any, int, error) {
	if err := p.begin(ctx); err != nil {
		return nil, 0, err
	}
	defer p.end()
	// With a deadline, the client needs no goroutine for the connection, and no request to clean
	// it up.
	ctx, cancel := context.WithTimeout(ctx, timeout+syncGrace)
	defer cancel()
	for try := 0; ; try++ {
		v, acks, err := p.tryWait(ctx, s, keys, all, n, timeout)
		if err == nil {
			p.known.Store(s, nil)
			return v, acks, nil
		}
		reply, refused := rueidis.IsRedisErr(err)
		if !refused || try == redirects {
			return nil, 0, p.requestError(ctx, err)
		}
		if _, moved := reply.IsMoved(); moved {
			select {
			case <-time.After(10 * time.Millisecond << try):
			case <-ctx.Done():
			}
		} else if reply.IsNoScript() {
			p.known.Delete(s)
		} else {
			return nil, 0, p.requestError(ctx, err)
		}
	}
}

// tryWait runs s, and WAIT on the same connection.
func (p *port) tryWait(
	ctx context.Context, s *redisport.Script, keys int, all []any, n int, timeout time.Duration,
) (any, int, error) {
	c, release := p.c.Dedicate()
	defer release()
	rs := c.DoMulti(ctx,
		p.command(s, p.new(s), keys, all),
		c.B().Wait().Numreplicas(int64(n)).Timeout(redisport.Millis(timeout)).Build())
	v, err := value(rs[0])
	if err != nil {
		return nil, 0, err
	}
	acks, _ := rs[1].AsInt64() // 0 if it has failed
	return v, int(acks), nil
}

func (p *port) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	if err := p.begin(ctx); err != nil {
		return err
	}
	defer p.end()
	ttlText := strconv.FormatInt(redisport.Millis(ttl), 10)
	set := p.c.B().Arbitrary("SET").Keys(key).Args(value, "PX", ttlText).Blocking()
	if err := p.c.Do(p.limitTime(ctx), set).Error(); err != nil {
		return p.requestError(ctx, err)
	}
	return nil
}

// ReplyTimeout is 0, because EvalSync sets its own timeout.
func (p *port) ReplyTimeout() time.Duration { return 0 }

// Place has the address of a single server. The client does not tell its database. The servers of a
// cluster and the master behind sentinels change.
func (p *port) Place() string {
	if p.c.Mode() != rueidis.ClientModeStandalone {
		return "redis"
	}
	return "redis " + strings.Join(slices.Sorted(maps.Keys(p.c.Nodes())), ",")
}

func (p *port) Cluster() bool { return p.cluster }

func (p *port) Shards(ctx context.Context) (bool, error) {
	err := p.c.Do(ctx, p.c.B().Arbitrary("PUBSUB", "SHARDNUMSUB").Build()).Error()
	if _, refused := rueidis.IsRedisErr(err); refused {
		return false, nil
	}
	return err == nil, err
}

func (p *port) Subscribers(ctx context.Context, sharded bool, channel string) (int64, error) {
	count := p.c.B().Arbitrary("PUBSUB", "NUMSUB").Args(channel).Build()
	if sharded {
		count = p.c.B().Arbitrary("PUBSUB", "SHARDNUMSUB").Keys(channel).Build() // asks the channel's server
	}
	r, err := p.c.Do(ctx, count).AsIntMap()
	return r[channel], err
}

// Home asks the server itself, because the client does not say where a slot is.
func (p *port) Home(ctx context.Context, channel string) (string, error) {
	if !p.cluster {
		return "", nil
	}
	return p.c.Do(ctx, p.c.B().ClusterMyid().Build().SetSlot(channel)).ToString()
}

// Servers calls f for the server, or for one master of the cluster after the other.
func (p *port) Servers(ctx context.Context, f func(ctx context.Context, s redisport.Server) error) error {
	if !p.cluster {
		return f(ctx, reader{p, p.c})
	}
	for _, node := range p.c.Nodes() {
		role, err := node.Do(p.limitTime(ctx), node.B().Role().Build()).ToArray()
		if err != nil {
			return p.requestError(ctx, err)
		}
		if len(role) == 0 || !isMaster(role[0]) {
			continue // a replica may be behind
		}
		if err := f(ctx, reader{p, node}); err != nil {
			return err
		}
	}
	return nil
}

func isMaster(role rueidis.RedisMessage) bool {
	name, _ := role.ToString()
	return name == "master"
}

// reader is a [redisport.Server].
type reader struct {
	p *port
	c rueidis.Client
}

func (s reader) Read(ctx context.Context, requests ...[]any) ([]any, error) {
	cmds := make(rueidis.Commands, len(requests))
	for i, r := range requests {
		words := make([]string, len(r))
		for j, word := range r {
			words[j] = redisport.Text(word)
		}
		cmds[i] = s.c.B().Arbitrary(words...).ReadOnly()
	}
	replies := make([]any, len(requests))
	for i, r := range s.c.DoMulti(s.p.limitTime(ctx), cmds...) {
		v, err := value(r)
		if _, refused := rueidis.IsRedisErr(err); refused {
			v, err = err, nil
		}
		if err != nil {
			return nil, s.p.requestError(ctx, err)
		}
		replies[i] = v
	}
	return replies, nil
}

func (p *port) Subscriber(_ context.Context, sharded bool, channel string) (redisport.Subscriber, error) {
	return newSubscriber(p.c, sharded, channel), nil
}
