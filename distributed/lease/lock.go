package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
)

// Mutex is the lock of one name. It belongs to the goroutine that took it, or to the
// [locks.Owner] of its context, which may take it again while it holds it. All Locks of one name and Client
// are the same lock.
//
// An acquisition waits in the local gate first, in order of arrival, and then for the store. A TryLockContext
// waits for neither, but for the store's answer. It may report false though nobody holds the lock, if
// somebody else here is at the gate in vain, or what a cancelled acquisition may have left is being undone.
//
// Unlock, hold inspection and re-entry of a hold that was lost return [locks.ErrLost]. A lost lock
// has to be unlocked as often as it was locked, like any other; it may be taken anew after that.
type Mutex struct {
	c     *Client
	name  string
	lease time.Duration // if it is fixed
	fixed bool          // not renewed
	share bool          // each owner has a hold of its own
	last  atomic.Pointer[entry]
}

var _ locks.Leased = (*Mutex)(nil)

// MutexOption changes how [Client.Mutex] makes a lock.
type MutexOption func(*Mutex)

// WithFixedTTL makes holds last for d and end then: they are not renewed.
func WithFixedTTL(d time.Duration) MutexOption { return func(l *Mutex) { l.lease, l.fixed = d, true } }

// Shared is for a lock that several owners can hold at a time, such as the read half of a read-write lock: each has a hold
// of its own, asks the store itself, and waits for nobody here.
func Shared() MutexOption { return func(l *Mutex) { l.share = true } }

// key is under which name o finds its entry.
func (l *Mutex) key(o locks.Owner) string {
	if !l.share {
		return l.name
	}
	return l.name + "\x00" + strconv.FormatInt(int64(o), 10)
}

// gated returns the entry whose gate o has, or nil. The last entry that was used here is the one if o has its gate, even without a
// look at the client's: it is not forgotten while somebody has it.
func (l *Mutex) gated(o locks.Owner) *entry {
	if e := l.last.Load(); e != nil && e.gate.Owner() == o {
		return e
	}
	if e := l.c.look(l.key(o)); e != nil && e.gate.Owner() == o {
		return e
	}
	return nil
}

// enter returns o's entry with one more user.
func (l *Mutex) enter(o locks.Owner) (*entry, error) {
	if l.share {
		return l.c.enter(l.key(o), nil)
	}
	last := l.last.Load()
	e, err := l.c.enter(l.name, last)
	if err == nil && e != last {
		l.last.Store(e)
	}
	return e, err
}

// Mutex returns the lock called name.
func (c *Client) Mutex(name string, opts ...MutexOption) *Mutex {
	l := &Mutex{c: c, name: name}
	for _, o := range opts {
		o(l)
	}
	return l
}

// Locker returns the lock called name. It is a [*Mutex].
func (c *Client) Locker(name string) locks.TryLocker { return c.Mutex(name) }

// Name returns the name of the lock.
func (l *Mutex) Name() string { return l.name }

// LockKey names the lock among those of its client, which gives [locks.Multi] its order: by name first, so that it is the same in every
// process.
func (l *Mutex) LockKey() string { return l.name + "\x00" + l.c.id }

// check returns the error of op if ctx is nil or has ended.
func check(op string, ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("%s: %w", op, locks.ErrNilContext)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", op, ended(ctx))
	}
	return nil
}

