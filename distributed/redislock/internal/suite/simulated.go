package suite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest"
	"github.com/jucgo/locks/distributed/redislock"
	"github.com/jucgo/locks/distributed/redislock/internal/goredis"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
	"github.com/jucgo/locks/distributed/redislock/redlock"
)

// simulated is a Redis server in memory, which runs the real scripts. Its clients are ports, which
// work in a bubble of testing/synctest. The subscriptions of go-redis do not: they hold a mutex
// while they connect, and virtual time stands still until the mutex is free.
type simulated struct {
	redis *miniredis.Miniredis
	place string
	turn  chan *resp // the connection of all requests
	over  chan struct{}

	// Only the goroutine that has the turn uses the fields below.
	conns  map[net.Conn]bool // for subscriptions
	ahead  time.Duration     // of the clock
	every  time.Duration     // between two times when the server stores its data, or 0
	stored time.Time         // the last of these times
}

// simulate starts a server until tb ends.
func simulate(tb testing.TB, place string) *simulated {
	tb.Helper()
	s := &simulated{
		redis: miniredis.NewMiniRedis(), place: place, turn: make(chan *resp, 1), over: make(chan struct{}),
		conns: make(map[net.Conn]bool),
	}
	conn, err := s.redis.Dial()
	if err != nil {
		tb.Fatal(err)
	}
	s.redis.ClockTTL(true)
	tb.Cleanup(func() {
		conn.Close()
		s.redis.Close()
		close(s.over)
	})
	s.turn <- newResp(conn)
	return s
}

// do has the server carry out a command, and returns its reply.
func (s *simulated) do(command ...string) (any, error) {
	c := <-s.turn
	defer func() { s.turn <- c }()
	s.redis.SetTime(time.Now().Add(s.ahead)) // a clock that is 0 ahead again must go on as well
	if s.every > 0 && time.Since(s.stored) >= s.every {
		if err := s.store(c); err != nil {
			return nil, err
		}
	}
	return c.ask(command...)
}

// store copies all keys to another database. The caller has the turn.
func (s *simulated) store(c *resp) error {
	s.stored = time.Now()
	s.redis.DB(1).FlushDB()
	for _, key := range s.redis.Keys() {
		if _, err := c.ask("COPY", key, key, "DB", "1"); err != nil {
			return err
		}
	}
	return nil
}

// forget restarts the server with the data of the last store. All later changes are lost.
func (s *simulated) forget() error {
	c := <-s.turn
	defer func() { s.turn <- c }()
	for conn := range s.conns {
		conn.Close()
	}
	if time.Since(s.stored) >= s.every { // each change was stored
		return nil
	}
	s.redis.SwapDB(0, 1)
	return s.store(c)
}

// setClock sets the clock of the server. A lease of Redis ends at a time of this clock.
func (s *simulated) setClock(by time.Duration) {
	s.alone(func() {
		s.ahead += by
		for db := 0; by < 0 && db < 2; db++ {
			for _, key := range s.redis.DB(db).Keys() {
				if left := s.redis.DB(db).TTL(key); left > 0 {
					s.redis.DB(db).SetTTL(key, left-by)
				}
			}
		}
	})
}

// alone calls f while the server carries out no command. A command that counts the subscribers of a
// channel reads their channels without their mutexes.
func (s *simulated) alone(f func()) {
	c := <-s.turn
	defer func() { s.turn <- c }()
	f()
}

// serve serves a connection for subscriptions. miniredis would hold its mutex while a message
// waits for a slow connection, and time would stand still.
func (s *simulated) serve(conn net.Conn) {
	defer conn.Close()
	c := newResp(conn)
	sub := s.redis.NewSubscriber()
	s.alone(func() { s.conns[conn] = true })
	defer s.alone(func() {
		delete(s.conns, conn)
		for _, channel := range sub.Channels() {
			sub.Unsubscribe(channel)
		}
	})
	out, gone := make(chan string, 4096), make(chan struct{})
	defer close(gone)
	write := func(parts ...string) {
		select {
		case out <- array(parts):
		default: // a server ends such a connection
			conn.Close()
		}
	}
	go func() { // until the server ends: a Subscriber must be read
		for {
			select {
			case m := <-sub.Messages():
				write("message", m.Channel, m.Message)
			case <-s.over:
				return
			}
		}
	}()
	go func() {
		for {
			select {
			case text := <-out:
				if _, err := io.WriteString(conn, text); err != nil {
					return
				}
			case <-gone:
				return
			}
		}
	}()
	for {
		command, err := c.receive()
		if err != nil {
			return
		}
		parts, _ := command.([]any)
		for i, part := range parts {
			name, _ := part.(string)
			switch verb := parts[0]; {
			case verb == "PING":
				write("pong", "")
			case i == 0:
			case verb == "SUBSCRIBE":
				s.alone(func() { sub.Subscribe(name) })
				write("subscribe", name)
			case verb == "UNSUBSCRIBE":
				s.alone(func() { sub.Unsubscribe(name) })
				write("unsubscribe", name)
			}
		}
	}
}

