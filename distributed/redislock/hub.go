package redislock

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/redislock/internal/driver"
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

// watch is a [lease.Watch] of one channel or more.
type watch struct {
	c      chan struct{}
	waiter *waiter                  // whose it is, or nil
	stray  func(acquisition string) // called with the name of a woken waiter that is not here; does not block
	all    bool                     // any message is a reason to ask
	forced func(message string)     // called with each message instead of a notification; does not block

	mu     sync.Mutex
	closed bool
	topics []*topic
}

var _ lease.Watch = (*watch)(nil)

func (w *watch) C() <-chan struct{} { return w.c }

func (w *watch) notify() {
	select {
	case w.c <- struct{}{}:
	default:
	}
}

// drain takes a notification back.
func (w *watch) drain() {
	select {
	case <-w.c:
	default:
	}
}

// hear reports whether a message is a reason to ask.
func (w *watch) hear(channel, payload string) bool {
	if w.waiter != nil {
		return w.waiter.hear(channel, payload)
	}
	return w.all || payload == wakeOne || payload == wakeAll || payload == woken
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
	asked   bool          // a subscription was sent over the present connection
	sent    time.Time     // when
	tried   bool          // a subscription may have been sent: the client repeats it when it reconnects
	active  bool          // the subscription is confirmed
	ready   chan struct{} // closed with the first confirmation
	lingers bool          // the subscription outlasts the last watch
	rest    time.Time     // since when there is no watch
	stray   func(string)  // stray of the last watch, if this is the channel of a client
}

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
			kick:    make(chan struct{}, 1),
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
			if t.active {
				n++
			}
		}
		l.mu.Unlock()
	}
	return n, watched
}

// link is one connection for subscriptions. One of its goroutines sends requests, and another
// goroutine receives.
type link struct {
	h      *hub
	shard  bool
	server string        // its key in hub.links
	first  string        // the first channel
	kick   chan struct{} // there is something to send

	mu      sync.Mutex
	conn    subscriber
	topics  map[string]*topic
	changed map[string]struct{} // channels for which there may be something to send
	wrong   subscriber          // a connection that may go to another server, or nil
	seen    time.Time           // when something was received
	pinged  time.Time           // when the last check was sent
}

// watch makes w a watch of channel.
func (l *link) watch(w *watch, channel string) *topic {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topics[channel]
	if t == nil {
		t = &topic{link: l, channel: channel, watches: make(map[*watch]struct{}), ready: make(chan struct{})}
		l.topics[channel] = t
	}
	t.watch(w)
	l.change(t)
	return t
}

// listen is watch if channel has an active subscription, and returns nil if not.
func (l *link) listen(channel string, w *watch) *topic {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topics[channel]
	if t == nil || !t.active {
		return nil
	}
	t.watch(w)
	return t
}

func (t *topic) watch(w *watch) {
	t.watches[w] = struct{}{}
	if w.waiter != nil {
		t.lingers = true
		if t.channel == w.waiter.own {
			t.stray = w.stray
		}
	}
}

func (l *link) unwatch(t *topic, w *watch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := t.watches[w]; !ok {
		return
	}
	delete(t.watches, w)
	if len(t.watches) > 0 {
		return
	}
	if !t.lingers || !t.asked {
		l.change(t)
		return
	}
	t.rest = time.Now()
}

// fade ends the subscriptions that have lingered long enough, and reports whether it ended any.
func (l *link) fade() (some bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.topics {
		if t.lingers && len(t.watches) == 0 && time.Since(t.rest) >= linger {
			t.lingers, some = false, true
			l.change(t)
		}
	}
	return some
}

// doubt repeats subscriptions that have had no answer for long, because the request or its refusal
// may be lost. It reports whether it repeats any.
func (l *link) doubt() (some bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.topics {
		if t.asked && !t.active && time.Since(t.sent) >= pingEvery {
			t.asked, some = false, true
			l.change(t)
		}
	}
	return some
}