// ended returns the error of ctx, which has ended, with its cause.
func ended(ctx context.Context) error {
	err := ctx.Err()
	if cause := context.Cause(ctx); cause != err {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

func (l *Mutex) fail(op string, err error) error {
	return fmt.Errorf("lease: %s of %q: %w", op, l.shown(), err)
}

// shown is the name, or how it begins if it is longer than any that a store takes.
func (l *Mutex) shown() string {
	if len(l.name) > 4096 {
		return l.name[:64] + "..."
	}
	return l.name
}

// LockContext takes the lock, and waits for it until ctx ends.
//
// If the store cannot be reached at the first attempt, it returns the error at once: the address may be wrong. A store that
// refuses the first request for a reason that passes, such as a server that is starting, is asked again until ctx ends; see
// [WithRetry]. If the store cannot be reached while the call waits already, it is asked again, at least every two seconds.
// If ctx ends before, the error matches ctx's and the store's last one.
func (l *Mutex) LockContext(ctx context.Context) error {
	_, err := l.lock(ctx, "LockContext", true)
	return err
}

// TryLockContext takes the lock if nobody has it. It waits for the store's answer until ctx ends.
func (l *Mutex) TryLockContext(ctx context.Context) (bool, error) {
	return l.lock(ctx, "TryLockContext", false)
}

func (l *Mutex) lock(ctx context.Context, op string, wait bool) (bool, error) {
	if ctx == nil || ctx.Err() != nil {
		return false, check("lease: "+op, ctx)
	}
	if l.fixed && l.lease < time.Millisecond {
		return false, l.fail(op, fmt.Errorf("a lease of %v is shorter than 1ms", l.lease))
	}
	c := l.c
	o := locks.CurrentOwner(ctx)
	if e := l.gated(o); e != nil {
		if held, err := e.reenter(ctx, o); held {
			if err != nil {
				return false, l.fail(op, err)
			}
			return true, nil
		}
	}
	e, err := l.enter(o)
	if err != nil {
		return false, l.fail(op, err)
	}
	ok, waited, err := c.pass(ctx, e, wait)
	if !ok {
		c.leave(e)
	} else if ok, err = l.ensure(ctx, e, wait, waited && c.reached.Load()); !ok {
		c.giveBack(ctx, e)
	}
	if err != nil && ctx.Err() == nil && c.life.Err() != nil {
		err = locks.ErrClosed // Close has ended the request under way
	}
	if err != nil {
		err = l.fail(op, err)
	}
	return ok, err
}

// reenter counts one more hold if o has the lock, and reports whether it has. An error says why it
// is not counted.
func (e *entry) reenter(ctx context.Context, o locks.Owner) (held bool, err error) {
	if e.gate.Owner() != o {
		return false, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.mine(o)
	if h == nil {
		return false, nil
	}
	if err := h.Err(); err != nil {
		return true, err
	}
	if _, err := e.gate.TryLockContext(ctx); err != nil {
		return true, err
	}
	e.depth++
	return true, nil
}

// mine returns the hold if it is o's. e.mu is held: so the hold stays, and with it its owner stays that of the gate, which is
// given up after the hold. Without e.mu the two are no pair.
func (e *entry) mine(o locks.Owner) *hold {
	if e.hold == nil || e.gate.Owner() != o {
		return nil
	}
	return e.hold
}

// pass gets a hold of e's gate, and reports whether it had to wait for that.
func (c *Client) pass(ctx context.Context, e *entry, wait bool) (ok, waited bool, err error) {
	ok, err = e.gate.TryLockContext(ctx)
	if !ok && err == nil && wait {
		waited = true
		if ctx.Done() == nil {
			err = e.gate.LockContext(detach(c.open, ctx))
		} else {
			open, cancel := context.WithCancel(ctx)
			stop := context.AfterFunc(c.open, cancel)
			err = e.gate.LockContext(open)
			stop()
			cancel()
		}
		if err != nil && ctx.Err() == nil {
			err = locks.ErrClosed
		}
		ok = err == nil
	}
	if ok {
		e.mu.Lock()
		if e.depth > 0 {
			e.extra++
		}
		e.depth++
		e.mu.Unlock()
	}
	return ok, waited, err
}

// fewer counts one hold less, and reports whether a user of e goes with it. e.mu is held.
func (e *entry) fewer() bool {
	e.depth--
	if e.depth > 0 {
		if e.extra == 0 {
			return false
		}
		e.extra--
	}
	return true
}

// giveBack gives a hold of e's gate back that did not get as far as the store's lock.
func (c *Client) giveBack(ctx context.Context, e *entry) {
	e.mu.Lock()
	user := e.fewer()
	if h := e.hold; e.depth == 0 && h != nil {
		// Another goroutine of the owner got the lock after this one had given up, and has unlocked it: as one of two, so that
		// it is here that the lock is given back. Or it is lost.
		h.released.Store(true)
		e.hold, e.grant = nil, nil
		if h.g.err() == nil {
			e.busy = true
			c.keep(e)
			c.spawn(func() {
				defer c.leave(e)
				c.free(h.g)
				e.finish()
			})
		}
	}
	e.mu.Unlock()
	e.gate.UnlockContext(ctx)
	c.collect(ctx, e)
	if user {
		c.leave(e)
	}
}

// collect gives the store's lock back if it was left to somebody at the gate who went away.
func (c *Client) collect(ctx context.Context, e *entry) error {
	e.mu.Lock()
	nothing := e.grant == nil
	e.mu.Unlock()
	if nothing || e.gate.IsLocked() {
		return nil // whoever has the gate, or gets a grant now, looks after it
	}
	ctx = context.WithoutCancel(ctx)
	if ok, err := e.gate.TryLockContext(ctx); !ok {
		return err // whoever has the gate has the lock, or will collect it
	}
	defer e.gate.UnlockContext(ctx)
	e.mu.Lock()
	g := e.grant
	if g == nil || e.hold != nil || e.busy {
		e.mu.Unlock()
		return nil
	}
	e.grant, e.busy = nil, true
	e.mu.Unlock()
	defer e.finish()
	_, err := c.free(g)
	return err
}

// finish ends a time in which e was busy.
func (e *entry) finish() {
	e.mu.Lock()
	e.settled()
	e.mu.Unlock()
}

// ensure makes sure that the holder of e's gate has the store's lock as well. If not, it has left
// everything as it was. If patient, it has waited already, so that a store that cannot be reached is
// one more thing to wait for.
//
// Several goroutines of an explicit owner may be here at a time. One talks to the store, the others
// wait for what comes of it.
func (l *Mutex) ensure(ctx context.Context, e *entry, wait, patient bool) (bool, error) {
	c := l.c
	for {
		e.mu.Lock()
		switch {
		case e.hold != nil:
			err := e.hold.Err()
			e.mu.Unlock()
			return err == nil, err
		case ctx.Err() != nil:
			e.mu.Unlock()
			return false, ended(ctx)
		case c.open.Err() != nil:
			e.mu.Unlock()
			return false, locks.ErrClosed
		case e.busy:
			idle := e.whenIdle()
			e.mu.Unlock()
			if !wait {
				return false, nil
			}
			select {
			case <-idle:
			case <-ctx.Done():
			case <-c.open.Done():
			}
			continue
		case e.grant != nil && !l.fixed && !e.grant.fixed && e.grant.err() == nil:
			e.hold = &hold{c: c, g: e.grant}
			e.turns++
			e.mu.Unlock()
			return true, nil
		}
		left, until := e.grant, e.yield
		e.grant, e.yield = nil, time.Time{}
		e.busy = true
		e.mu.Unlock()

		var yield time.Duration
		if left != nil {
			yield, _ = c.free(left)
		} else if !until.IsZero() {
			yield = time.Until(until)
		}
		g, pending, err := l.acquire(ctx, e, wait, patient, yield)
		if pending {
			return false, err // e is busy until what was abandoned is undone
		}
		e.mu.Lock()
		if g != nil {
			e.grant, e.turns, e.crowd = g, 1, e.gate.QueueLength()
			e.rival, e.contended, e.awaited = g.rival, g.refused || e.awaited, false
			e.hold = c.taken(g)
		}
		e.settled()
		e.mu.Unlock()
		if g != nil && c.open.Err() != nil {
			if c.abandon(g) { // Close may have looked for grants before this one was to be seen
				c.store.Release(c.life, g.ref.Name, g.ref.Acquisition)
			}
			return false, locks.ErrClosed
		}
		return g != nil, err
	}
}

// acquire gets the lock from the store, after it has let others go first for the time yield. e is busy
// with that, and stays so if it is pending what becomes of a request that was given up.
//
// A request that fails ends it if it is the first one, unless patient. Later ones are repeated, in the hope that the
// store can be reached again, and notified of it by the watch perhaps. A place in a queue is kept, by the same owner. Without a queue
// a request of which nothing is known is left to be undone, and the next one is somebody else's:
// whatever comes of the former means nothing to the latter.
func (l *Mutex) acquire(ctx context.Context, e *entry, wait, patient bool, yield time.Duration) (g *grant, pending bool, err error) {
	c := l.c
	owner := c.owner()
	var queue Queue // with our place in it
	var usher Usher // who knows that we wait
	if wait && (c.queue != nil || c.usher != nil) {
		if !c.begin() {
			return nil, false, locks.ErrClosed
		}
		defer c.done()
		if queue = c.queue; queue == nil {
			usher = c.usher
		}
	}
	if wait && yield > 0 {
		if err := l.pause(ctx, nil, yield); err != nil {
			return nil, false, err
		}
	}
	var watch Watch
	defer func() {
		if watch != nil {
			watch.Close()
		}
	}()
	var (
		down    error         // why the store could not be reached, the last time
		backoff time.Duration // until it is asked again
		doubt   time.Time     // until when a request that was not answered may have an effect
		placed  bool          // owner may have a place in queue
		rival   = yield > 0   // somebody else waits
		refused bool          // somebody else held the lock
	)
	// over ends the acquisition in vain.
	over := func(err error) (*grant, bool, error) {
		if down != nil {
			err = fmt.Errorf("%w; the store could not be reached: %w", err, down)
		}
		if usher != nil {
			c.forget(usher, l.name, owner)
		}
		return nil, placed && l.leave(e, owner, queue, doubt), err
	}
	for {
		a, pending := l.ask(ctx, e, owner, queue, usher)
		if a.doubt.After(doubt) {
			doubt = a.doubt
		}
		placed = placed || !errors.Is(a.err, ErrRefused)
		switch {
		case pending && down != nil:
			if queue != nil && !doubt.IsZero() {
				c.sweep(HoldID{l.name, owner}, queue, doubt, true) // of an earlier request: that of the last one is looked after
			}
			return nil, true, fmt.Errorf("%w; the store could not be reached: %w", a.err, down)
		case pending || a.err == nil && a.g == nil && !wait:
			return nil, pending, a.err
		case a.g != nil:
			a.g.rival, a.g.refused = rival || refused, refused
			if queue != nil {
				a.g.doubt = doubt
			}
			return a.g, false, nil
		case a.err != nil && (!wait || !passing(a.err) || !patient && !c.waitsOut(a.err)):
			down = nil
			return over(a.err)
		}
		patient = true
		pause := c.poll
		if down = a.err; down != nil {
			if queue == nil && !a.doubt.IsZero() {
				if usher != nil {
					c.forget(usher, l.name, owner)
				}
				owner = c.owner()
				if watch != nil {
					watch.Close()
					watch = nil
				}
			}
			backoff = min(max(2*backoff, minBackoff), maxBackoff)
			pause = min(backoff/2+rand.N(backoff/2), pause)
		} else {
			backoff, refused = 0, true
			if watch == nil {
				// A store that cannot notify is polled.
				watch, err = c.store.Watch(ctx, l.name, owner)
				switch {
				case err != nil || watch == nil:
					watch = nil
					pause /= 10
				case !a.listening:
					continue // ask again: it may have become free before the watch began
				}
			}
			if a.refused > 0 {
				pause = min(pause, a.refused)
			}
		}
		var notified <-chan struct{}
		if watch != nil {
			notified = watch.C()
		}
		if err := l.pause(ctx, notified, max(pause, time.Millisecond)); err != nil {
			return over(err)
		}
	}
}

// Between two requests to a store that cannot be reached.
const (
	minBackoff = 20 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// passing reports whether err may be over with time.
func passing(err error) bool {
	return !errors.Is(err, locks.ErrForeign) && (!errors.Is(err, ErrRefused) || errors.Is(err, ErrUnavailable))
}

// waitsOut reports whether a first request that failed with err is repeated.
func (c *Client) waitsOut(err error) bool {
	switch {
	case c.retry == RetryNever || !errors.Is(err, ErrUnavailable):
		return false
	case errors.Is(err, ErrUnreachable):
		return c.retry == RetryUnreachable
	}
	return true
}

// leave gives owner's place in queue up, and what a request in doubt has taken, and reports whether that is pending: if
// there is a queue.
func (l *Mutex) leave(e *entry, owner string, queue Queue, doubt time.Time) bool {
	if queue == nil {
		return false
	}
	l.c.keep(e)
	l.c.spawn(func() {
		defer l.c.leave(e)
		defer e.finish()
		l.c.quit(queue, l.name, owner)
		if !doubt.IsZero() {
			l.c.sweep(HoldID{l.name, owner}, queue, doubt, true)
		}
	})
	return true
}

// forget has usher forget owner, without anybody waiting for that but Close.
func (c *Client) forget(usher Usher, name, owner string) {
	job := func() { usher.Forget(c.briefly(time.Now()), name, owner) }
	if !c.begin() {
		job() // Close waits for nobody who begins now
		return
	}
	go func() {
		defer c.done()
		job()
	}()
}

// quit gives owner's place in queue up, and repeats the request until it is answered, but not for longer than
// the release timeout.
func (c *Client) quit(queue Queue, name, owner string) {
	stop := time.Now().Add(c.release)
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, 250*time.Millisecond) {
		err := queue.Leave(c.life, name, owner)
		if err == nil || time.Now().Add(pause).After(stop) {
			return // the store drops the place of one who does not ask any more
		}
		select {
		case <-time.After(pause):
		case <-c.life.Done():
			return
		}
	}
}

// pause waits for a notification, for d, or for the reason not to go on.
func (l *Mutex) pause(ctx context.Context, notified <-chan struct{}, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-notified:
	case <-timer.C:
	case <-ctx.Done():
		return ended(ctx)
	case <-l.c.open.Done():
		return locks.ErrClosed
	}
	return nil
}

// answer is what came of a request for the lock.
type answer struct {
	g       *grant
	refused time.Duration // for how long the lock will not be free, if that is known
	err     error
	doubt   time.Time // until when the request may have an effect of which nothing is known, or zero

	listening bool // see Reply
}

// grace is how long the one who wanted the lock has gone before a request that is under way for him still is undone without
// its answer being awaited.
const grace = 50 * time.Millisecond

// ask asks the store once. If ctx ends before the answer comes, it returns that it is pending, and
// whatever the answer gives is given back.
func (l *Mutex) ask(ctx context.Context, e *entry, owner string, queue Queue, usher Usher) (a answer, pending bool) {
	if ctx.Done() == nil {
		return l.request(ctx, owner, queue, usher), false
	}
	sent := time.Now()
	answers := make(chan answer, 1)
	if a, ok := l.told(ctx, owner, queue); ok {
		answers <- a
	} else {
		l.c.spawn(func() { answers <- l.request(ctx, owner, queue, usher) })
	}
	select {
	case a := <-answers:
		if a.g == nil || ctx.Err() == nil {
			return a, false
		}
		answers <- a // nothing is granted after ctx has ended
	case <-ctx.Done():
	}
	l.c.keep(e)
	l.c.spawn(func() { l.undo(e, owner, queue, usher, sent, answers) })
	return answer{err: ended(ctx)}, true
}

// undo gives back what a request gives that was sent for somebody who has gone. e is busy until then, but not for longer than
// the grace: the next request for its name has another owner, and does not depend on this one.
func (l *Mutex) undo(e *entry, owner string, queue Queue, usher Usher, sent time.Time, answers <-chan answer) {
	c := l.c
	back := func(a answer) {
		switch {
		case a.g != nil:
			c.free(a.g)
		case queue != nil:
			c.quit(queue, l.name, owner)
			if !a.doubt.IsZero() {
				c.sweep(HoldID{l.name, owner}, queue, a.doubt, true)
			}
		case usher != nil:
			c.forget(usher, l.name, owner)
		}
	}
	select {
	case a := <-answers:
		back(a)
		e.finish()
		c.leave(e)
	case <-time.After(grace):
		known := make(chan struct{})
		c.sweepUnless(known, HoldID{l.name, owner}, queue, sent.Add(l.term()), true)
		e.finish()
		c.leave(e)
		a := <-answers
		close(known) // the answer says what there is to undo
		back(a)
	}
}

// term is for how long the store is asked to give the lock.
func (l *Mutex) term() time.Duration {
	if l.fixed {
		return l.c.longest(l.lease)
	}
	return l.c.term()
}

// request asks the store once, for a place in queue too if there is one, or by usher, and looks after the grant if there is one.
// What an answer that does not come leaves behind is undone, unless there is a queue, whose place may be asked for again.
func (l *Mutex) request(ctx context.Context, owner string, queue Queue, usher Usher) (a answer) {
	c := l.c
	ctx = c.detached(ctx)
	c.sched.expect(owner)
	defer c.sched.watched(owner)
	d := l.term()
	sent := time.Now()
	var r Reply
	switch {
	case queue != nil:
		r, a.err = queue.Enqueue(ctx, l.name, owner, d)
	case usher != nil:
		r, a.err = usher.Await(ctx, l.name, owner, d)
	default:
		r, a.err = c.store.Acquire(ctx, l.name, owner, d)
	}
	if a.err != nil {
		if errors.Is(a.err, locks.ErrForeign) || errors.Is(a.err, ErrRefused) {
			return a
		}
		var unknown error
		if r, unknown = c.store.Lookup(ctx, l.name, owner); unknown != nil || !r.Held {
			// It may have been carried out, or be so yet: nobody shall wait for the lease to end if that can be helped.
			a.doubt = sent.Add(d)
			if queue == nil {
				c.sweep(HoldID{l.name, owner}, nil, a.doubt, true)
			}
			return a
		}
		a.err = nil
	}
	if !c.reached.Load() {
		c.reached.Store(true)
	}
	if !r.Held {
		a.refused, a.listening = r.Wait, r.Listening
		return a
	}
	// Who holds by a session that has become shorter meanwhile has it for the shorter time.
	return l.granted(ctx, owner, queue, r, sent, min(d, l.term()))
}

// told is request if the store knows the answer. Nobody would end a wait here, so nothing is done that may take time.
func (l *Mutex) told(ctx context.Context, owner string, queue Queue) (a answer, ok bool) {
	if queue == nil || l.c.teller == nil || l.fixed {
		return a, false
	}
	l.c.sched.expect(owner)
	defer l.c.sched.watched(owner)
	sent := time.Now()
	r, ok := l.c.teller.Granted(l.name, owner)
	if ok {
		a = l.granted(ctx, owner, queue, r, sent, l.term())
	}
	return a, ok
}

// granted looks after what the store has given to owner, who was to have it for d and had asked for it at the time sent.
func (l *Mutex) granted(ctx context.Context, owner string, queue Queue, r Reply, sent time.Time, d time.Duration) (a answer) {
	c := l.c
	a.g = &grant{
		ref:   HoldID{l.name, owner},
		token: r.Token,
		lease: d,
		taken: sent,
		fixed: l.fixed,
		until: sent.Add(d - c.marginOf(d)),
		index: -1,
	}
	a.g.handOver = tripsOfHandOver * time.Since(sent)
	if !r.Since.IsZero() && r.Since.Before(sent) {
		a.g.until = r.Since.Add(d - c.marginOf(d))
		if l.fixed {
			c.complete(ctx, a.g)
		}
	}
	if a.g.err() != nil { // the answer came after its time
		if queue == nil { // else the owner asks again: what it gets then must not be undone
			c.sweep(a.g.ref, nil, sent.Add(d), true)
		}
		return answer{err: errLate, doubt: sent.Add(d)}
	}
	c.sched.add(a.g)
	if e := c.sched.watched(owner); e != nil {
		c.lost(a.g, e.cause) // as if it had been told of now
	}
	return a
}

var errLate = errors.New("the store's answer came when the lease was over")

// complete makes g, which will not be renewed, last for the whole of its time, of which a part was over when it was
// taken. If that cannot be done, it is shorter.
func (c *Client) complete(ctx context.Context, g *grant) {
	ctx, cancel := context.WithDeadline(ctx, g.until)
	defer cancel()
	p := g.request(c, g.lease)
	ok, err := c.store.Renew(ctx, []HoldID{g.ref}, g.lease)
	switch {
	case err != nil:
		g.unanswered(p)
	case len(ok) == 1 && ok[0]:
		g.answered(c, p)
	default:
		g.lose(nil)
	}
}

// detached returns a context with ctx's values that lives as long as the client: a request is
// never cut off in the middle because the one who waits for it has gone.
func (c *Client) detached(ctx context.Context) context.Context { return detach(c.life, ctx) }

// detach returns a context that lives as long as life, with ctx's values.
func detach(life, ctx context.Context) context.Context {
	if ctx == context.Background() { // which has none
		return life
	}
	return detached{life, ctx}
}

type detached struct {
	context.Context
	values context.Context
}

func (d detached) Value(key any) any { return d.values.Value(key) }

// UnlockContext gives one hold back, and the lock with the last: to the first who waits at the gate, or
// to the store, which it tries to reach for the release timeout, whether ctx has ended or not. If
// it cannot, it returns the error, and the lock ends as soon as the store can be reached again, or with its lease.
func (l *Mutex) UnlockContext(ctx context.Context) error {
	const op = "UnlockContext"
	o := locks.CurrentOwner(ctx)
	if ctx == nil {
		ctx = context.Background()
	}
	c := l.c
	e := l.gated(o)
	if e == nil {
		return l.fail(op, locks.ErrNotHeld)
	}
	e.mu.Lock()
	h := e.mine(o)
	if h == nil { // another goroutine of the same owner is about to get it, or has just given it back
		e.mu.Unlock()
		return l.fail(op, locks.ErrNotHeld)
	}
	now := time.Now()
	err := h.g.errAt(now)
	if e.depth > 1 {
		e.gate.UnlockContext(ctx) // before anybody else can see the last hold
		user := e.fewer()
		e.mu.Unlock()
		if user {
			c.leave(e)
		}
		if err != nil {
			return l.fail(op, err)
		}
		return nil
	}
	e.fewer()
	h.released.Store(true)
	e.hold = nil
	switch {
	case err != nil:
		e.grant = nil
		e.mu.Unlock()
	case c.mayPass(e, h.g, now):
		e.mu.Unlock()
		defer c.leave(e)
		e.gate.UnlockContext(ctx)
		if err := c.collect(ctx, e); err != nil {
			return l.fail(op, err)
		}
		return nil
	default:
		e.grant, e.busy = nil, true
		e.mu.Unlock()
		var yield time.Duration
		yield, err = c.free(h.g)
		e.mu.Lock()
		if e.gate.HasQueued() {
			e.yield = time.Now().Add(yield)
		} else {
			e.awaited = yield > 0
		}
		e.settled()
		e.mu.Unlock()
	}
	e.gate.UnlockContext(ctx)
	c.leave(e)
	if err != nil {
		return l.fail(op, err)
	}
	return nil
}

// mayPass reports whether g may go to the next one at the gate. e.mu is held.
func (c *Client) mayPass(e *entry, g *grant, now time.Time) bool {
	if g.fixed || g.pinned || c.cohort == 0 || c.open.Err() != nil || !e.gate.HasQueued() || now.Sub(g.taken) >= g.lease/4 {
		return false
	}
	turns := c.cohort
	if e.contended && now.Sub(g.taken) >= g.handOver {
		// Whoever came later waits behind those elsewhere. Before that time others would hardly gain by it, and all would lose.
		turns = min(turns, e.crowd)
	}
	switch {
	case e.turns <= turns:
	case c.asker == nil || e.rival:
		return false
	case !e.asked.IsZero():
		return now.Sub(e.asked) < maxAsking
	case !c.begin():
		return false
	default:
		e.asked = now
		go c.consult(e, g)
	}
	return true
}

// consult asks the store whether anybody else waits for g's lock. If not, the next turns of the cohort begin; whoever comes after the
// answer is seen at the end of these. It ends a job.
func (c *Client) consult(e *entry, g *grant) {
	defer c.done()
	awaited, err := c.asker.Contended(c.life, g.ref.Name)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = time.Time{}
	switch {
	case e.grant != g:
	case err == nil && !awaited:
		e.turns = 0
	default:
		e.rival = true
	}
}

// free gives g back to the store. It returns locks.ErrLost if it was not ours any more, and for how
// long others should be given the opportunity to take it before somebody here asks for it again. Close waits for that.
func (c *Client) free(g *grant) (yield time.Duration, err error) {
	if c.begin() {
		defer c.done()
	}
	c.sched.remove(g)
	if !g.retire() {
		c.ended(g)
		return 0, g.err()
	}
	return c.giveUp(g)
}

// giveUp has the store free what g stands for, and repeats the request until it is answered, but not for
// longer than the release timeout or g's time. What is left of that is tried without anybody waiting for it.
func (c *Client) giveUp(g *grant) (yield time.Duration, err error) {
	stop := time.Now().Add(c.release)
	until := g.deadline()
	if until.Before(stop) {
		stop = until
	}
	if !g.doubt.IsZero() {
		defer c.sweep(g.ref, c.queue, g.doubt, true)
	}
	pause := 5 * time.Millisecond
	for try := 1; ; try++ {
		sent := time.Now()
		r, err := c.releaseBy(stop, try, g.ref)
		switch {
		case final(err):
			return 0, err
		case err == nil && !r.Held && try == 1:
			return 0, locks.ErrLost
		case err == nil: // if not now, an earlier request did it, or time
			if r.Awaited {
				// Others hear of it, and ask, and they are not in a hurry.
				yield = min(max(tripsOfHandOver*time.Since(sent), time.Millisecond), 50*time.Millisecond)
			}
			return yield, nil
		}
		if !time.Now().Add(pause).Before(stop) {
			if c.log != nil {
				c.log.Warn("lock not released yet: it ends with its lease", "lock", g.ref.Name, "owner", g.ref.Acquisition, "error", err)
			}
			c.sweep(g.ref, nil, until, false)
			return 0, unanswered(err)
		}
		select {
		case <-time.After(pause):
		case <-c.life.Done():
			return 0, err
		}
		pause = min(2*pause, 250*time.Millisecond)
	}
}

// releaseBy has the store free what r names, and returns at the time stop at the latest. A reply that does not come to the
// first try leaves time for another.
func (c *Client) releaseBy(stop time.Time, try int, r HoldID) (Released, error) {
	ctx := c.briefly(time.Now())
	if end, _ := ctx.Deadline(); try > 1 || end.After(stop) {
		by, cancel := context.WithDeadline(ctx, stop)
		defer cancel()
		ctx = by
	}
	return c.store.Release(ctx, r.Name, r.Acquisition)
}

// final reports whether err is a refusal that no repetition changes, such as a missing permission.
func final(err error) bool { return errors.Is(err, ErrRefused) && !errors.Is(err, ErrUnavailable) }

// unanswered returns err as the error of a release for which this package gave up. It does not match the errors of contexts,
// since the caller's has not ended.
func unanswered(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fmt.Errorf("no answer within the release timeout: %v", err)
	}
	return err
}

// tripsOfHandOver is how many round trips it takes at most until a lock that was given back is held by somebody else who waits.
const tripsOfHandOver = 4

// briefly returns a context for a quarter of the release timeout from now, or up to twice that: one for all requests of such a time.
func (c *Client) briefly(now time.Time) context.Context {
	d := max(c.release/4, time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.brief == nil || c.briefEnd.Sub(now) < d {
		c.briefEnd = now.Add(2 * d)
		ctx, cancel := context.WithDeadline(c.life, c.briefEnd)
		context.AfterFunc(ctx, cancel) // at its time, or with the client
		c.brief = ctx
	}
	return c.brief
}

// latest is for how long at most a request is expected to arrive that was sent: about as long as a system goes on to send what a
// closed connection has left.
const latest = 5 * time.Minute

// sweep frees what r holds, or comes to hold because of a request that is late, without anybody waiting for that: it asks the
// store to release it, ever more rarely, until that has been done or the time until is over. If nothing can
// be late, it ends with the first answer.
//
// A request that a network delivers after until, which is a lease away, or after latest, leaves the lock held for a lease once more.
func (c *Client) sweep(r HoldID, queue Queue, until time.Time, late bool) {
	c.sweepUnless(nil, r, queue, until, late)
}

// sweepUnless is sweep that ends when known is closed: the outcome of the request is known then.
func (c *Client) sweepUnless(known <-chan struct{}, r HoldID, queue Queue, until time.Time, late bool) {
	left := time.Until(until)
	if late && left > latest {
		left = latest
		until = time.Now().Add(left)
	}
	rarest := max(min(left/10, time.Minute), 5*time.Millisecond)
	job := func() {
		for pause := 5 * time.Millisecond; ; pause = min(2*pause, rarest) {
			closing := c.open.Err() != nil
			if queue != nil {
				queue.Leave(c.life, r.Name, r.Acquisition)
			}
			done, err := c.store.Release(c.life, r.Name, r.Acquisition)
			if err == nil && (done.Held || !late) || final(err) || closing || time.Now().Add(pause).After(until) {
				return
			}
			timer := time.NewTimer(pause)
			select {
			case <-timer.C:
			case <-c.open.Done(): // once more
			case <-known:
				timer.Stop()
				return
			}
			timer.Stop()
		}
	}
	if !c.begin() {
		job() // Close waits for nobody who begins now
		return
	}
	go func() {
		defer c.done()
		job()
	}()
}

// abandon makes g lost because the client is closed, and reports whether it was held until then. The store has to free it.
func (c *Client) abandon(g *grant) bool {
	c.sched.remove(g)
	if !g.lose(locks.ErrClosed) {
		c.ended(g)
		return false
	}
	return true
}

// Hold returns the hold of the lock that ctx's owner has.
func (l *Mutex) Hold(ctx context.Context) (locks.Hold, error) {
	o := locks.CurrentOwner(ctx)
	if e := l.c.look(l.key(o)); e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		if h := e.mine(o); h != nil {
			return h, nil
		}
	}
	return nil, l.fail("Hold", locks.ErrNotHeld)
}

// Pin returns the name that the hold of ctx's owner has in the store, and has the lock given back to the store when this hold
// ends, even if others wait for it at the gate. It is for a [Store] where something else depends on the hold, such as
// a read hold of the writer of a read-write lock.
func (l *Mutex) Pin(ctx context.Context) (owner string, err error) {
	o := locks.CurrentOwner(ctx)
	if e := l.c.look(l.key(o)); e != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		if h := e.mine(o); h != nil {
			if err := h.Err(); err != nil {
				return "", l.fail("Pin", err)
			}
			h.g.pinned = true
			return h.g.ref.Acquisition, nil
		}
	}
	return "", l.fail("Pin", locks.ErrNotHeld)
}

