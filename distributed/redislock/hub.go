package redislock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

const (
	// confirmTimeout is how long a waiter waits for its subscription to be confirmed before it
	// relies on asking again in turn.
	confirmTimeout = time.Second
	// pingEvery is how long a subscription connection may be silent before the hub checks it. The
	// hub replaces the connection if the check gets no answer for the same time.
	pingEvery = 3 * time.Second
)

// linger is the least time that the subscription of a [waiter] outlasts it.
const linger = 2 * time.Second

// hub has all subscriptions of a client: one connection for the classic channels, and one for the
// sharded channels of each server. A subscription lasts as long as the channel has watches. The
// subscriptions of a [waiter] last a little longer, so that the next waiter needs no request.
//
// A message is lost if the connection is. So whenever a subscription is confirmed, all watches of
// its channel are notified, and their acquisitions request the lock again.
type hub struct {
	p    port
	life context.Context
	end  context.CancelFunc
	wg   sync.WaitGroup

	mu    sync.Mutex
	links map[string]*link // by server, or under "" for the classic channels
}

func newHub(p port) *hub {
	h := &hub{p: p, links: make(map[string]*link)}
	h.life, h.end = context.WithCancel(context.Background())
	return h
}

// close ends all subscriptions, and waits for their end until ctx ends, for the release timeout at
// most: a client that connects cannot be interrupted.
func (h *hub) close(ctx context.Context) {
	h.end()
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.mu.Lock()
		links := h.links
		h.links = nil
		h.mu.Unlock()
		for _, l := range links {
			l.drop()
		}
		h.wg.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
	case <-time.After(lease.DefaultReleaseTimeout):
	}
}

// watch is a [driver.Watch] of one channel or more.
type watch struct {
	adapter.Bell

	// hear takes note of a message, and reports whether the message is a reason for the
	// acquisition to request the lock. Then the watch is notified. hear does not block.
	hear func(channel, payload string) bool

	holder  bool        // the watch belongs to a client with holds, and no acquisition waits for a message
	waiting *clientFeed // set by a [waiter], or nil

	mu     sync.Mutex
	closed bool
	topics []*topic
}

// clientFeed has the demands of a [waiter] on the channel of its client beyond messages.
type clientFeed struct {
	channel string

	// stray is called with the name of a woken waiter that no watch knows: the waiter has ended.
	// stray does not block.
	stray func(entry string)
}

var _ driver.Watch = (*watch)(nil)

func newWatch(hear func(channel, payload string) bool) *watch {
	return &watch{Bell: adapter.NewBell(), hear: hear}
}

// hearAll is the hear of a watch that each message notifies.
func hearAll(_, _ string) bool { return true }

// hearReleases is the hear of a watch that each release of the lock notifies.
func hearReleases(_, payload string) bool {
	return payload == wakeOne || payload == wakeAll || payload == woken
}

// drain takes a notification back.
func (w *watch) drain() {
	select {
	case <-w.Bell:
	default:
	}
}

func (w *watch) Close() {
	w.mu.Lock()
	w.closed = true
	topics := w.topics
	w.mu.Unlock()
	for _, t := range topics {
		t.link.unwatch(t, w)
	}
}

// add notes that t notifies w. If w has been closed, add removes w from t.
func (w *watch) add(t *topic) {
	w.mu.Lock()
	closed := w.closed
	w.topics = append(w.topics, t)
	w.mu.Unlock()
	if closed {
		t.link.unwatch(t, w)
	}
}

// remove forgets a topic that no longer notifies w.
func (w *watch) remove(t *topic) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.topics = slices.DeleteFunc(slices.Clone(w.topics), func(other *topic) bool { return other == t })
}

// topic is a channel that has watches, or had one a moment ago.
type topic struct {
	link    *link
	channel string

	// Guarded by link.mu.
	watches map[*watch]struct{}
	state   subscription
	sent    time.Time     // when the subscription became requested
	ready   chan struct{} // closed with the first confirmation
	lingers bool          // the subscription outlasts the last watch by linger
	rest    time.Time     // when the last watch left
	stray   func(string)  // stray of the client's feed, if this is the channel of a client
}

