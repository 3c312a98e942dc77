package lease

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jucgo/locks"
)

// How an owner acquires a lock, from the call of LockContext on. The numbers are repeated in the
// code.
//
//  1. Re-entry. If the owner has the lock, one more hold is counted, without a request.
//     (Mutex.lock)
//  2. Local queue. The owner waits for its turn among the owners of this process, in order of
//     arrival. From then on only it may acquire the lock here. (Client.pass)
//  3. Hand-off. If the owner before has passed the store's lock on, the new owner takes it over,
//     without a request. Goroutines that share an explicit owner are here together: one goes on,
//     and the others wait for its result. (Mutex.ensure)
//  4. Yield. If this process has just had its share of turns, it lets waiters elsewhere go first.
//     (acquisition.run)
//  5. Request. The store is asked for the lock under a name that no other acquisition has. A
//     request is not cut off when ctx ends: it is abandoned, and its effect undone.
//     (acquisition.ask, acquisition.undo)
//  6. Unknown outcome. Without an answer, the store is asked which acquisition holds. If that is
//     unknown too, the request's effect is undone in the background. A later request has a new
//     name, unless there is a place in a queue to keep. (Mutex.request, Client.sweep)
//  7. Refusal. The first refusal begins a watch, and the store is asked once more, so that no
//     release in between is missed. Then the acquisition waits for a notification or the poll
//     interval, and asks again. (acquisition.refused)
//  8. Outage. The store is asked again after an increasing pause. After an error of the first
//     request, that depends on WithRetry. (acquisition.retries, acquisition.unreachable)
//  9. End. ctx or the client ends: the place in a queue and the watch are given up.
//     (acquisition.giveUp)

// acquire is steps 2 to 9 for o, which does not hold the lock.
func (l *Mutex) acquire(ctx context.Context, o locks.Owner, wait bool) (bool, error) {
	writer, err := l.enter(o)
	if err != nil {
		return false, err
	}
	_ = ctx.Done() // a user's code, which may panic: here nothing has changed yet
	c := l.c
	e, err := l.use(o)
	if err != nil {
		return false, err
	}
	ok, waited, err := c.pass(ctx, e, wait) // 2
	if !ok {
		c.unuse(e)
		return false, err
	}
	// A caller that has waited already waits for an unreachable store too.
	if ok, err = l.ensure(ctx, e, writer, wait, waited && c.reached.Load()); !ok {
		c.backOut(ctx, e)
	}
	return ok, err
}

// ensure makes sure that the owner that has passed e's queue has the store's lock as well. If
// not, it has left everything as it was. A patient caller has waited before.
func (l *Mutex) ensure(ctx context.Context, e *entry, writer string, wait, patient bool) (bool, error) {
	c := l.c
	for {
		e.mu.Lock()
		switch { // 3
		case e.hold != nil:
			err := e.hold.Err()
			e.mu.Unlock()
			return err == nil, err
		case c.open.Err() == nil && e.grant != nil && !l.fixed && !e.grant.fixed && e.grant.err() == nil:
			e.hold = &hold{c: c, g: e.grant} // even if ctx has ended since
			e.handoff.next()
			e.mu.Unlock()
			return true, nil
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
		}
		left, yield := e.takeOver(c.now())
		req := Request{HoldID: HoldID{l.name, c.newAcquisition()}, Writer: writer, Data: l.data}
		if wait {
			e.asks = req.Acquisition
		}
		e.mu.Unlock()
		return l.fetch(ctx, e, req, left, yield, wait, patient)
	}
}

