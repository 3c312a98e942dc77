package lease

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jucgo/locks"
)

// Lock is the lock of one name. It belongs to the goroutine that took it, or to the
// [locks.Owner] of its context, which may take it again while it holds it. All Locks of one name and Client
// are the same lock.
//
// An acquisition waits in the local gate first, in order of arrival, and then for the store. A TryLockContext
// waits for neither, but for the store's answer. It may report false though nobody holds the lock, if
// somebody else here is at the gate in vain, or what a cancelled acquisition may have left is being undone.
//
// Unlock, hold inspection and re-entry of a hold that was lost return [locks.ErrLost]. A lost lock
// has to be unlocked as often as it was locked, like any other; it may be taken anew after that.
type Lock struct {
	c     *Client
	name  string
	lease time.Duration // if it is fixed
	fixed bool          // not renewed
	share bool          // each owner has a hold of its own
}

var _ locks.Leased = (*Lock)(nil)

// LockOption changes how [Client.Lock] makes a lock.
type LockOption func(*Lock)

// For makes holds last for d and end then: they are not renewed.
func For(d time.Duration) LockOption { return func(l *Lock) { l.lease, l.fixed = d, true } }

// Shared is for a lock that several owners can hold at a time, such as the read half of a read-write lock: each has a hold
// of its own, asks the store itself, and waits for nobody here.
func Shared() LockOption { return func(l *Lock) { l.share = true } }

// key is under which name o finds its entry.
func (l *Lock) key(o locks.Owner) string {
	if !l.share {
		return l.name
	}
	return l.name + "\x00" + strconv.FormatInt(int64(o), 10)
}

// Lock returns the lock called name.
func (c *Client) Lock(name string, opts ...LockOption) *Lock {
	l := &Lock{c: c, name: name}
	for _, o := range opts {
		o(l)
	}
	return l
}

// Locker returns the lock called name. It is a [*Lock].
func (c *Client) Locker(name string) locks.TryLocker { return c.Lock(name) }

// Name returns the name of the lock.
func (l *Lock) Name() string { return l.name }

// LockKey names the lock among those of its client, which gives [locks.Multi] its order.
func (l *Lock) LockKey() string { return l.c.id + "/" + l.name }

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

func (l *Lock) fail(op string, err error) error {
	return fmt.Errorf("lease: %s of %q: %w", op, l.name, err)
}

// LockContext takes the lock, and waits for it until ctx ends.
func (l *Lock) LockContext(ctx context.Context) error {
	_, err := l.lock(ctx, "LockContext", true)
	return err
}

// TryLockContext takes the lock if nobody has it. It waits for the store's answer until ctx ends.
func (l *Lock) TryLockContext(ctx context.Context) (bool, error) {
	return l.lock(ctx, "TryLockContext", false)
}

