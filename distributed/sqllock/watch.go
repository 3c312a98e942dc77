package sqllock

import (
	"context"
	"sync"
	"time"

	"github.com/jucgo/locks/distributed/lease"
)

// Listener listens for notifications of PostgreSQL: it runs LISTEN channel, calls ready as soon as that is in force, and notify with the
// payload of each notification, until ctx ends or its connection fails, whose error it returns. It is called
// again then, after a pause. channel is an identifier with no need for escapes, but with a need for quotes.
//
// Package pgxnotify has one for pgx. See the example for lib/pq.
type Listener func(ctx context.Context, channel string, ready func(), notify func(payload string)) error

// watch tells a waiter to ask again: when a notification comes, and in any case after pauses that become longer, and short again
// with a notification. That also covers one that comes just before the lock is free for others.
type watch struct {
	c        chan struct{}
	min, max time.Duration
	gone     func()

	mu    sync.Mutex
	pause time.Duration
	timer *time.Timer // nil: closed
}

func newWatch(atLeast, atMost time.Duration, gone func()) *watch {
	w := &watch{c: make(chan struct{}, 1), min: atLeast, max: atMost, gone: gone, pause: atLeast}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(jitter(w.pause), w.tick)
	return w
}

func (w *watch) tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		return
	}
	w.pause = min(w.pause+w.pause/2+1, w.max)
	w.timer.Reset(jitter(w.pause))
	w.tell()
}

func (w *watch) tell() {
	select {
	case w.c <- struct{}{}:
	default: // it is told already, and has not asked yet
	}
}

// notified is for a notification.
func (w *watch) notified() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		return
	}
	w.pause = w.min
	w.timer.Reset(jitter(w.pause))
	w.tell()
}

func (w *watch) C() <-chan struct{} { return w.c }

func (w *watch) Close() {
	w.mu.Lock()
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	w.mu.Unlock()
	if w.gone != nil {
		w.gone()
	}
}

// watch returns a watch for the lock called name.
func (c *core) watch(name string) lease.Watch {
	if c.hub == nil {
		return newWatch(c.min, c.max, nil)
	}
	return c.hub.watch(name, c.min)
}

// quiet is the longest pause of a waiter that is notified. The engine's poll interval, if it is shorter, goes before.
const quiet = lease.DefaultPoll

// hub listens for all waiters of a client, from the first one on until it is closed.
type hub struct {
	listen  Listener
	channel string

	mu      sync.Mutex
	watches map[string]map[*watch]struct{}
	cancel  context.CancelFunc // nil: not begun
	closed  bool
	done    chan struct{}
}

func newHub(l Listener, channel string) *hub {
	return &hub{listen: l, channel: channel, watches: make(map[string]map[*watch]struct{}), done: make(chan struct{})}
}

func (h *hub) watch(name string, atLeast time.Duration) *watch {
	h.mu.Lock()
	defer h.mu.Unlock()
	var w *watch
	w = newWatch(atLeast, quiet, func() { h.forget(name, w) })
	ws := h.watches[name]
	if ws == nil {
		ws = make(map[*watch]struct{})
		h.watches[name] = ws
	}
	ws[w] = struct{}{}
	if h.cancel == nil && !h.closed {
		var ctx context.Context
		ctx, h.cancel = context.WithCancel(context.Background())
		go h.run(ctx)
	}
	return w
}

func (h *hub) forget(name string, w *watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ws := h.watches[name]
	delete(ws, w)
	if len(ws) == 0 {
		delete(h.watches, name)
	}
}

func (h *hub) run(ctx context.Context) {
	defer close(h.done)
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		began := time.Now()
		h.listen(ctx, h.channel, h.ready, h.notify)
		if time.Since(began) > time.Second {
			pause = 10 * time.Millisecond
		}
		if !sleep(ctx, jitter(pause)) {
			return
		}
	}
}

// ready has everybody ask: what came before it was in force, nobody has heard.
func (h *hub) ready() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, ws := range h.watches {
		for w := range ws {
			w.notified()
		}
	}
}

func (h *hub) notify(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for w := range h.watches[name] {
		w.notified()
	}
}

// close ends the listening, and waits for its end until ctx ends.
func (h *hub) close(ctx context.Context) {
	h.mu.Lock()
	cancel := h.cancel
	h.closed = true
	h.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel()
	select {
	case <-h.done:
	case <-ctx.Done():
	}
}