// ForceUnlock frees the lock, whoever holds it, here or elsewhere, and reports whether anybody did. It is for
// administrators: the holder is not asked, and its work not awaited. It is told at once if it is of this client, and else with
// its next renewal; its unlock returns locks.ErrLost. It waits for the store's answer until ctx ends. It returns
// errors.ErrUnsupported if the store has no such thing, and locks.ErrForeign if what is under the name is no lock of this kind.
func (l *Mutex) ForceUnlock(ctx context.Context) (bool, error) {
	const op = "ForceUnlock"
	if err := check("lease: "+op, ctx); err != nil {
		return false, err
	}
	f, ok := l.c.store.(Breaker)
	if !ok {
		return false, l.fail(op, errors.ErrUnsupported)
	}
	if !l.c.begin() {
		return false, l.fail(op, locks.ErrClosed)
	}
	defer l.c.done()
	held := l.held()
	forced, err := f.Break(ctx, l.name)
	if err != nil {
		return false, l.fail(op, err)
	}
	if forced {
		// Those of held that have not ended by themselves were what was freed, or were lost already.
		for _, g := range held {
			l.c.lost(g, errForced)
		}
	}
	return forced, nil
}

var errForced = errors.New("freed by ForceUnlock")

// held returns the grants of the lock's name that this client has.
func (l *Mutex) held() (gs []*grant) {
	c := l.c
	var entries []*entry
	c.mu.Lock()
	if !l.share {
		if e := c.entries[l.name]; e != nil {
			entries = append(entries, e)
		}
	} else {
		for key, e := range c.entries {
			if strings.HasPrefix(key, l.name+"\x00") {
				entries = append(entries, e)
			}
		}
	}
	c.mu.Unlock()
	for _, e := range entries {
		e.mu.Lock()
		if e.grant != nil {
			gs = append(gs, e.grant)
		}
		e.mu.Unlock()
	}
	return gs
}

// QueueLength returns how many wait at the gate of this process; of a [Shared] lock nobody does.
func (l *Mutex) QueueLength() int {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	if e := l.c.entries[l.name]; e != nil {
		return e.gate.QueueLength()
	}
	return 0
}

// String describes the lock and its state in this process.
func (l *Mutex) String() string {
	state := "not held here"
	if e := l.c.look(l.name); e != nil {
		if o := e.gate.Owner(); o != 0 {
			state = "at the gate: " + o.String()
		}
	}
	return fmt.Sprintf("lease.Lock(%q)[%s, %d queued]", l.shown(), state, l.QueueLength())
}