func (l *Lock) lock(ctx context.Context, op string, wait bool) (bool, error) {
	if ctx == nil || ctx.Err() != nil {
		return false, check("lease: "+op, ctx)
	}
	if l.fixed && l.lease < time.Millisecond {
		return false, l.fail(op, fmt.Errorf("a lease of %v is shorter than 1ms", l.lease))
	}
	c := l.c
	o := locks.CurrentOwner(ctx)
	if e := c.find(l.key(o)); e != nil {
		if held, err := e.reenter(ctx, o); held {
			if err != nil {
				return false, l.fail(op, err)
			}
			return true, nil
		}
	}
	e, err := c.enter(l.key(o))
	if err != nil {
		return false, l.fail(op, err)
	}
	ok, err := c.pass(ctx, e, wait)
	if !ok {
		c.leave(e)
	} else if ok, err = l.ensure(ctx, e, o, wait); !ok {
		c.giveBack(ctx, e)
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
	if e.hold == nil || e.gate.Owner() != o {
		return false, nil
	}
	if err := e.hold.Err(); err != nil {
		return true, err
	}
	if _, err := e.gate.TryLockContext(ctx); err != nil {
		return true, err
	}
	e.depth++
	return true, nil
}

// pass gets a hold of e's gate.
func (c *Client) pass(ctx context.Context, e *entry, wait bool) (bool, error) {
	ok, err := e.gate.TryLockContext(ctx)
	if !ok && err == nil && wait {
		if ctx.Done() == nil {
			err = e.gate.LockContext(detached{c.open, ctx})
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
	return ok, err
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
	if e.depth == 0 && e.hold != nil { // lost, and its other holds are unlocked
		e.hold.released.Store(true)
		e.hold, e.grant = nil, nil
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

// ensure makes sure that the holder of e's gate, o, has the store's lock as well. If not, it has left
// everything as it was.
//
// Several goroutines of an explicit owner may be here at a time. One talks to the store, the others
// wait for what comes of it.
func (l *Lock) ensure(ctx context.Context, e *entry, o locks.Owner, wait bool) (bool, error) {
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
		left, yield := e.grant, e.yield
		e.grant, e.yield = nil, 0
		e.busy = true
		e.mu.Unlock()

		if left != nil {
			yield, _ = c.free(left)
		}
		g, pending, err := l.acquire(ctx, e, c.owner(), wait, yield)
		if pending {
			return false, err // e is busy until what was abandoned is undone
		}
		e.mu.Lock()
		if g != nil {
			e.grant, e.turns = g, 1
			e.hold = &hold{c: c, g: g}
		}
		e.settled()
		e.mu.Unlock()
		if g != nil && c.open.Err() != nil {
			c.abandon(g) // Close may have looked for grants before this one was to be seen
			return false, locks.ErrClosed
		}
		return g != nil, err
	}
}

// acquire gets the lock from the store, after it has let others go first for the time yield. e is busy
// with that, and stays so if it is pending what becomes of a request that was given up.
func (l *Lock) acquire(ctx context.Context, e *entry, owner string, wait bool, yield time.Duration) (g *grant, pending bool, err error) {
	c := l.c
	var queue Queue // with our place in it
	if wait && c.queue != nil {
		if !c.begin() {
			return nil, false, locks.ErrClosed
		}
		defer c.done()
		queue = c.queue
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
	for {
		g, refused, pending, err := l.ask(ctx, e, owner, queue)
		switch {
		case g != nil || pending || err == nil && !wait:
			return g, pending, err
		case err != nil:
			return nil, l.leave(e, owner, queue), err
		}
		if watch == nil {
			// A store that cannot notify is polled.
			if watch, err = c.store.Watch(ctx, l.name, owner); err == nil && watch != nil {
				continue // ask again: it may have become free before the watch began
			}
			watch = nil
		}
		pause := c.poll
		var notified <-chan struct{}
		if watch != nil {
			notified = watch.C()
		} else {
			pause /= 10
		}
		if refused > 0 {
			pause = min(pause, refused)
		}
		if err := l.pause(ctx, notified, max(pause, time.Millisecond)); err != nil {
			return nil, l.leave(e, owner, queue), err
		}
	}
}

// leave gives owner's place in queue up, and reports whether that is pending: if there is a queue.
func (l *Lock) leave(e *entry, owner string, queue Queue) bool {
	if queue == nil {
		return false
	}
	l.c.keep(e)
	l.c.spawn(func() {
		defer l.c.leave(e)
		defer e.finish()
		l.c.quit(queue, l.name, owner)
	})
	return true
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
func (l *Lock) pause(ctx context.Context, notified <-chan struct{}, d time.Duration) error {
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

// ask asks the store once. If ctx ends before the answer comes, it returns that it is pending, and
// whatever the answer gives is given back.
func (l *Lock) ask(ctx context.Context, e *entry, owner string, queue Queue) (g *grant, refused time.Duration, pending bool, err error) {
	if ctx.Done() == nil {
		g, refused, err = l.request(ctx, owner, queue)
		return g, refused, false, err
	}
	type answer struct {
		g       *grant
		refused time.Duration
		err     error
	}
	answers := make(chan answer, 1)
	l.c.spawn(func() {
		g, refused, err := l.request(ctx, owner, queue)
		answers <- answer{g, refused, err}
	})
	select {
	case a := <-answers:
		if a.g == nil || ctx.Err() == nil {
			return a.g, a.refused, false, a.err
		}
		answers <- a // nothing is granted after ctx has ended
	case <-ctx.Done():
	}
	l.c.keep(e)
	l.c.spawn(func() {
		defer l.c.leave(e)
		defer e.finish()
		if a := <-answers; a.g != nil {
			l.c.free(a.g)
		} else if queue != nil {
			l.c.quit(queue, l.name, owner)
		}
	})
	return nil, 0, true, ended(ctx)
}

// request asks the store once, for a place in queue too if there is one, and looks after the grant if there is one.
func (l *Lock) request(ctx context.Context, owner string, queue Queue) (g *grant, refused time.Duration, err error) {
	c := l.c
	ctx = c.detached(ctx)
	d := c.term()
	if l.fixed {
		d = c.longest(l.lease)
	}
	sent := time.Now()
	var r Reply
	if queue != nil {
		r, err = queue.Enqueue(ctx, l.name, owner, d)
	} else {
		r, err = c.store.Acquire(ctx, l.name, owner, d)
	}
	if err != nil {
		if errors.Is(err, locks.ErrForeign) || errors.Is(err, ErrRefused) {
			return nil, 0, err
		}
		var unknown error
		if r, unknown = c.store.Recall(ctx, l.name, owner); unknown == nil && !r.Held {
			return nil, 0, err
		}
		if unknown != nil {
			// Perhaps it is ours: nobody shall wait for the lease to end if that can be helped.
			c.giveUp(&grant{ref: Ref{l.name, owner}, until: sent.Add(d), index: -1})
			return nil, 0, err
		}
	}
	if !r.Held {
		return nil, r.Wait, nil
	}
	g = &grant{
		ref:   Ref{l.name, owner},
		token: r.Token,
		lease: d,
		taken: sent,
		fixed: l.fixed,
		until: sent.Add(d - c.marginOf(d)),
		index: -1,
	}
	c.sched.add(g)
	return g, 0, nil
}

// detached returns a context with ctx's values that lives as long as the client: a request is
// never cut off in the middle because the one who waits for it has gone.
func (c *Client) detached(ctx context.Context) context.Context { return detached{c.life, ctx} }

type detached struct {
	context.Context
	values context.Context
}

func (d detached) Value(key any) any { return d.values.Value(key) }

// UnlockContext gives one hold back, and the lock with the last: to the first who waits at the gate, or
// to the store, which it tries to reach for the release timeout, whether ctx has ended or not. If
// it cannot, it returns the error, and the lock ends with its lease.
func (l *Lock) UnlockContext(ctx context.Context) error {
	const op = "UnlockContext"
	o := locks.CurrentOwner(ctx)
	if ctx == nil {
		ctx = context.Background()
	}
	c := l.c
	e := c.find(l.key(o))
	if e == nil || e.gate.Owner() != o {
		return l.fail(op, locks.ErrNotHeld)
	}
	e.mu.Lock()
	h := e.hold
	if h == nil { // another goroutine of the same owner is about to get it
		e.mu.Unlock()
		return l.fail(op, locks.ErrNotHeld)
	}
	err := h.Err()
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
	case c.mayPass(e, h.g):
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
			e.yield = yield
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
func (c *Client) mayPass(e *entry, g *grant) bool {
	return e.turns <= c.cohort && !g.fixed && c.open.Err() == nil && e.gate.HasQueued() &&
		time.Since(g.taken) < g.lease/4
}

// free gives g back to the store. It returns locks.ErrLost if it was not ours any more, and for how
// long others should be given the opportunity to take it before somebody here asks for it again.
func (c *Client) free(g *grant) (yield time.Duration, err error) {
	c.sched.remove(g)
	if !g.retire() {
		c.ended(g)
		return 0, g.err()
	}
	return c.giveUp(g)
}

// giveUp has the store free what g stands for, and repeats the request until it is answered, but not for
// longer than the release timeout or g's time.
func (c *Client) giveUp(g *grant) (yield time.Duration, err error) {
	stop := time.Now().Add(c.release)
	if until := g.deadline(); until.Before(stop) {
		stop = until
	}
	pause := 5 * time.Millisecond
	for try := 1; ; try++ {
		sent := time.Now()
		r, err := c.store.Release(c.life, g.ref.Name, g.ref.Owner)
		switch {
		case err == nil && !r.Held && try == 1:
			return 0, locks.ErrLost
		case err == nil: // if not now, an earlier request did it, or time
			if r.Awaited {
				// Others hear of it, and ask: two round trips, and they are not in a hurry.
				yield = min(max(4*time.Since(sent), time.Millisecond), 50*time.Millisecond)
			}
			return yield, nil
		}
		if time.Now().Add(pause).After(stop) {
			if c.log != nil {
				c.log.Warn("lock not released: it ends with its lease", "lock", g.ref.Name, "owner", g.ref.Owner, "error", err)
			}
			return 0, err
		}
		select {
		case <-time.After(pause):
		case <-c.life.Done():
			return 0, err
		}
		pause = min(2*pause, 250*time.Millisecond)
	}
}

// abandon makes g lost because the client is closed, and has the store free it.
func (c *Client) abandon(g *grant) error {
	c.sched.remove(g)
	if !g.lose(locks.ErrClosed) {
		c.ended(g)
		return nil
	}
	_, err := c.store.Release(c.life, g.ref.Name, g.ref.Owner)
	return err
}

// Hold returns the hold of the lock that ctx's owner has.
func (l *Lock) Hold(ctx context.Context) (locks.Hold, error) {
	o := locks.CurrentOwner(ctx)
	if e := l.c.find(l.key(o)); e != nil && e.gate.Owner() == o {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.hold != nil {
			return e.hold, nil
		}
	}
	return nil, l.fail("Hold", locks.ErrNotHeld)
}

// QueueLength returns how many wait at the gate of this process; of a [Shared] lock nobody does.
func (l *Lock) QueueLength() int {
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	if e := l.c.entries[l.name]; e != nil {
		return e.gate.QueueLength()
	}
	return 0
}

// String describes the lock and its state in this process.
func (l *Lock) String() string {
	state := "not held here"
	if e := l.c.find(l.name); e != nil {
		if o := e.gate.Owner(); o != 0 {
			state = "at the gate: " + o.String()
		}
	}
	return fmt.Sprintf("lease.Lock(%q)[%s, %d queued]", l.name, state, l.QueueLength())
}
