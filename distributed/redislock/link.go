package redislock

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/redislock/internal/redisport"
)

// link is one connection for subscriptions. One of its goroutines sends requests, and another
// goroutine receives.
type link struct {
	h      *hub
	shard  bool
	server string       // its key in hub.links
	first  string       // the first channel
	kick   adapter.Bell // there is something to send

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
	if t == nil || t.state != confirmed {
		return nil
	}
	t.watch(w)
	return t
}

func (t *topic) watch(w *watch) {
	t.watches[w] = struct{}{}
	if w.waiting != nil {
		t.lingers = true
		if t.channel == w.waiting.channel {
			t.stray = w.waiting.stray
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
	if !t.lingers || !t.state.onTheWay() {
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

// doubt repeats subscriptions without an answer for long, because the request or its refusal may be
// lost. It reports whether it repeats any.
func (l *link) doubt() (some bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.topics {
		if t.state == requested && time.Since(t.sent) >= pingEvery {
			t.state, some = uncertain, true
			l.change(t)
		}
	}
	return some
}

// change makes the writer look at t. l.mu is held.
func (l *link) change(t *topic) {
	l.changed[t.channel] = struct{}{}
	l.kick.Ring()
}

// pending returns the channels to subscribe to, and to unsubscribe from.
func (l *link) pending() (subscribe, unsubscribe []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for channel := range l.changed {
		t := l.topics[channel]
		if t == nil || len(t.watches) > 0 || t.lingers && t.state.onTheWay() {
			continue
		}
		if t.state != absent {
			unsubscribe = append(unsubscribe, channel)
		}
		delete(l.topics, channel)
	}
	for channel := range l.changed {
		if t := l.topics[channel]; t != nil && !t.state.onTheWay() {
			t.state, t.sent = requested, time.Now()
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
			t.state = uncertain
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
	l.kick.Ring()
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
	lost := err == nil && n == 0 && own.state == confirmed && l.topics[own.channel] == own
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
		if t.state == confirmed && (strings.HasPrefix(channel, clientPrefix) || strings.HasPrefix(channel, waitingList)) {
			return t
		}
	}
	return nil
}

// awaited reports whether a waiter needs the subscriptions. l.mu is held.
func (l *link) awaited() bool {
	for _, t := range l.topics {
		for w := range t.watches {
			if !w.holder {
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
		t.state = absent
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
		if !l.uses(conn, err) {
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
		case redisport.Message:
			l.message(ev.Channel, ev.Payload)
		case redisport.Subscribed:
			l.confirm(conn, ev.Channel)
		case redisport.Unsubscribed:
			if l.shard {
				l.leave(ev.Channel)
			}
		}
	}
}

// uses notes that conn has received something, or failed with err. It reports whether conn is
// still in use.
func (l *link) uses(conn subscriber, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != conn || l.h.life.Err() != nil {
		return false
	}
	if err == nil || errors.Is(err, driver.ErrRefused) {
		l.seen = time.Now()
		return true
	}
	for _, t := range l.topics {
		if t.state.onTheWay() {
			t.state, t.sent = requested, time.Now()
		}
	}
	return true
}

// confirm notes that the server of conn has confirmed a subscription to channel. A message may
// have been lost before, so all watches are notified.
func (l *link) confirm(conn subscriber, channel string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.topics[channel]
	if t == nil || l.conn != conn {
		return
	}
	if t.state == requested {
		t.state = confirmed
		select {
		case <-t.ready:
		default:
			close(t.ready)
		}
	}
	for w := range t.watches {
		w.Ring()
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
	known := false // to a watch
	for w := range t.watches {
		if w.hear(channel, payload) {
			w.Ring()
			known = true
		}
	}
	if !known && t.stray != nil {
		t.stray(payload)
	}
}

// leave notes that the server has ended a subscription. If this client has not unsubscribed, the
// slot has moved.
func (l *link) leave(channel string) {
	l.mu.Lock()
	t := l.topics[channel]
	moved := t != nil && t.state == confirmed
	if moved && len(t.watches) == 0 {
		delete(l.topics, channel)
		moved = false
	}
	l.mu.Unlock()
	if moved {
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
		m.w.Ring() // a message may be lost, and an active subscription sends no confirmation
	}
}
