// Package redisopen registers redis:, rediss:, redis+sentinel: and redis+cluster: with package open.
// Import it for its effect.
package redisopen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/open/driver"
	"github.com/jucgo/locks/distributed/redislock"
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
	o.Names = redisNames{conn, prefix, o.Kind()}.list
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

// redisNames lists the names of locks of a kind.
type redisNames struct {
	conn         redis.UniversalClient
	prefix, kind string
}

// list lists the locks on a server or on the masters of a cluster.
func (l redisNames) list(ctx context.Context, pattern string) ([]string, error) {
	names, err := l.listAll(ctx, pattern)
	if err != nil {
		return nil, fmt.Errorf("open: list names: %w", err)
	}
	return names, nil
}

func (l redisNames) listAll(ctx context.Context, pattern string) (names []string, err error) {
	if _, err := path.Match(pattern, ""); err != nil {
		return nil, err
	}
	if l.kind == "simple" && l.prefix == "" {
		return nil, fmt.Errorf("%w: a simple lock without the parameter prefix looks like any string",
			errors.ErrUnsupported)
	}
	cluster, ok := l.conn.(*redis.ClusterClient)
	if !ok {
		return l.listOn(ctx, l.conn, pattern)
	}
	var mu sync.Mutex
	err = cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		found, err := l.listOn(ctx, master, pattern)
		mu.Lock()
		defer mu.Unlock()
		names = append(names, found...)
		return err
	})
	return names, err
}

// stepOfScan is how many keys one request looks at.
const stepOfScan = 500

// listOn lists the locks on one server, step by step.
func (l redisNames) listOn(ctx context.Context, server redis.Cmdable, pattern string) (names []string, err error) {
	kind := "hash"
	if l.kind == "simple" {
		kind = "string"
	}
	for cursor := uint64(0); ; {
		var keys []string
		keys, cursor, err = server.ScanType(ctx, cursor, globEscaper.Replace(l.prefix)+"*", stepOfScan, kind).Result()
		if err != nil {
			return nil, err
		}
		keys = slices.DeleteFunc(keys, func(key string) bool {
			matched, _ := path.Match(pattern, strings.TrimPrefix(key, l.prefix))
			return !matched && pattern != ""
		})
		if keys, err = l.locks(ctx, server, keys); err != nil {
			return nil, err
		}
		for _, key := range keys {
			names = append(names, strings.TrimPrefix(key, l.prefix))
		}
		if cursor == 0 {
			return names, nil
		}
	}
}

// globEscaper makes a text stand for itself in a pattern of Redis.
var globEscaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`)

// holder is the only field of the hash that is a lock: a UUID, and the number of a thread or of an
// acquisition.
var holder = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9]+$`)

// locks returns those of keys that look like locks: they have a time to live, and, but for simple
// locks, one field. A hash with more fields may be large, so its fields are not read.
func (l redisNames) locks(ctx context.Context, server redis.Cmdable, keys []string) ([]string, error) {
	ttls, sizes := make([]*redis.DurationCmd, len(keys)), make([]*redis.IntCmd, len(keys))
	_, err := server.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range keys {
			ttls[i] = p.PTTL(ctx, key)
			if l.kind != "simple" {
				sizes[i] = p.HLen(ctx, key)
			}
		}
		return nil
	})
	if err != nil && !isAnswer(err) { // a key may have another type by now
		return nil, err
	}
	var likely []string
	for i, key := range keys {
		if ttls[i].Val() > 0 && (sizes[i] == nil || sizes[i].Val() == 1) {
			likely = append(likely, key)
		}
	}
	if l.kind == "simple" {
		return likely, nil
	}
	fields := make([]*redis.StringSliceCmd, len(likely))
	_, err = server.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, key := range likely {
			fields[i] = p.HKeys(ctx, key)
		}
		return nil
	})
	if err != nil && !isAnswer(err) {
		return nil, err
	}
	var found []string
	for i, key := range likely {
		if f := fields[i].Val(); len(f) == 1 && holder.MatchString(f[0]) {
			found = append(found, key)
		}
	}
	return found, nil
}

// isAnswer reports whether err is a server's answer.
func isAnswer(err error) bool {
	var answer redis.Error
	return errors.As(err, &answer)
}