// array is a command or a message as it is sent.
func array(parts []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(parts))
	for _, part := range parts {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(part), part)
	}
	return b.String()
}

// resp is a connection in the protocol of Redis. Goroutines that send take turns by a channel: in
// the mutex of a net.Pipe a second one would wait where virtual time stands still.
type resp struct {
	net.Conn
	r    *bufio.Reader
	turn chan struct{}
}

func newResp(c net.Conn) *resp { return &resp{c, bufio.NewReader(c), make(chan struct{}, 1)} }

func (c *resp) send(command ...string) error {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	_, err := io.WriteString(c, array(command))
	return err
}

func (c *resp) ask(command ...string) (any, error) {
	if err := c.send(command...); err != nil {
		return nil, err
	}
	return c.receive()
}

// receive returns the next reply: nil, an int64, a string, a slice of these, or an error.
func (c *resp) receive() (any, error) {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return nil, errors.New("an empty reply")
	}
	n, _ := strconv.ParseInt(line[1:], 10, 64)
	switch line[0] {
	case ':':
		return n, nil
	case '+':
		return line[1:], nil
	case '-':
		return nil, redisport.Refused(line[1:], false, errors.New(line[1:]))
	case '$':
		if n < 0 {
			return nil, nil
		}
		text := make([]byte, n+2)
		_, err := io.ReadFull(c.r, text)
		return string(text[:n]), err
	case '*':
		if n < 0 {
			return nil, nil
		}
		all := make([]any, n)
		for i := range all {
			if all[i], err = c.receive(); err != nil {
				return nil, err
			}
		}
		return all, nil
	}
	return nil, fmt.Errorf("a reply %q", line)
}

// simulatedPort is a client of a simulated server.
type simulatedPort struct {
	*simulated
	link *leasetest.Link
}

var _ redisport.Port = (*simulatedPort)(nil)

func (p *simulatedPort) ask(ctx context.Context, command ...string) (any, error) {
	return leasetest.Ask(ctx, p.link, func(context.Context) (any, error) { return p.do(command...) })
}

func (p *simulatedPort) Eval(ctx context.Context, s *redisport.Script, keys int, args []any) (any, error) {
	command := []string{"EVAL", s.Src, strconv.Itoa(keys)}
	for _, arg := range args[redisport.Head:] { // a late request is carried out when they are the caller's again
		command = append(command, redisport.Text(arg))
	}
	return p.ask(ctx, command...)
}

func (p *simulatedPort) EvalInTime(ctx context.Context, s *redisport.Script, keys int, args []any) (any, error) {
	return p.Eval(ctx, s, keys, args)
}

func (p *simulatedPort) EvalSync(
	ctx context.Context, s *redisport.Script, keys int, args []any, _ int, _ time.Duration) (any, int, error) {
	r, err := p.Eval(ctx, s, keys, args)
	return r, 0, err
}

func (p *simulatedPort) ReplyTimeout() time.Duration { return 0 }

func (p *simulatedPort) Set(ctx context.Context, key, value string, ttl time.Duration) error {
	_, err := p.ask(ctx, "SET", key, value, "PX", strconv.FormatInt(redisport.Millis(ttl), 10))
	return err
}

func (p *simulatedPort) Place() string                        { return p.place }
func (p *simulatedPort) Cluster() bool                        { return false }
func (p *simulatedPort) Shards(context.Context) (bool, error) { return false, nil }

func (p *simulatedPort) Subscribers(ctx context.Context, _ bool, channel string) (int64, error) {
	r, err := p.ask(ctx, "PUBSUB", "NUMSUB", channel)
	if err != nil {
		return 0, err
	}
	n, _ := r.([]any)[1].(int64)
	return n, nil
}

func (p *simulatedPort) Home(context.Context, string) (string, error) { return "", nil }

func (p *simulatedPort) Servers(context.Context, func(context.Context, redisport.Server) error) error {
	return errors.ErrUnsupported // no user of a life lists names
}

func (p *simulatedPort) Subscriber(context.Context, bool, string) (redisport.Subscriber, error) {
	s := &simulatedSubscriber{
		p: p, arrived: make(chan arrival), closed: make(chan struct{}), channels: make(map[string]bool),
	}
	s.connect()
	return s, nil
}