// fetch gets the lock from the store by req, after it has released left, if that is not nil. e is
// busy.
func (l *Mutex) fetch(
	ctx context.Context, e *entry, req Request, left *grant, yield time.Duration, wait, patient bool) (bool, error) {
	c := l.c
	if left != nil {
		yield, _ = c.free(left)
	}
	a := &acquisition{l: l, c: c, e: e, ctx: ctx, wait: wait, patient: patient, req: req}
	if wait && c.queue != nil {
		if !c.begin() {
			e.finish()
			return false, locks.ErrClosed
		}
		defer c.done()
		a.queue = c.queue
	}
	g, pending, err := a.run(yield)
	if pending {
		return false, err // e is busy until what was abandoned is undone
	}
	e.mu.Lock()
	if g != nil {
		e.handoff.taken(a.contended, yield > 0, e.queue.QueueLength())
		e.grant, e.hold = g, c.taken(g)
	}
	e.settled()
	e.mu.Unlock()
	if g != nil && c.open.Err() != nil {
		if c.abandon(g) { // Close may have looked for grants before this one was to be seen
			c.store.Release(c.life, g.id)
		}
		return false, locks.ErrClosed
	}
	return g != nil, err
}

// acquisition is steps 4 to 9: the requests to the store that lead to one grant, or to none.
type acquisition struct {
	l       *Mutex
	c       *Client
	e       *entry
	ctx     context.Context
	wait    bool // for the lock; else for one answer
	patient bool // has waited before: an unreachable store is one more thing to wait for

	req   Request // what the store is asked; without its TTL
	queue Queue   // in which the acquisition may have a place, or nil
	watch Watch   // for the acquisition, or nil

	placed    bool          // the acquisition may have a place in queue
	contended bool          // the store has refused the lock: somebody else held it
	doubt     time.Time     // until when a request without an answer may have an effect, or zero
	down      error         // why the store could not be reached the last time, or nil
	reason    error         // why the store has refused a lock that may be free the last time, or nil
	backoff   time.Duration // the last pause of an outage
}

// run asks the store until it gives the lock, or there is a reason not to go on. It first lets
// others go first for the time yield. If pending, the last request is still being undone, and e
// is busy with it.
func (a *acquisition) run(yield time.Duration) (g *grant, pending bool, err error) {
	defer a.endWatch()
	if a.wait && yield > 0 { // 4
		if err := a.sleep(yield); err != nil {
			return nil, false, err
		}
	}
	for {
		if a.down != nil { // unseen, the store may have given the lock, and ended the notifications
			a.endWatch()
		}
		r, pending := a.ask() // 5, 6
		switch {
		case pending:
			return nil, true, a.abandoned(r.err)
		case r.g != nil:
			if a.queue != nil {
				r.g.doubt = a.doubt
			}
			return r.g, false, nil
		case r.err == nil && !a.wait:
			return nil, false, r.reason
		case r.err != nil && !a.retries(r.err):
			a.down, a.reason = nil, nil
			return a.giveUp(r.err)
		}
		a.patient = true
		var pause time.Duration
		if r.err != nil {
			pause = a.unreachable(r) // 8
		} else if pause = a.refused(r); pause == 0 { // 7
			continue
		}
		if err := a.sleep(max(pause, time.Millisecond)); err != nil {
			return a.giveUp(err) // 9
		}
	}
}

// retries reports whether the acquisition goes on after err.
func (a *acquisition) retries(err error) bool {
	return a.wait && transient(err) && (a.patient || a.c.retriesFirst(err))
}

// retriesFirst reports whether a first request that failed with err is repeated.
func (c *Client) retriesFirst(err error) bool {
	switch {
	case c.retry == RetryNever:
		return false
	case errors.Is(err, errLate):
		return true
	case !errors.Is(err, ErrUnavailable):
		return false
	case errors.Is(err, ErrUnreachable):
		return c.retry == RetryUnreachable
	}
	return true
}

// refused returns how long to wait for a notification after a refusal, or 0 to ask again at once.
func (a *acquisition) refused(r answer) time.Duration {
	a.down, a.reason, a.backoff, a.contended = nil, r.reason, 0, true
	pause := a.c.poll
	if a.watch == nil {
		watch, err := a.c.store.Watch(a.ctx, a.req.HoldID)
		switch {
		case err != nil || watch == nil:
			pause /= 10 // a store that cannot notify is polled
		default:
			a.watch = watch
			if !r.listening {
				return 0 // the lock may have become free before the watch began
			}
		}
	}
	if r.refused > 0 {
		pause = min(pause, r.refused)
	}
	return pause
}

