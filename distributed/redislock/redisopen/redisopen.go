// Package redisopen registers redis:, rediss:, redis+sentinel: and redis+cluster: with package
// open. Import it for its effect.
package redisopen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/open/driver"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/goredis"
	"github.com/jucgo/locks/distributed/redislock/internal/listing"
)

func init() {
	common := slices.Concat(driver.Leased(), []string{"prefix"})
	secure := slices.Concat(common, driver.Certificate())
	for _, s := range []driver.Scheme{
		{Name: "redis", Form: "redis://USER:PASSWORD@HOST:PORT/NUMBER", Port: "6379",
			More: slices.Concat(common, []string{"socket"})},
		{Name: "rediss", Form: "rediss://USER:PASSWORD@HOST:PORT/NUMBER", Port: "6379", More: secure},
		{Name: "redis+sentinel", Form: "redis+sentinel://USER:PASSWORD@HOST:PORT,HOST:PORT/NUMBER?master=NAME",
			Port: "26379", Many: true,
			More: slices.Concat(secure, []string{"master", "sentinel_password", "sentinel_user", "tls"})},
		{Name: "redis+cluster", Form: "redis+cluster://USER:PASSWORD@HOST:PORT,HOST:PORT", Port: "6379", Many: true,
			More: slices.Concat(secure, []string{"tls"})},
	} {
		s.Kinds, s.Open = []string{"plain", "fenced", "fair", "simple"}, open
		s.Silence = logging.Disable
		driver.Register(s)
	}
}

func open(ctx context.Context, o *driver.Opening) error {
	u := &redis.UniversalOptions{
		Addrs:    o.Hosts,
		Username: o.User,
		Password: o.Password,
		// A request ends with its context, and the lock asks again by itself.
		ContextTimeoutEnabled: true,
		DialTimeout:           driver.DialTimeout,
		DialerRetries:         1,
		MasterName:            o.Params["master"],
		SentinelUsername:      o.Params["sentinel_user"],
		SentinelPassword:      o.Params["sentinel_password"],
		IsClusterMode:         o.Scheme.Name == "redis+cluster",
	}
	if o.TTL > 0 {
		u.ReadTimeout = min(max(o.TTL/6, 100*time.Millisecond), 3*time.Second)
	}
	var err error
	switch {
	case o.Scheme.Name == "redis+sentinel" && u.MasterName == "":
		return driver.Reason("the parameter master is missing")
	case u.IsClusterMode && o.Path != "":
		return driver.Reason("a cluster has no numbered databases")
	case o.Path != "":
		n, err := strconv.ParseUint(o.Path, 10, 16)
		if err != nil {
			return driver.Reason("the path must be the number of a database, such as /0")
		}
		u.DB = int(n)
	}
	if socket, ok := o.Params["socket"]; ok {
		if !filepath.IsAbs(socket) {
			return driver.Reason("the parameter socket must be an absolute path")
		}
		u.Addrs = []string{socket} // which the client recognizes
	}
	encrypt, err := o.OneOf("tls", "false", "true")
	if err != nil {
		return err
	}
	if u.TLSConfig, err = o.TLS(o.Scheme.Name == "rediss" || encrypt == "true"); err != nil {
		return err
	}
	d := &dialer{config: u.TLSConfig}
	var end context.CancelFunc
	d.opening, end = context.WithCancel(ctx)
	defer end()
	u.Dialer = d.dial
	conn := redis.NewUniversalClient(u)
	o.OnClose(func(context.Context) error { return conn.Close() })
	client, err := redislock.New(conn, redislock.WithLeaseOptions(o.Lease...))
	if err != nil {
		return driver.Reason("%w", err)
	}
	o.OnClose(client.Close)
	if err := conn.Ping(ctx).Err(); err != nil {
		return o.Failed(err, isAnswer(err))
	}
	d.open.Store(true)
	mutex := map[string]func(name string) *lease.Mutex{
		"plain":  func(name string) *lease.Mutex { return client.Mutex(name) },
		"fenced": func(name string) *lease.Mutex { return client.FencedMutex(name) },
		"fair":   func(name string) *lease.Mutex { return client.FairMutex(name) },
		"simple": func(name string) *lease.Mutex { return client.SimpleMutex(name) },
	}[o.Kind()]
	prefix := o.Params["prefix"]
	o.Locker = func(name string) locks.TryLocker { return mutex(prefix + name) }
	o.Semaphore = func(name string, size int64) *lease.Semaphore { return client.Semaphore(prefix+name, size) }
	o.Names = names(conn, prefix, o.Kind() == "simple")
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
	ctx, cancel := context.WithTimeout(ctx, driver.DialTimeout)
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

// names returns the function that lists the locks.
func names(conn redis.UniversalClient, prefix string, simple bool) func(context.Context, string) ([]string, error) {
	return func(ctx context.Context, pattern string) (names []string, err error) {
		port, err := goredis.New(conn)
		if err == nil {
			names, err = listing.Names(ctx, port, listing.Query{Prefix: prefix, Pattern: pattern, Simple: simple})
		}
		if err != nil {
			return nil, fmt.Errorf("open: list names: %w", adapter.OfStore(ctx, err))
		}
		return names, nil
	}
}

// isAnswer reports whether err is a server's answer.
func isAnswer(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}
