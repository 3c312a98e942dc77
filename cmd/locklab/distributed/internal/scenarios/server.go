package scenarios

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/alicebob/miniredis/v2"
	miniserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/cmd/locklab/internal/lab"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock"
)

// server is a Redis server inside the program. Times to live run by the real clock. miniredis does
// not age its keys by itself. Each command that arrives therefore first ages them by the time since
// the last command.
type server struct {
	*miniredis.Miniredis
	commands atomic.Int64 // that arrived, without the commands inside scripts

	mu      sync.Mutex
	aged    time.Time
	scripts sync.Map // the goroutine of a connection to its peer, once it has run a script
}

func newServer(l *lab.Lab) *server {
	s := &server{Miniredis: miniredis.NewMiniRedis(), aged: time.Now()}
	s.start(l)
	return s
}

// start starts the server, or starts it again at the same address, with its data.
func (s *server) start(l *lab.Lab) {
	l.Must(s.Start())
	s.Server().SetPreHook(func(peer *miniserver.Peer, command string, _ ...string) bool {
		// The commands of a script run in the goroutine of its connection, with the server
		// locked, as another peer.
		me := locks.CurrentOwner(nil)
		if strings.HasPrefix(command, "EVAL") {
			s.scripts.Store(me, peer)
		} else if outer, ok := s.scripts.Load(me); ok && outer != peer {
			return false
		}
		s.commands.Add(1)
		s.age()
		return false
	})
}

func (s *server) age() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.FastForward(now.Sub(s.aged))
	s.aged = now
}

// left returns the time to live of a key, or 0 if it has none. Whether it is there, tells the
// other result.
func (s *server) left(key string) (time.Duration, bool) {
	s.age()
	return s.TTL(key), s.Exists(key)
}

// process stands for a process: it has its own connections, and its own locks, which do not know
// the locks of other processes.
type process struct {
	*redis.Client
	locks *redislock.Client

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

var errCut = errors.New("the network is cut")

// quiet is a logger. The complaints of the clients of disconnected processes are part of the
// scenario.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

var silence = sync.OnceFunc(func() { redis.SetLogger(quiet{}) })

// process starts one, with holds for a time.
func (s *server) process(l *lab.Lab, term time.Duration, opts ...lease.Option) *process {
	silence()
	p := new(process)
	p.Client = redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1, DisableIdentity: true, Protocol: 2,
		Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.cut {
				return nil, errors.Join(errCut, c.Close())
			}
			p.conns = append(p.conns, c)
			return c, nil
		}})
	var err error
	p.locks, err = redislock.New(p.Client, redislock.WithLeaseOptions(append(opts, lease.WithTTL(term))...))
	l.Must(err)
	return p
}

// disconnect cuts it off from the network, for good.
func (p *process) disconnect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	for _, c := range p.conns {
		_ = c.Close() // Closed twice at worst.
	}
}

// end ends processes and their server. Locks that are held are lost, which is of no interest
// any more.
func (s *server) end(all ...*process) {
	for _, p := range all {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = p.locks.Close(ctx)
		cancel()
		_ = p.Client.Close()
	}
	s.Close()
}

// took reads the reply to SET with NX: nothing if the key was there.
func took(c *redis.Cmd) (bool, error) {
	err := c.Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}

// inside counts the processes inside a section that is meant for one.
type inside struct{ now, most atomic.Int64 }

func (i *inside) enter() {
	n := i.now.Add(1)
	for {
		most := i.most.Load()
		if n <= most || i.most.CompareAndSwap(most, n) {
			return
		}
	}
}

func (i *inside) leave() { i.now.Add(-1) }