// subscription is the state of the subscription of a topic, on the present connection of its link.
//
//	state      the server              what the writer does     events, and the next state
//	absent     does not know it        sends a request          request sent: requested
//	requested  may know it             waits for the answer     confirmation: confirmed
//	                                                            request failed, or no answer for
//	                                                            pingEvery: uncertain
//	confirmed  sends the messages      nothing                  error of the connection: requested
//	uncertain  may know it, now or     sends the request again  request sent: requested
//	           when the client of the
//	           server reconnects
//
// In each state a new connection makes the subscription absent. After an error of the connection
// the client of the server reconnects, and requests all subscriptions again by itself. Therefore a
// confirmed subscription becomes requested. A confirmation in the states absent and uncertain
// belongs to an earlier request, which a later request to unsubscribe may have ended. Such a
// confirmation notifies the watches, and changes no state: the answer to the next request decides.
//
// When the last watch has left, and the topic lingers no more, the writer removes the topic. The
// writer sends a request to unsubscribe in all states but absent: a release would count the
// subscription as a waiter.
type subscription int

const (
	absent subscription = iota
	uncertain
	requested
	confirmed
)

// onTheWay reports whether the subscription to a topic with watches is requested or confirmed: the
// writer has nothing to send for that topic.
func (s subscription) onTheWay() bool { return s == requested || s == confirmed }

// attach makes w watch channels too, in the forms of m. It waits for the confirmations until ctx
// ends, for confirmTimeout at most, and reports whether all channels of w are active.
func (h *hub) attach(ctx context.Context, w *watch, m mode, channels ...string) (active bool, err error) {
	for _, shard := range m.forms() {
		for _, channel := range channels {
			if err := h.bind(ctx, w, shard, channel); err != nil {
				return false, err
			}
		}
	}
	w.mu.Lock()
	topics := w.topics
	w.mu.Unlock()
	timeout := time.NewTimer(confirmTimeout)
	defer timeout.Stop()
	for _, t := range topics {
		select {
		case <-t.ready:
			continue
		case <-timeout.C:
		case <-ctx.Done():
		case <-h.life.Done():
		}
		return false, nil
	}
	return true, nil
}

// listen makes w a watch of channel if all subscriptions to channel that m needs are active, and
// reports whether they are.
func (h *hub) listen(w *watch, m mode, channel string) bool {
	need := len(m.forms())
	h.mu.Lock()
	for _, l := range h.links {
		if !slices.Contains(m.forms(), l.shard) {
			continue
		}
		if t := l.listen(channel, w); t != nil {
			w.add(t)
			need--
		}
	}
	h.mu.Unlock()
	return need <= 0
}

// bind makes w a watch of channel, in one of its forms.
func (h *hub) bind(ctx context.Context, w *watch, shard bool, channel string) error {
	server := ""
	if shard {
		var err error
		if server, err = h.home(ctx, channel); err != nil {
			return err
		}
	}
	h.mu.Lock()
	l := h.links[server]
	if l == nil {
		if h.links == nil {
			h.mu.Unlock()
			return errHubClosed
		}
		l = &link{
			h:       h,
			shard:   shard,
			server:  server,
			first:   channel,
			topics:  make(map[string]*topic),
			changed: make(map[string]struct{}),
			kick:    adapter.NewBell(),
			seen:    time.Now(),
		}
		h.links[server] = l
		h.wg.Add(1)
		go l.write()
	}
	h.mu.Unlock()
	w.add(l.watch(w, channel))
	return nil
}

// home returns the key of the link of a sharded channel.
func (h *hub) home(ctx context.Context, channel string) (string, error) {
	server, err := h.p.Home(ctx, channel)
	return "shard " + server, err
}

var errHubClosed = errors.New("subscriptions are closed")

// subscribed returns how many confirmed subscriptions to channel this process has, and whether
// the channel has watches.
func (h *hub) subscribed(channel string) (n int64, watched bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.links {
		l.mu.Lock()
		if t := l.topics[channel]; t != nil {
			watched = watched || len(t.watches) > 0
			if t.state == confirmed {
				n++
			}
		}
		l.mu.Unlock()
	}
	return n, watched
}
