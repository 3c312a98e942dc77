package redislock

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/redislock/internal/driver"
)

// homeless is a port that does not know the server of a channel.
type homeless struct{ port }

func (homeless) Home(context.Context, string) (string, error) { return "", errors.New("nowhere") }

func TestWaitersGiveUpWhileTheirChannelMoves(t *testing.T) {
	h := newHub(homeless{})
	defer h.close(context.Background())
	for range 50 {
		l := &link{h: h, shard: true, topics: make(map[string]*topic), changed: make(map[string]struct{}),
			kick: make(chan struct{}, 1)}
		var all []*watch
		for range 20 {
			w := &watch{c: make(chan struct{}, 1)}
			w.add(l.watch(w, "it"))
			all = append(all, w)
		}
		var wg sync.WaitGroup
		wg.Go(l.move)
		for _, w := range all {
			wg.Go(w.Close)
		}
		wg.Wait()
		if left := l.topics["it"]; left != nil { // the writer would drop it
			require.Empty(t, left.watches)
		}
	}
}

// unreachable is a connection for subscriptions that is down, and has all that were asked for
// when it is up.
type unreachable struct {
	failed chan string

	mu       sync.Mutex
	channels map[string]bool
}

func (u *unreachable) Subscribe(_ context.Context, channels ...string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, c := range channels {
		u.channels[c] = true
		select {
		case u.failed <- c:
		default:
		}
	}
	return errors.New("down")
}

func (u *unreachable) Unsubscribe(_ context.Context, channels ...string) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, c := range channels {
		delete(u.channels, c)
	}
	return nil
}

func (u *unreachable) has(channel string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.channels[channel]
}

func (u *unreachable) Receive(ctx context.Context) (event, error) {
	<-ctx.Done()
	return event{}, ctx.Err()
}

func (u *unreachable) Ping(context.Context) error { return nil }

func (u *unreachable) Close() error { return nil }

// connecting is a port of one server, whose connections for subscriptions are u.
type connecting struct {
	port
	u *unreachable
}

func (c connecting) Subscriber(context.Context, bool, string) (subscriber, error) { return c.u, nil }

func (connecting) Home(context.Context, string) (string, error) { return "here", nil }

func TestASubscriptionThatHasFailedIsEndedToo(t *testing.T) {
	for name, shard := range map[string]bool{"classic": false, "sharded": true} {
		t.Run(name, func(t *testing.T) {
			u := &unreachable{channels: make(map[string]bool), failed: make(chan string, 1)}
			h := newHub(connecting{u: u})
			defer h.close(context.Background())
			w := &watch{c: make(chan struct{}, 1)}
			require.NoError(t, h.bind(context.Background(), w, shard, "it"))
			require.Equal(t, "it", <-u.failed)
			w.Close()
			require.Eventually(t, func() bool { return !u.has("it") }, 10*time.Second, time.Millisecond)
		})
	}
}

func TestAGoneServersSubscriptionsAreForgotten(t *testing.T) {
	var gone atomic.Bool
	c := redis.NewClient(&redis.Options{
		DialerRetries: 1, MaxRetries: -1, DisableIdentity: true,
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			if gone.Load() {
				return nil, errors.New("gone")
			}
			ours, theirs := net.Pipe()
			go func() { // it says that it knows no HELLO, which is so of old servers
				buf := make([]byte, 1024)
				for {
					n, err := theirs.Read(buf)
					if err != nil || gone.Load() {
						theirs.Close()
						return
					}
					if strings.Contains(strings.ToLower(string(buf[:n])), "hello") {
						theirs.Write([]byte("-ERR unknown command\r\n"))
					}
				}
			}()
			return ours, nil
		},
	})
	defer c.Close()
	ctx := context.Background()
	s := &goSubscriber{ps: c.SSubscribe(ctx), sharded: true}
	defer s.Close()
	require.NoError(t, s.Subscribe(ctx, "a", "b", "c"))
	require.NotEqual(t, "PubSub()", s.ps.String())
	gone.Store(true)
	require.Eventually(t, func() bool { return s.Ping(ctx) != nil }, 10*time.Second, time.Millisecond)
	require.Error(t, s.Unsubscribe(ctx, "a", "b", "c"))
	require.Equal(t, "PubSub()", s.ps.String())
}

// wandering is a port of a channel that leaves a server for another one, which is not known from
// the beginning.
type wandering struct {
	port
	home atomic.Pointer[refugee]
}

func (p *wandering) Home(context.Context, string) (string, error) {
	if r := p.home.Load(); r != nil {
		return r.name, nil
	}
	return "", errors.New("nowhere")
}

func (p *wandering) Subscriber(context.Context, bool, string) (subscriber, error) {
	if r := p.home.Load(); r != nil {
		return r, nil
	}
	return nil, errors.New("nowhere")
}

// refugee is a connection for subscriptions to one of its servers.
type refugee struct {
	unreachable
	name string
	left chan struct{} // closed: the channel is elsewhere
}

func newRefugee(name string) *refugee {
	return &refugee{
		unreachable: unreachable{channels: make(map[string]bool), failed: make(chan string, 1)},
		name:        name,
		left:        make(chan struct{}),
	}
}

func (r *refugee) Subscribe(ctx context.Context, channels ...string) error {
	r.unreachable.Subscribe(ctx, channels...)
	return nil
}

func (r *refugee) Receive(ctx context.Context) (event, error) {
	select {
	case <-r.left:
		return event{}, driver.Never(errors.New("moved"))
	case <-ctx.Done():
		return event{}, ctx.Err()
	}
}

func TestAWatchFollowsItsChannelToLaterServers(t *testing.T) {
	here, there, p := newRefugee("here"), newRefugee("there"), new(wandering)
	p.home.Store(here)
	h := newHub(p)
	defer h.close(context.Background())
	w := &watch{c: make(chan struct{}, 1)}
	require.NoError(t, h.bind(context.Background(), w, true, "it"))
	require.Equal(t, "it", <-here.failed)
	p.home.Store(nil)
	close(here.left)
	<-w.c // it asks, for want of anything better
	p.home.Store(there)
	require.Eventually(t, func() bool { return there.has("it") }, 10*time.Second, time.Millisecond)
	w.Close()
	require.Eventually(t, func() bool { return !there.has("it") }, 10*time.Second, time.Millisecond)
}
