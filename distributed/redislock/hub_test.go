package redislock

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/distributed/redislock/internal/redisport"

	"github.com/jucgo/locks/internal/test/testbed"
)

type event = redisport.Event

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
			w := newWatch(hearReleases)
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
			w := newWatch(hearReleases)
			require.NoError(t, h.bind(context.Background(), w, shard, "it"))
			require.Equal(t, "it", <-u.failed)
			w.Close()
			require.Eventually(t, func() bool { return !u.has("it") }, testbed.Hang, time.Millisecond)
		})
	}
}

// wandering is a port of a channel that leaves a server for another server, which is not known from
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
		return event{}, redisport.Never(errors.New("MOVED 1 there:1"))
	case <-ctx.Done():
		return event{}, ctx.Err()
	}
}

func TestAWatchFollowsItsChannelToLaterServers(t *testing.T) {
	here, there, p := newRefugee("here"), newRefugee("there"), new(wandering)
	p.home.Store(here)
	h := newHub(p)
	defer h.close(context.Background())
	w := newWatch(hearReleases)
	require.NoError(t, h.bind(context.Background(), w, true, "it"))
	require.Equal(t, "it", <-here.failed)
	p.home.Store(nil)
	close(here.left)
	<-w.C() // it asks, for want of anything better
	p.home.Store(there)
	require.Eventually(t, func() bool { return there.has("it") }, testbed.Hang, time.Millisecond)
	w.Close()
	require.Eventually(t, func() bool { return !there.has("it") }, testbed.Hang, time.Millisecond)
}

// mesh is a port of a cluster. No server has any subscriber.
type mesh struct {
	port
	opened chan *wire

	mu    sync.Mutex
	homes map[string]string
}

// newMesh returns a mesh with channels on one server.
func newMesh(channels ...string) *mesh {
	p := &mesh{opened: make(chan *wire, 10), homes: make(map[string]string)}
	for _, channel := range channels {
		p.homes[channel] = "here"
	}
	return p
}

func (p *mesh) Cluster() bool { return true }

func (p *mesh) Subscribers(context.Context, bool, string) (int64, error) { return 0, nil }

func (p *mesh) Home(_ context.Context, channel string) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.homes[channel], nil
}

func (p *mesh) Subscriber(_ context.Context, _ bool, sample string) (subscriber, error) {
	w := &wire{
		sample: sample, asked: make(chan string, 100), events: make(chan event, 100),
		refusals: make(chan error, 10), closed: make(chan struct{}),
	}
	p.opened <- w
	return w, nil
}

// wire is a connection for subscriptions, whose server is the test.
type wire struct {
	sample   string
	asked    chan string
	events   chan event
	refusals chan error
	closed   chan struct{}
}

func (w *wire) Subscribe(_ context.Context, channels ...string) error {
	for _, channel := range channels {
		w.asked <- channel
	}
	return nil
}

func (w *wire) Unsubscribe(context.Context, ...string) error { return nil }

func (w *wire) Ping(context.Context) error {
	w.events <- event{}
	return nil
}

func (w *wire) Receive(ctx context.Context) (event, error) {
	select {
	case e := <-w.events:
		return e, nil
	case err := <-w.refusals:
		return event{}, err
	case <-w.closed:
		return event{}, net.ErrClosed
	case <-ctx.Done():
		return event{}, ctx.Err()
	}
}

func (w *wire) Close() error {
	close(w.closed)
	return nil
}

// waits returns a hub with a watch of channels.
func waits(t *testing.T, p *mesh, channels ...string) *hub {
	h := newHub(p)
	t.Cleanup(func() { h.close(context.Background()) })
	w := newWatch(hearReleases)
	for _, channel := range channels {
		require.NoError(t, h.bind(context.Background(), w, true, channel))
	}
	return h
}

func TestASubscriptionWithoutAnswerIsRequestedAgain(t *testing.T) {
	t.Parallel()
	p := newMesh("it")
	waits(t, p, "it")
	w := <-p.opened
	require.Equal(t, "it", <-w.asked)
	require.Equal(t, "it", <-w.asked)
}

func TestAConnectionWithoutItsSubscriptionsIsReplaced(t *testing.T) {
	t.Parallel()
	const own = waitingList + ":{it}:client"
	p := newMesh(own)
	waits(t, p, own)
	w := <-p.opened
	require.Equal(t, own, <-w.asked)
	w.events <- event{Kind: redisport.Subscribed, Channel: own}
	require.Equal(t, own, <-(<-p.opened).asked)
	<-w.closed
}

func TestAConnectionThatRefusesSubscriptionsIsReplaced(t *testing.T) {
	t.Parallel()
	p := newMesh("it")
	waits(t, p, "it")
	w := <-p.opened
	for range cap(w.refusals) {
		w.refusals <- redisport.Never(errors.New("MOVED 1 there:1"))
	}
	require.Equal(t, "it", <-(<-p.opened).asked)
	<-w.closed
}

func TestAConnectionWithoutPermissionsIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newMesh("it")
		h := waits(t, p, "it")
		w := <-p.opened
		for range cap(w.refusals) {
			w.refusals <- redisport.Never(errors.New("NOPERM this user has no permissions"))
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Empty(t, w.refusals)
		require.Empty(t, p.opened)
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, l := range h.links {
			for _, topic := range l.topics {
				for watch := range topic.watches {
					require.Len(t, watch.topics, 1, "it forgets the topics that it has left")
				}
			}
		}
	})
}

func TestANewConnectionGoesToTheServerOfItsChannels(t *testing.T) {
	t.Parallel()
	moving := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	p := newMesh(append(moving, "it")...)
	h := waits(t, p, append(moving, "it")...)
	<-p.opened
	p.mu.Lock()
	for _, channel := range moving {
		p.homes[channel] = "there"
	}
	p.mu.Unlock()
	h.links["shard here"].drop()
	require.Equal(t, "it", (<-p.opened).sample)
}

// lone is a port of one server without a subscriber.
type lone struct{ *mesh }

func (lone) Cluster() bool { return false }

func TestAWaiterForRedissonsPermitsNoticesAFailover(t *testing.T) {
	t.Parallel()
	p := newMesh()
	c, err := newCore(lone{p}, &redisport.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { c.hub.close(context.Background()) })
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // nobody waits for the confirmations
	_, err = c.watchFree(ctx, "it")
	require.NoError(t, err)
	former := <-p.opened
	go func() {
		for {
			select {
			case channel := <-former.asked:
				former.events <- event{Kind: redisport.Subscribed, Channel: channel}
			case <-former.closed:
				return
			}
		}
	}()
	select {
	case <-p.opened:
	case <-time.After(testbed.Hang):
		t.Fatal("it stays with the former master")
	}
}

func TestAConfirmationOfAFormerConnectionCountsForNothing(t *testing.T) {
	t.Parallel()
	p := newMesh("it")
	h := waits(t, p, "it")
	require.Equal(t, "it", <-(<-p.opened).asked)
	l := h.links["shard here"]
	l.mu.Lock()
	former := l.conn
	l.mu.Unlock()
	l.drop()
	second := <-p.opened
	l.confirm(former, "it")
	n, _ := h.subscribed("it")
	require.Zero(t, n)
	require.Equal(t, "it", <-second.asked)
	second.events <- event{Kind: redisport.Subscribed, Channel: "it"}
	require.Eventually(t, func() bool { n, _ := h.subscribed("it"); return n == 1 }, testbed.Hang, time.Millisecond)
}
