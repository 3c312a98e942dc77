package onrueidis

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// answerTimeout is how long a subscriber waits for the answer to a request. The client replaces a
// connection that does not answer within its own limit.
const answerTimeout = time.Second

// subscriber is a [redisport.Subscriber] on its own connection. If the connection is lost, it opens
// another.
//
// Requests are sent with mu held, in the order in which they change channels. A new connection
// subscribes to all channels before any other request. So after its answer the server knows exactly
// these channels.
type subscriber struct {
	c       rueidis.Client
	sharded bool
	sample  string // a channel of the server
	done    chan struct{}
	close   func()
	conn    atomic.Pointer[conn]

	mu       sync.Mutex
	channels map[string]struct{}
}

// conn is a connection, with the events that have not been received yet.
type conn struct {
	rueidis.DedicatedClient
	lost  <-chan error // one, or closed
	ready adapter.Bell

	mu  sync.Mutex
	box []arrival
}

type arrival struct {
	redisport.Event
	err error
}

func newSubscriber(c rueidis.Client, sharded bool, sample string) *subscriber {
	s := &subscriber{c: c, sharded: sharded, sample: sample}
	s.done, s.channels = make(chan struct{}), make(map[string]struct{})
	s.close = sync.OnceFunc(func() { close(s.done) })
	return s
}

// put adds a to the events. It must not wait, because the connection's reader calls it.
func (c *conn) put(a arrival) {
	c.mu.Lock()
	c.box = append(c.box, a)
	c.mu.Unlock()
	c.ready.Ring()
}

func (c *conn) take() (a arrival, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.box) == 0 {
		return a, false
	}
	a = c.box[0]
	c.box = c.box[1:]
	return a, true
}

var errLost = errors.New("the connection for subscriptions is lost")

func (s *subscriber) Receive(ctx context.Context) (redisport.Event, error) {
	c := s.conn.Load()
	if c == nil {
		c = s.connect(ctx)
	}
	for {
		if a, ok := c.take(); ok {
			return a.Event, a.err
		}
		select {
		case <-c.ready:
		case err := <-c.lost:
			if s.conn.CompareAndSwap(c, nil) {
				c.Close()
			}
			if err == nil {
				err = errLost
			}
			return redisport.Event{}, err
		case <-s.done:
			return redisport.Event{}, net.ErrClosed
		case <-ctx.Done():
			return redisport.Event{}, ctx.Err()
		}
	}
}

// connect opens a connection, and subscribes to all channels. If that fails, the connection counts
// as lost.
func (s *subscriber) connect(ctx context.Context) *conn {
	dedicated, _ := s.c.Dedicate() // Close gives it back
	c := &conn{DedicatedClient: dedicated, ready: adapter.NewBell()}
	c.lost = dedicated.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage: func(m rueidis.PubSubMessage) {
			c.put(arrival{Event: redisport.Event{Kind: redisport.Message, Channel: m.Channel, Payload: m.Message}})
		},
		OnSubscription: func(e rueidis.PubSubSubscription) {
			kind := redisport.Subscribed
			if strings.HasSuffix(e.Kind, "unsubscribe") {
				kind = redisport.Unsubscribed
			}
			c.put(arrival{Event: redisport.Event{Kind: kind, Channel: e.Channel}})
		},
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn.Store(c)
	select {
	case <-s.done: // Close may have looked for it before
		c.Close()
		return c
	default:
	}
	all := make([]string, 0, len(s.channels))
	for channel := range s.channels {
		all = append(all, channel)
	}
	s.send(ctx, c, true, all)
	return c
}

// send subscribes to channels, or ends subscriptions. An error reply becomes an event. s.mu is
// held.
func (s *subscriber) send(ctx context.Context, c *conn, begin bool, channels []string) error {
	if c == nil || len(channels) == 0 {
		return nil // a new connection subscribes
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var failed error
	for i, r := range c.DoMulti(ctx, s.requests(c.B(), begin, channels)...) {
		err := r.Error()
		if _, refused := rueidis.IsRedisErr(err); refused {
			if s.sharded { // the channel belongs to another server
				delete(s.channels, channels[i])
			}
			c.put(arrival{err: redisport.Never(err)})
		} else if err != nil {
			failed = err
		}
	}
	return failed
}

// requests returns one request for all channels. Sharded channels have one request each, because
// the channels of a request must be in one slot. All go to the server of the sample.
func (s *subscriber) requests(b rueidis.Builder, begin bool, channels []string) (rs []rueidis.Completed) {
	switch {
	case !s.sharded && begin:
		return append(rs, b.Subscribe().Channel(channels...).Build())
	case !s.sharded:
		return append(rs, b.Unsubscribe().Channel(channels...).Build())
	}
	for _, channel := range channels {
		r := b.Sunsubscribe().Channel(channel).Build()
		if begin {
			r = b.Ssubscribe().Channel(channel).Build()
		}
		rs = append(rs, r.SetSlot(s.sample))
	}
	return rs
}

func (s *subscriber) Subscribe(ctx context.Context, channels ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, channel := range channels {
		s.channels[channel] = struct{}{}
	}
	return s.send(ctx, s.conn.Load(), true, channels)
}

func (s *subscriber) Unsubscribe(ctx context.Context, channels ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, channel := range channels {
		delete(s.channels, channel)
	}
	return s.send(ctx, s.conn.Load(), false, channels)
}

// Ping makes the answer an event.
func (s *subscriber) Ping(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conn.Load()
	if c == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	ping := c.B().Ping().Build()
	if s.sharded {
		ping = ping.SetSlot(s.sample)
	}
	err := c.Do(ctx, ping).Error()
	if err == nil {
		c.put(arrival{})
	}
	return err
}

func (s *subscriber) Close() error {
	s.close()
	if c := s.conn.Swap(nil); c != nil {
		c.Close()
	}
	return nil
}