// change makes the writer look at t. l.mu is held.
func (l *link) change(t *topic) {
	l.changed[t.channel] = struct{}{}
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// pending returns the channels to subscribe to, and to unsubscribe from.
func (l *link) pending() (subscribe, unsubscribe []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for channel := range l.changed {
		t := l.topics[channel]
		if t == nil || len(t.watches) > 0 || t.lingers && t.asked {
			continue
		}
		if t.asked || t.tried { // otherwise a release would count it as a waiter
			unsubscribe = append(unsubscribe, channel)
		}
		delete(l.topics, channel)
	}
	for channel := range l.changed {
		if t := l.topics[channel]; t != nil && !t.asked {
			t.asked, t.tried, t.sent = true, true, time.Now()
			subscribe = append(subscribe, channel)
		}
	}
	clear(l.changed)
	return subscribe, unsubscribe
}

// again makes the writer repeat a request for channels that failed.
func (l *link) again(channels []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, channel := range channels {
		if t := l.topics[channel]; t != nil {
			t.asked, t.active = false, false
			l.changed[channel] = struct{}{}
		}
	}
}

// write sends pending requests, and checks the connection.
func (l *link) write() {
	defer l.h.wg.Done()
	ctx := l.h.life
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	rest := time.NewTicker(linger / 2)
	defer rest.Stop()
	pause := time.Duration(0)
	for {
		var retry <-chan time.Time
		if pause > 0 {
			retry = time.After(pause)
		}
		select {
		case <-l.kick:
		case <-retry:
		case <-tick.C:
			l.check(ctx)
		case <-rest.C:
			l.look(ctx)
			if !l.fade() && !l.doubt() && pause == 0 {
				continue
			}
		case <-ctx.Done():
			l.drop()
			return
		}
		if l.isWrong() {
			l.drop()
		}
		conn, err := l.connection(ctx)
		subscribe, unsubscribe := l.pending()
		if err == nil && len(unsubscribe) > 0 {
			err = conn.Unsubscribe(ctx, unsubscribe...)
		}
		if err == nil && len(subscribe) > 0 {
			err = conn.Subscribe(ctx, subscribe...)
		}
		if err == nil {
			pause = 0
			continue
		}
		l.again(subscribe)
		pause = min(max(2*pause, 20*time.Millisecond), time.Second)
	}
}

// doubtServer makes the writer replace conn, which goes on to refuse subscriptions.
func (l *link) doubtServer(conn subscriber) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = conn
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// isWrong reports whether the connection may go to another server.
func (l *link) isWrong() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	wrong := l.wrong != nil && l.wrong == l.conn
	l.wrong = nil
	return wrong
}

// connection returns the connection, and opens it if there is none.
func (l *link) connection(ctx context.Context) (subscriber, error) {
	l.mu.Lock()
	conn := l.conn
	l.mu.Unlock()
	if conn != nil {
		return conn, nil
	}
	conn, err := l.h.p.Subscriber(ctx, l.shard, l.sample(ctx))
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil {
		conn.Close()
		return nil, ctx.Err()
	}
	l.conn = conn
	l.seen = time.Now()
	l.h.wg.Add(1)
	go l.read(conn)
	return conn, nil
}

// sample returns a channel that is on the server now, since the slots of other channels may have
// moved. If no channel is known to be on the server, sample returns any channel of the link.
func (l *link) sample(ctx context.Context) string {
	if !l.shard {
		return l.first
	}
	l.mu.Lock()
	channels := slices.Collect(maps.Keys(l.topics))
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	for _, channel := range channels {
		if home, err := l.h.home(ctx, channel); err == nil && home == l.server {
			return channel
		}
	}
	return append(channels, l.first)[0]
}

// check replaces the connection if it has not answered the last check.
func (l *link) check(ctx context.Context) {
	l.mu.Lock()
	conn, silent := l.conn, time.Since(l.seen)
	unanswered := l.pinged.After(l.seen)
	idle := !l.awaited()
	l.mu.Unlock()
	switch {
	case conn == nil || silent < pingEvery/2:
	case unanswered:
		l.drop()
	case !idle:
		l.mu.Lock()
		l.pinged = time.Now()
		l.mu.Unlock()
		conn.Ping(ctx)
	}
}

// look replaces the connection if the server of the requests does not have the connection's
// subscriptions. After a failover the connection may still go to the former master, which still
// answers. In a cluster look does not check classic channels: no server knows all their
// subscribers.
func (l *link) look(ctx context.Context) {
	own := l.own()
	if own == nil || l.h.p.Cluster() && !l.shard {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	n, err := l.h.p.Subscribers(ctx, l.shard, own.channel)
	l.mu.Lock()
	lost := err == nil && n == 0 && own.active && l.topics[own.channel] == own
	l.mu.Unlock()
	if lost {
		l.drop()
	}
}

// own returns a topic that no other client subscribes to, or nil if there is none or no waiter
// here.
func (l *link) own() (own *topic) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.awaited() {
		return nil
	}
	for channel, t := range l.topics {
		if t.active && (strings.HasPrefix(channel, clientPrefix) || strings.HasPrefix(channel, waitingList)) {
			return t
		}
	}
	return nil
}

