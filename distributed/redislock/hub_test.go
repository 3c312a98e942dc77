package redislock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// homeless is a port of which nobody knows where a channel is.
type homeless struct{ port }

func (homeless) Home(context.Context, string) (string, error) { return "", errors.New("nowhere") }

func TestWaitersGiveUpWhileTheirChannelMoves(t *testing.T) {
	h := newHub(homeless{})
	defer h.close(context.Background())
	for range 50 {
		l := &link{h: h, shard: true, topics: make(map[string]*topic), changed: make(map[string]struct{}), kick: make(chan struct{}, 1)}
		var all []*watch
		for range 20 {
			w := &watch{c: make(chan struct{}, 1)}
			w.add(l.watch("it", w))
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

// unreachable is a connection for subscriptions that is down, and has all that were asked for when it is up.
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

// connecting is a port whose connections for subscriptions are u.
type connecting struct {
	port
	u *unreachable
}

func (c connecting) Subscriber(context.Context, bool, string) (subscriber, error) { return c.u, nil }

func TestASubscriptionThatHasFailedIsEndedToo(t *testing.T) {
	u := &unreachable{channels: make(map[string]bool), failed: make(chan string, 1)}
	h := newHub(connecting{u: u})
	defer h.close(context.Background())
	w := &watch{c: make(chan struct{}, 1)}
	require.NoError(t, h.join(context.Background(), w, "it", false))
	require.Equal(t, "it", <-u.failed)
	w.Close()
	require.Eventually(t, func() bool { return !u.has("it") }, 10*time.Second, time.Millisecond)
}
