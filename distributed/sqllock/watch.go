package sqllock

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// Listener listens for notifications of PostgreSQL. It runs LISTEN channel, calls ready as soon as
// the LISTEN is in force, and calls notify with the payload of each notification. It returns when
// ctx ends, or with the error of its connection; after such an error it is called again, after a
// pause. The channel is an identifier that needs quotes but no escapes.
//
// Package pgxnotify has a Listener for pgx. See the example for lib/pq.
type Listener func(ctx context.Context, channel string, ready func(), notify func(payload string)) error

// watch tells a waiter to ask again: when a notification comes, and in any case after pauses that
// grow. PostgreSQL delivers a notification once others can see the transaction that was committed
// with it. So a notified waiter asks once. If another waiter was quicker, its release will notify
// too, so the notified waiter asks again only after the longest pause of waiters without
// notifications. Where a notification is for the first waiter of a queue, the others ask after such
// a pause as well.
//
// Without notifications, a waiter that asks more often has the lock more often. So while a lock
// changes hands, the pauses of all its waiters soon become equal, and the pauses of overtaken
// waiters become shorter. Pauses become long only while the same holder has the lock:
//
//	pause is at most                      so that a waiting process sends, with the defaults
//	crowded, which is 8 times the first   62 to 125 requests a second, after six in the first 25 ms
//	a fiftieth of the time in which       10 to 20 a second, if nobody else has had the lock for 5 s
//	nobody else is known to have had it,
//	up to the longest
//	overtaken: crowded is a quarter       125 to 250 a second, after three times
//	less each time, but 4 times the
//	first at least
//
// Some answers show whether another owner has had the lock since: by the token of a [Table], or by
// the session that holds a GET_LOCK. The answers for an [Advisory] of PostgreSQL, and for a [Row],
// do not.
type watch struct {
	adapter.Bell
	owner    string // the acquisition that waits
	min, max time.Duration
	listens  bool
	notice   time.Duration // the first pause after a notification
	gone     func()

	mu      sync.Mutex
	pause   time.Duration
	crowded time.Duration
	holder  int64       // what the last answer told of it, or 0
	since   time.Time   // when that was new
	timer   *time.Timer // nil: closed
}

func newWatch(o options, owner string, hears bool, gone func()) *watch {
	w := &watch{
		Bell: adapter.NewBell(), owner: owner, min: o.min, max: o.max, listens: o.listen != nil, notice: o.max,
		gone: gone, pause: o.min, crowded: 8 * o.min, since: time.Now(),
	}
	if w.listens {
		w.max = max(quiet, o.max)
	}
	if hears {
		w.pause = w.notice
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(adapter.Jitter(w.pause), w.tick)
	return w
}

func (w *watch) tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		return
	}
	most := w.max
	if !w.listens {
		most = min(most, max(w.crowded, time.Since(w.since)/50))
	}
	w.pause = min(w.pause+w.pause/2+1, most)
	w.timer.Reset(adapter.Jitter(w.pause))
	w.Ring()
}

// onRefusal notes an answer that says which hold has the lock.
func (w *watch) onRefusal(holder int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.holder
	w.holder = holder
	if w.timer == nil || w.listens || before == 0 || before == holder {
		return
	}
	w.crowded = max(w.crowded-w.crowded/4, 4*w.min)
	w.since = time.Now()
	if w.pause > w.crowded {
		w.pause = w.crowded
		w.timer.Reset(adapter.Jitter(w.pause))
	}
}

// onNotice handles a notification that the lock is free, or may be.
func (w *watch) onNotice() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer == nil {
		return
	}
	w.restart()
	w.Ring()
}

// restart begins the pauses anew. w.mu is held.
func (w *watch) restart() {
	w.pause = w.notice
	w.timer.Reset(adapter.Jitter(w.pause))
}

// onTurn handles a notification that it is the turn of the waiter called owner.
func (w *watch) onTurn(owner string) {
	if w.owner == owner {
		w.onNotice()
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.restart()
	}
}

func (w *watch) Close() {
	w.mu.Lock()
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
	w.mu.Unlock()
	w.gone()
}

// waiters has the watches of a client, by the name of the lock.
type waiters struct {
	mu      sync.Mutex
	watches map[string]map[*watch]struct{}
}

func (ws *waiters) add(name string, w *watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.watches == nil {
		ws.watches = make(map[string]map[*watch]struct{})
	}
	if ws.watches[name] == nil {
		ws.watches[name] = make(map[*watch]struct{})
	}
	ws.watches[name][w] = struct{}{}
}

func (ws *waiters) remove(name string, w *watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.watches[name], w)
	if len(ws.watches[name]) == 0 {
		delete(ws.watches, name)
	}
}

// of returns the watch of an acquisition, or nil.
func (ws *waiters) of(id driver.HoldID) *watch {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for w := range ws.watches[id.Name] {
		if w.owner == id.Acquisition {
			return w
		}
	}
	return nil
}

// each calls f with the watches of the lock called name.
func (ws *waiters) each(name string, f func(*watch)) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for w := range ws.watches[name] {
		f(w)
	}
}

// all makes all waiters ask: notifications from before LISTEN was in force were lost.
func (ws *waiters) all() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, of := range ws.watches {
		for w := range of {
			w.onNotice()
		}
	}
}

// watch returns the watch of an acquisition, and begins the watch if there is none.
func (c *core) watch(id driver.HoldID) driver.Watch {
	w := c.waiters.of(id)
	if w != nil && id.Acquisition != "" {
		return w
	}
	w = newWatch(c.options, id.Acquisition, c.hears.Load(), func() { c.waiters.remove(id.Name, w) })
	c.waiters.add(id.Name, w)
	c.listenOn()
	return w
}

// onRefusal notes an answer that says which hold has the lock called name. holder is a number of
// that hold.
func (c *core) onRefusal(name string, holder int64) {
	c.waiters.each(name, func(w *watch) { w.onRefusal(holder) })
}

// quiet is the longest pause of a waiter that is notified. The engine's poll interval may be
// shorter.
const quiet = lease.DefaultPoll

// listenOn begins the listening, once, if there is a listener: for all waiters of the client, and
// for the holders of a [Table]. It goes on until the client is closed.
func (c *core) listenOn() {
	if c.listen != nil {
		c.listening.Do(func() { c.jobs.Go(c.hear) })
	}
}

// hear listens, and begins anew when the connection is lost.
func (c *core) hear() {
	ready := func() {
		c.hears.Store(true)
		c.waiters.all()
	}
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		began := time.Now()
		c.listen(c.open, c.names.channel, ready, c.onNotice)
		c.hears.Store(false)
		if time.Since(began) > time.Second {
			pause = 10 * time.Millisecond
		}
		if !adapter.Sleep(c.open, adapter.Jitter(pause)) {
			return
		}
	}
}

// onNotice is for a notification. payload is the name of a lock that is free. In front of the name
// may be the word next, and the waiter whose turn it is.
func (c *core) onNotice(payload string) {
	c.waiters.each(payload, (*watch).onNotice)
	if rest, ok := strings.CutPrefix(payload, "next "); ok {
		owner, name, _ := strings.Cut(rest, " ")
		c.waiters.each(name, func(w *watch) { w.onTurn(owner) })
	}
	if c.noticed != nil {
		c.noticed(payload)
	}
}