// simulatedSubscriber is a connection for subscriptions, which comes back when it is lost.
type simulatedSubscriber struct {
	p       *simulatedPort
	arrived chan arrival
	closed  chan struct{}
	once    sync.Once

	mu       sync.Mutex
	conn     *resp
	channels map[string]bool
}

// arrival is a message that a goroutine has received from a connection.
type arrival struct {
	conn  *resp
	reply any
	err   error
}

// connect connects, and repeats the subscriptions.
func (s *simulatedSubscriber) connect() {
	conn := newResp(s.p.link.Pipe(s.p.serve))
	s.mu.Lock()
	s.conn = conn
	var known []string
	for channel := range s.channels {
		known = append(known, channel)
	}
	s.mu.Unlock()
	select {
	case <-s.closed:
		conn.Close()
	default:
	}
	go func() {
		for {
			reply, err := conn.receive()
			select {
			case s.arrived <- arrival{conn, reply, err}:
			case <-s.closed:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	if slices.Sort(known); len(known) > 0 {
		s.send(append([]string{"SUBSCRIBE"}, known...)...)
	}
}

// send sends a command, and ends the connection if it does not get through in time.
func (s *simulatedSubscriber) send(command ...string) error {
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	_ = conn.SetWriteDeadline(time.Now().Add(time.Second))
	err := conn.send(command...)
	if err != nil {
		conn.Close()
	}
	return err
}

func (s *simulatedSubscriber) note(on bool, channels []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, channel := range channels {
		if on {
			s.channels[channel] = true
		} else {
			delete(s.channels, channel)
		}
	}
}

func (s *simulatedSubscriber) Subscribe(_ context.Context, channels ...string) error {
	s.note(true, channels)
	return s.send(append([]string{"SUBSCRIBE"}, channels...)...)
}

func (s *simulatedSubscriber) Unsubscribe(_ context.Context, channels ...string) error {
	s.note(false, channels)
	return s.send(append([]string{"UNSUBSCRIBE"}, channels...)...)
}

func (s *simulatedSubscriber) Ping(context.Context) error { return s.send("PING") }

func (s *simulatedSubscriber) Receive(ctx context.Context) (redisport.Event, error) {
	select {
	case <-ctx.Done():
		return redisport.Event{}, context.Cause(ctx)
	case <-s.closed:
		return redisport.Event{}, net.ErrClosed
	case a := <-s.arrived:
		if a.err != nil {
			a.conn.Close()
			s.connect()
			return redisport.Event{}, a.err
		}
		parts, _ := a.reply.([]any)
		text := func(i int) string {
			if i >= len(parts) {
				return ""
			}
			s, _ := parts[i].(string)
			return s
		}
		switch text(0) {
		case "message":
			return redisport.Event{Kind: redisport.Message, Channel: text(1), Payload: text(2)}, nil
		case "subscribe":
			return redisport.Event{Kind: redisport.Subscribed, Channel: text(1)}, nil
		case "unsubscribe":
			return redisport.Event{Kind: redisport.Unsubscribed, Channel: text(1)}, nil
		}
		return redisport.Event{}, nil
	}
}

func (s *simulatedSubscriber) Close() error {
	s.once.Do(func() { close(s.closed) })
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn.Close()
}

// left reports what the servers keep of a lock when its last lease must have ended, except tokens
// and hints that end by themselves.
func left(servers []*simulated) func(tb testing.TB, name string) {
	return func(tb testing.TB, name string) {
		var keys []string
		for range 240 { // until the last waiter of a queue counts as dead
			keys = nil
			for _, s := range servers {
				s.do("PING") // time has passed
				for _, key := range s.redis.Keys() {
					hint := strings.HasPrefix(key, "locks_waiting") || strings.HasPrefix(key, "redisson_lock_")
					if strings.Contains(key, name) && !strings.HasPrefix(key, "redisson_lock_token:") && !(hint && s.redis.TTL(key) > 0) {
						keys = append(keys, s.place+": "+key)
					}
				}
			}
			if len(keys) == 0 {
				return
			}
			time.Sleep(time.Second)
		}
		tb.Errorf("the servers keep of %s: %q", name, keys)
	}
}

// Lives simulates locks of a kind of [AnyKind], or semaphores if kind is permits, on one server. It
// first lives the lives of seeds.
func Lives(t *testing.T, kind string, seeds ...uint64) {
	t.Helper()
	leasetest.Simulate(t, leasetest.World{For: 20 * time.Second, Seeds: seeds, Open: func(tb testing.TB) leasetest.Config {
		return lives(simulate(tb, "redis"), kind)
	}})
}

// LivesWithResets is Lives on a server that restarts without its last changes, and whose clock
// jumps.
func LivesWithResets(t *testing.T, kind string, seeds ...uint64) {
	t.Helper()
	leasetest.Simulate(t, leasetest.World{For: 20 * time.Second, Seeds: seeds, Open: func(tb testing.TB) leasetest.Config {
		server := simulate(tb, "redis")
		cfg := lives(server, kind)
		cfg.Forget, cfg.SetClock = resets(tb, server)
		return cfg
	}})
}

// resets makes each server store its data each second. The returned functions are for a Config, and
// act on one server after the other.
func resets(tb testing.TB, servers ...*simulated) (forget func(), setClock func(by time.Duration)) {
	for _, s := range servers {
		s.every = time.Second
	}
	next := 0
	one := func() *simulated {
		next++
		return servers[next%len(servers)]
	}
	forget = func() {
		if err := one().forget(); err != nil {
			tb.Error(err)
		}
	}
	return forget, func(by time.Duration) { one().setClock(by) }
}

// longFairWait is how long a dead waiter of a fair lock would block others if no release shortened
// its time. It is longer than any waiter waits when everything is healed, so such a release is
// missed.
const longFairWait = 2 * time.Minute

// lives is the configuration for locks of a kind on server.
func lives(server *simulated, kind string) leasetest.Config {
	cfg := leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			carrier := &goredis.Carrier{Port: &simulatedPort{server, link}}
			keep, store := lastStore()
			more := redislock.WithLeaseOptions(opts...)
			if kind == "permits" {
				more = keep
			}
			c, err := redislock.New(carrier, more, redislock.WithFairWait(longFairWait))
			if err != nil {
				tb.Fatal(err)
			}
			closed(tb, c)
			if kind == "permits" {
				c.Semaphore("", 1)
				semaphores, err := lease.New(*store, opts...)
				if err != nil {
					tb.Fatal(err)
				}
				closed(tb, semaphores)
				return semaphores
			}
			p := provider{c, kind}
			if kind == "write" {
				p.Locker("") // a life has to know which Store is that of the readers
			}
			return p
		},
		FIFO: kind == "fair",
		Rest: left([]*simulated{server}),
	}
	switch kind {
	case "permits":
		cfg.Semaphore = leasetest.Semaphores
	case "write":
		cfg.Read = func(p locks.Provider, name string) locks.TryLocker {
			return p.(provider).RWMutex(name).ReadLocker()
		}
	}
	return cfg
}

// RedlockLives simulates locks on five servers, each of which fails by itself. It first lives the
// lives of seeds.
func RedlockLives(t *testing.T, seeds ...uint64) {
	t.Helper()
	leasetest.Simulate(t, leasetest.World{
		For: 20 * time.Second, Servers: 5, Seeds: seeds,
		Open: func(tb testing.TB) leasetest.Config { return redlockLives(fiveServers(tb)) },
	})
}

// RedlockLivesWithResets is RedlockLives on servers that restart without their last changes, and
// whose clocks jump, one after the other.
func RedlockLivesWithResets(t *testing.T, seeds ...uint64) {
	t.Helper()
	leasetest.Simulate(t, leasetest.World{
		For: 20 * time.Second, Servers: 5, Seeds: seeds,
		Open: func(tb testing.TB) leasetest.Config {
			servers := fiveServers(tb)
			cfg := redlockLives(servers)
			cfg.Forget, cfg.SetClock = resets(tb, servers...)
			return cfg
		},
	})
}

func fiveServers(tb testing.TB) []*simulated {
	servers := make([]*simulated, 5)
	for i := range servers {
		servers[i] = simulate(tb, fmt.Sprint("redis ", i))
	}
	return servers
}

// redlockLives is the configuration for locks on a majority of servers.
func redlockLives(servers []*simulated) leasetest.Config {
	return leasetest.Config{
		Open: func(tb testing.TB, link *leasetest.Link, opts ...lease.Option) locks.Provider {
			var carriers []redis.UniversalClient
			for i, s := range servers {
				carriers = append(carriers, &goredis.Carrier{Port: &simulatedPort{s, link.Server(i)}})
			}
			c, err := redlock.New(carriers, redislock.WithLeaseOptions(opts...))
			if err != nil {
				tb.Fatal(err)
			}
			closed(tb, c)
			return c
		},
		SpuriousTry: true,
		Rest:        left(servers),
	}
}