// awaited reports whether a waiter needs the subscriptions. l.mu is held.
func (l *link) awaited() bool {
	for _, t := range l.topics {
		for w := range t.watches {
			if w.forced == nil {
				return true
			}
		}
	}
	return false
}

// drop closes the connection. The writer opens another connection.
func (l *link) drop() {
	l.mu.Lock()
	conn := l.conn
	l.conn = nil
	l.pinged = time.Time{}
	for _, t := range l.topics {
		t.asked, t.tried, t.active = false, false, false
		l.change(t)
	}
	l.mu.Unlock()
	if conn != nil {
		conn.Close()
	}
}

// read receives from conn until conn is closed.
func (l *link) read(conn subscriber) {
	defer l.h.wg.Done()
	ctx := l.h.life
	pause := time.Duration(0)
	for {
		ev, err := conn.Receive(ctx)
		if !l.heard(conn, err) {
			return
		}
		if err != nil {
			pause = min(max(2*pause, 10*time.Millisecond), time.Second)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
			if l.shard {
				l.move() // the slots may have moved
				// A server that lacks a permission refuses on every connection.
				if pause >= time.Second/10 && strings.Contains(err.Error(), "MOVED") {
					l.doubtServer(conn)
				}
			}
			continue
		}
		pause = 0
		switch ev.Kind {
		case driver.Message:
			l.message(ev.Channel, ev.Payload)
		case driver.Subscribed:
			l.confirmed(ev.Channel)
		case driver.Unsubscribed:
			if l.shard {
				l.left(ev.Channel)
			}
		}
	}
}

// heard notes that conn has received something, or failed with err. It reports whether conn is
// still in use.
func (l *link) heard(conn subscriber, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != conn || l.h.life.Err() != nil {
		return false
	}
	if err == nil || errors.Is(err, lease.ErrRefused) {
		l.seen = time.Now()
	} else {
		for _, t := range l.topics { // the client of the server subscribes again by itself
			t.active, t.sent = false, time.Now()
		}
	}
	return true
}

// confirmed notes that the subscription to channel is active. A message may have been lost
// before, so all watches are notified.
func (l *link) confirmed(channel string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topics[channel]
	if t == nil {
		return
	}
	if !t.active {
		t.active = true
		select {
		case <-t.ready:
		default:
			close(t.ready)
		}
	}
	for w := range t.watches {
		w.notify()
	}
}

// message gives a message to the watches of channel.
func (l *link) message(channel, payload string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topics[channel]
	if t == nil {
		return
	}
	taken := false
	for w := range t.watches {
		if w.forced != nil {
			w.forced(payload)
		} else if w.hear(channel, payload) {
			w.notify()
			taken = true
		}
	}
	if !taken && t.stray != nil {
		t.stray(payload)
	}
}

// left notes that the server has ended a subscription. If this client has not unsubscribed, the
// slot has moved.
func (l *link) left(channel string) {
	l.mu.Lock()
	t := l.topics[channel]
	gone := t != nil && t.active
	if gone && len(t.watches) == 0 {
		delete(l.topics, channel)
		gone = false
	}
	l.mu.Unlock()
	if gone {
		l.move()
	}
}

// move subscribes to the channels on the servers that have their slots now. A channel stays here
// if its server is unknown. The next error of this server, or of the connection, repeats the move.
func (l *link) move() {
	type moved struct {
		w *watch
		t *topic
	}
	l.mu.Lock()
	var all []moved
	for channel, t := range l.topics {
		if len(t.watches) == 0 { // the subscription only lingers
			t.lingers = false
			l.change(t)
			continue
		}
		for w := range t.watches { // the watches may close meanwhile
			all = append(all, moved{w, t})
		}
		delete(l.topics, channel)
	}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(l.h.life, confirmTimeout) // the link is deaf meanwhile
	defer cancel()
	for _, m := range all {
		m.w.remove(m.t)
		if l.h.bind(ctx, m.w, true, m.t.channel) != nil {
			m.w.add(l.watch(m.w, m.t.channel))
		}
		m.w.notify() // a message may be lost, and an active subscription sends no confirmation
	}
}
