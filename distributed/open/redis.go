package open

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/redislock"
)

// dialTimeout is how long a connection may take later on.
const dialTimeout = 5 * time.Second

func openRedis(ctx context.Context, o *opening) error {
	u := &redis.UniversalOptions{
		Addrs:    o.hosts,
		Username: o.user,
		Password: o.password,
		// A request ends with its context, and the lock asks again by itself.
		ContextTimeoutEnabled: true,
		DialTimeout:           dialTimeout,
		DialerRetries:         1,
		MasterName:            o.params["master"],
		SentinelUsername:      o.params["sentinel_user"],
		SentinelPassword:      o.params["sentinel_password"],
		IsClusterMode:         o.scheme.name == "redis+cluster",
	}
	if o.ttl > 0 {
		u.ReadTimeout = min(max(o.ttl/6, 100*time.Millisecond), 3*time.Second)
	}
	var err error
	switch {
	case o.scheme.name == "redis+sentinel" && u.MasterName == "":
		return reason("the parameter master is missing")
	case u.IsClusterMode && o.path != "":
		return reason("a cluster has no numbered databases")
	case o.path != "":
		n, err := strconv.ParseUint(o.path, 10, 16)
		if err != nil {
			return reason("the path must be the number of a database, such as /0")
		}
		u.DB = int(n)
	}
	encrypt, err := o.oneOf("tls", "false", "true")
	if err != nil {
		return err
	}
	if u.TLSConfig, err = o.tlsConfig(o.scheme.name == "rediss" || encrypt == "true"); err != nil {
		return err
	}
	d := &dialer{config: u.TLSConfig}
	var end context.CancelFunc
	d.opening, end = context.WithCancel(ctx)
	defer end()
	u.Dialer = d.dial
	conn := redis.NewUniversalClient(u)
	o.closeLast(func(context.Context) error { return conn.Close() })
	var opts []redislock.Option
	if o.ttl > 0 {
		opts = append(opts, redislock.WithTTL(o.ttl))
	}
	if o.label != "" {
		opts = append(opts, redislock.WithLabel(o.label))
	}
	client, err := redislock.New(conn, append(opts, redislock.WithLeaseOptions(o.lease...))...)
	if err != nil {
		return reason("%w", err)
	}
	o.closeLast(client.Close)
	if err := conn.Ping(ctx).Err(); err != nil {
		var answer redis.Error
		if errors.As(err, &answer) {
			return o.hide(err)
		}
		return o.unreachable(err)
	}
	d.open.Store(true)
	mutex := map[string]func(name string) *redislock.Mutex{
		"plain":  func(name string) *redislock.Mutex { return client.Mutex(name) },
		"fenced": func(name string) *redislock.Mutex { return client.FencedMutex(name) },
		"fair":   func(name string) *redislock.Mutex { return client.FairMutex(name) },
		"simple": func(name string) *redislock.Mutex { return client.SimpleMutex(name) },
	}[o.kind()]
	prefix := o.params["prefix"]
	o.locker = func(name string) locks.TryLocker { return mutex(prefix + name) }
	return nil
}

// dialer connects to Redis. The client does not give up a handshake when a context ends. So the end
// of opening closes the connections, unless the store is open by then.
type dialer struct {
	config  *tls.Config
	opening context.Context
	open    atomic.Bool
}

func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if !d.open.Load() {
		defer context.AfterFunc(d.opening, cancel)()
	}
	dial := new(net.Dialer).DialContext
	if d.config != nil {
		dial = (&tls.Dialer{Config: d.config}).DialContext
	}
	c, err := dial(ctx, network, addr)
	if err == nil && !d.open.Load() {
		context.AfterFunc(d.opening, func() {
			if !d.open.Load() {
				c.Close()
			}
		})
	}
	return c, err
}