// unreachable returns how long to wait after a request that failed.
func (a *acquisition) unreachable(r answer) time.Duration {
	a.down, a.reason = r.err, nil
	if a.queue == nil && !r.doubt.IsZero() {
		// Whatever comes of that request, it must mean nothing to the next one.
		a.req.Acquisition = a.c.newAcquisition()
		a.e.mu.Lock()
		a.e.asks = a.req.Acquisition
		a.e.mu.Unlock()
	}
	a.backoff = min(max(2*a.backoff, minBackoff), maxBackoff)
	return min(a.backoff/2+rand.N(a.backoff/2), a.c.poll)
}

// Between two requests to a store that cannot be reached.
const (
	minBackoff = 20 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// sleep waits for a notification, for d, or for a reason not to go on.
func (a *acquisition) sleep(d time.Duration) error {
	var notified <-chan struct{}
	if a.watch != nil {
		notified = a.watch.C()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-notified:
	case <-timer.C:
	case <-a.ctx.Done():
		return ended(a.ctx)
	case <-a.c.open.Done():
		return locks.ErrClosed
	}
	return nil
}

func (a *acquisition) endWatch() {
	if a.watch != nil {
		a.watch.Close()
		a.watch = nil
	}
}

// giveUp ends the acquisition without the lock, while no request is under way.
func (a *acquisition) giveUp(err error) (*grant, bool, error) {
	err = a.withOutage(err)
	if a.queue == nil || !a.placed {
		return nil, false, err
	}
	a.c.keep(a.e)
	left := *a // so that a stays off the heap where nothing is undone
	left.c.spawn(func() {
		defer left.c.unuse(left.e)
		defer left.e.finish()
		left.dequeue()
	})
	return nil, true, err
}

// abandoned returns the error of an acquisition whose last request is being undone, and sees to
// it that an earlier one is undone too.
func (a *acquisition) abandoned(err error) error {
	if a.down != nil && a.queue != nil && !a.doubt.IsZero() {
		a.c.sweep(sweeping{id: a.req.HoldID, queue: a.queue, until: a.doubt, late: true})
	}
	return a.withOutage(err)
}

// withOutage adds to err why the store did not decide the last time, or why it refused.
func (a *acquisition) withOutage(err error) error {
	switch {
	case a.reason != nil:
		return fmt.Errorf("%w; %w", err, a.reason)
	case a.down == nil:
		return err
	case errors.Is(a.down, errLate):
		return fmt.Errorf("%w; %w", err, a.down)
	case errors.Is(a.down, ErrRefused) && !errors.Is(a.down, ErrUnreachable): // it has answered
		return fmt.Errorf("%w; the store was not available: %w", err, a.down)
	}
	return fmt.Errorf("%w; the store could not be reached: %w", err, a.down)
}

// answer is the outcome of one request for the lock.
type answer struct {
	g         *grant
	err       error
	refused   time.Duration // for how long the lock will not be free, if that is known
	listening bool          // see Reply
	reason    error         // see Reply
	doubt     time.Time     // until when the request may have an effect that is unknown, or zero
}

// ask asks the store once. If ctx ends before the answer is there, it returns that the request is
// pending, and what the answer gives is given back. An answer that is there counts.
func (a *acquisition) ask() (r answer, pending bool) {
	if a.ctx.Done() == nil {
		return a.noted(a.l.request(a.ctx, a.req, a.queue)), false
	}
	sent := a.c.now()
	answers := make(chan answer, 1)
	l, ctx, req, queue := a.l, a.ctx, a.req, a.queue
	a.c.spawn(func() { answers <- l.request(ctx, req, queue) })
	select {
	case r := <-answers:
		return a.noted(r), false
	case <-a.ctx.Done():
	}
	select {
	case r := <-answers:
		return a.noted(r), false
	default:
	}
	a.c.keep(a.e)
	a.placed = true // perhaps
	left := *a
	left.c.spawn(func() { left.undo(sent, answers) })
	return answer{err: ended(a.ctx)}, true
}

// noted notes what r says of a's place and of what is unknown, and returns r.
func (a *acquisition) noted(r answer) answer {
	if r.doubt.After(a.doubt) {
		a.doubt = r.doubt
	}
	a.placed = a.placed || !errors.Is(r.err, ErrRefused) && !errors.Is(r.err, locks.ErrForeign)
	return r
}

// request asks the store once: for a place in queue too if there is one. It undoes what a request
// without an answer may have done, unless there is a queue: its place is asked for again.
func (l *Mutex) request(ctx context.Context, req Request, queue Queue) (a answer) {
	c := l.c
	ctx = detach(c.life, ctx)
	c.sched.expect(req.Acquisition)
	defer c.sched.expected(req.Acquisition)
	req.TTL = l.term()
	c.announce(req.TTL)
	sent := c.now()
	var r Reply
	switch {
	case queue != nil:
		r, a.err = queue.Enqueue(ctx, req)
	default:
		r, a.err = c.store.Acquire(ctx, req)
	}
	if a.err != nil {
		if errors.Is(a.err, locks.ErrForeign) || errors.Is(a.err, ErrRefused) {
			return a
		}
		var unknown error // 6
		if r, unknown = c.store.Lookup(ctx, req); unknown != nil || !r.Held {
			a.doubt = sent.Add(req.TTL)
			if queue == nil {
				c.sweep(sweeping{id: req.HoldID, until: a.doubt, late: true})
			}
			return a
		}
		a.err = nil
	}
	if !c.reached.Load() {
		c.reached.Store(true)
	}
	if !r.Held {
		a.refused, a.listening, a.reason = r.Wait, r.Listening, r.Reason
		return a
	}
	// A session that has become shorter meanwhile ends the hold sooner.
	return l.granted(ctx, req.HoldID, queue, r, sent, min(req.TTL, l.term()))
}

// granted makes a grant of what the store gave to id, for d, by a request sent at the time sent.
func (l *Mutex) granted(ctx context.Context, id HoldID, queue Queue, r Reply, sent time.Time, d time.Duration) answer {
	c := l.c
	g := &grant{
		c:     c,
		id:    id,
		token: r.Token,
		lease: d,
		taken: sent,
		fixed: l.fixed,
		until: sent.Add(d - c.marginOf(d)),
		index: -1,
	}
	g.handOver = tripsOfHandOver * c.now().Sub(sent)
	if !r.Since.IsZero() && r.Since.Before(sent) {
		g.until = r.Since.Add(d - c.marginOf(d))
		if l.fixed {
			c.complete(ctx, g)
		}
	}
	if g.err() != nil { // the answer came after its time
		if queue == nil { // else the next request asks for the same, which must not be undone
			c.sweep(sweeping{id: g.id, until: sent.Add(d), late: true})
		}
		return answer{err: errLate, doubt: sent.Add(d)}
	}
	c.sched.add(g)
	if early := c.sched.expected(id.Acquisition); early.notified {
		c.lost(g, early.cause) // as if it had been notified now
	}
	return answer{g: g}
}

var errLate = errors.New("the store's answer came after the end of the lease")

// complete makes g, which is not renewed, last for the whole of its time, a part of which was
// over when it was taken. If that fails, it is shorter.
func (c *Client) complete(ctx context.Context, g *grant) {
	ctx, cancel := context.WithTimeout(ctx, g.end().Sub(c.now()))
	defer cancel()
	p := g.request(g.lease)
	ok, err := c.store.Renew(ctx, []HoldID{g.id}, g.lease)
	switch {
	case err != nil:
		g.unanswered(p)
	case len(ok) == 1 && ok[0]:
		g.answered(p)
	default:
		g.lose(nil)
	}
}

// detach returns a context that lives as long as life, with ctx's values: a request is not cut
// off when its caller has gone.
func detach(life, ctx context.Context) context.Context {
	if ctx == context.Background() { // which has no values
		return life
	}
	return detached{life, ctx}
}

type detached struct {
	context.Context
	values context.Context
}

func (d detached) Value(key any) any { return d.values.Value(key) }
