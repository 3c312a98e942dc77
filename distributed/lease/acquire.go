package lease

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// How an owner acquires a lock, from the call of LockContext on. The numbers are repeated in the
// code.
//
//  1. Re-entry. If the owner has the lock, one more hold is counted, without a request.
//     (Mutex.lock)
//  2. Local queue. The owner waits for its turn among the owners of this process, in order of
//     arrival. From then on only it may acquire the lock here. (localQueue.enter)
//  3. Hand-off. If the owner before has handed the store's lock off, the new owner has it without
//     a request. Goroutines that share an explicit owner are here together: one goes on, and the
//     others wait for its result. (acquisition.ensure)
//  4. Yield. If this process has just had its share of turns, it lets waiters elsewhere go first.
//     (acquisition.run)
//  5. Request. The store is asked for the lock under a name that no other acquisition has. A
//     request is not cut off when ctx ends: it goes on, and its effect is undone.
//     (acquisition.ask, acquisition.undo)
//  6. Unknown outcome. Without an answer, the store is asked which acquisition holds. Unless it
//     says that the acquisition holds, or never will, the request's effect is undone in the
//     background. A later request has a new name, unless there is a place in a queue to keep.
//     (question.request, releaser.sweep)
//  7. Refusal. The first refusal begins a watch, and the store is asked once more, so that no
//     release in between is missed. Then the acquisition waits for a notification or the poll
//     interval, and asks again. (acquisition.onRefusal)
//  8. Outage. The store is asked again after an increasing pause. After an error of the first
//     request, that depends on WithRetry. (acquisition.retries, acquisition.unreachable)
//  9. End. ctx or the client ends: the place in a queue and the watch are given up.
//     (acquisition.giveUp)

// acquisition does steps 3 to 9 for one owner, whose turn it is. Its requests to the store lead to
// one grant, or to none.
type acquisition struct {
	question
	local   *localQueue
	end     adapter.End  // of ctx, whose methods are not called here
	wait    bool         // for the lock; else for one answer
	patient bool         // the acquisition has waited before, and waits for an unreachable store too
	watch   driver.Watch // or nil

	placed    bool          // the acquisition may have a place in queue
	contended bool          // the store has refused the lock: others held it
	down      error         // why the store could not be reached the last time, or nil
	reason    error         // why the store has refused a lock that may be free the last time, or nil
	backoff   time.Duration // the last pause of an outage
}

// question has the contents of a request to the store. At this size a goroutine gets its own copy
// for nothing.
type question struct {
	l      *Mutex
	c      *Client
	ctx    context.Context
	id     driver.HoldID
	writer string       // see Request
	queue  driver.Queue // in which the acquisition may have a place, or nil
	doubt  time.Time    // until when an earlier request without an answer may have an effect, or zero

	several bool // more than one earlier request is without an answer
}

// acquire is steps 2 to 9 for o, which does not hold the lock. It is called with the end of ctx. No
// method of ctx but Value is called while o has its turn: see [adapter.End]. An error that matches
// errEnded is for [Mutex.explain].
func (l *Mutex) acquire(ctx context.Context, end adapter.End, o locks.Owner, wait bool) (bool, error) {
	writer, err := l.enter(o)
	if err != nil {
		return false, err
	}
	q, err := l.use(o)
	if err != nil {
		return false, err
	}
	ok, waited, err := q.enter(ctx, o, wait) // 2
	if !ok {
		q.drop()
		return false, err
	}
	a := &acquisition{question: question{l: l, c: l.c, ctx: ctx, writer: writer}, local: q, end: end, wait: wait}
	a.patient = (waited || l.waited) && l.c.reached.Load() // a waits for an unreachable store too
	if ok, err = a.ensure(); !ok {
		q.leave(o)
	}
	return ok, err
}

// ensure makes sure that the owner, whose turn it is, has the store's lock as well. If ensure
// fails, it leaves everything as it was.
func (a *acquisition) ensure() (bool, error) {
	c, q := a.c, a.local
	for {
		q.mu.Lock()
		switch { // 3
		case q.hold != nil:
			err := q.hold.Err()
			q.mu.Unlock()
			return err == nil, err
		case c.open.Err() == nil && q.grant != nil && !a.l.fixed() && q.grant.err() == nil:
			// decide keeps no grant with a fixed term for the next owner.
			q.hold = &hold{g: q.grant} // even if ctx has ended since
			q.handoff.next()
			q.mu.Unlock()
			return true, nil
		case a.end.Reached():
			q.mu.Unlock()
			return false, errEnded
		case c.open.Err() != nil:
			q.mu.Unlock()
			return false, locks.ErrClosed
		case q.busy:
			idle := q.whenIdle()
			q.mu.Unlock()
			if !a.wait {
				return false, nil
			}
			select {
			case <-idle:
			case <-a.end.Done():
			case <-c.open.Done():
			}
			continue
		}
		left, yield := q.start(c.now())
		a.id = driver.HoldID{Name: a.l.name, Acquisition: c.newAcquisition()}
		if a.wait {
			q.asks = a.id.Acquisition
		}
		q.mu.Unlock()
		return a.fetch(left, yield)
	}
}

// fetch gets the lock from the store. If left is not nil, fetch releases left first. The local
// queue is busy until fetch is done.
func (a *acquisition) fetch(left *grant, yield time.Duration) (bool, error) {
	c, q := a.c, a.local
	if left != nil {
		yield, _ = c.releaser.release(left)
	}
	if a.wait && c.queue != nil {
		if !c.begin() {
			q.finish()
			return false, locks.ErrClosed
		}
		defer c.finish()
		a.queue = c.queue
	}
	g, pending, err := a.run(yield)
	if pending {
		return false, err // q is busy until the last request is undone
	}
	q.mu.Lock()
	late := g != nil && c.open.Err() != nil // Close finds no hold here: it waits until q is idle
	if g != nil && !late {
		q.handoff.onGrant(a.contended, yield > 0, q.turn.QueueLength())
		q.grant, q.hold = g, &g.first
	}
	if !late {
		q.finishLocked()
	}
	q.mu.Unlock()
	if late {
		if c.releaser.close(g) {
			c.releaser.sweep(&sweeping{id: g.id, until: g.over()})
		}
		q.finish()
		return false, locks.ErrClosed
	}
	return g != nil, err
}

// run asks the store until it gives the lock, or there is a reason not to go on. It first lets
// others go first for the time yield. If pending, the last request is still being undone, and the
// local queue is busy until that is done.
func (a *acquisition) run(yield time.Duration) (g *grant, pending bool, err error) {
	defer a.endWatch()
	if a.wait && yield > 0 { // 4
		if err := a.sleep(yield); err != nil {
			return nil, false, err
		}
	}
	for {
		if a.down != nil { // the store may have given the lock unseen, and ended the notifications
			a.endWatch()
		}
		r, pending := a.ask() // 5, 6
		switch {
		case pending:
			return a.giveUp(r.err, true)
		case r.g != nil:
			return r.g, false, nil
		case r.err == nil && !a.wait:
			return nil, false, r.reason
		case r.err != nil && !a.retries(r.err):
			a.down, a.reason = nil, nil
			return a.giveUp(r.err, false)
		}
		a.patient = true
		var pause time.Duration
		if r.err != nil {
			pause = a.unreachable(r) // 8
		} else if pause = a.onRefusal(r); pause == 0 { // 7
			continue
		}
		if err := a.sleep(max(pause, time.Millisecond)); err != nil {
			return a.giveUp(err, false) // 9
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
	case errors.Is(err, ErrLogin) || !errors.Is(err, ErrUnavailable):
		return false
	case errors.Is(err, ErrUnreachable):
		return c.retry == RetryUnreachable
	}
	return true
}

// onRefusal returns how long to wait for a notification after a refusal, or 0 to ask again at once.
func (a *acquisition) onRefusal(r answer) time.Duration {
	a.down, a.reason, a.backoff, a.contended = nil, r.reason, 0, true
	pause := a.c.poll
	if a.watch == nil {
		watch, err := a.c.store.Watch(a.end.Of(a.ctx), a.id)
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
		// The failed request may still have an effect, which must not touch the next request.
		a.id.Acquisition = a.c.newAcquisition()
		a.local.mu.Lock()
		a.local.asks = a.id.Acquisition
		a.local.mu.Unlock()
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
	case <-a.l.nudge:
	case <-timer.C:
	case <-a.end.Done():
		return errEnded
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

// giveUp ends the acquisition without the lock. If pending, its last request is being undone.
func (a *acquisition) giveUp(err error, pending bool) (*grant, bool, error) {
	err = a.withOutage(err)
	switch {
	case pending: // undo also sweeps what earlier requests without an answer take
		return nil, true, err
	case a.queue == nil || !a.placed:
		return nil, false, err
	}
	a.local.keep()
	left := *a // so that a stays off the heap where nothing is undone
	left.c.spawn(func() {
		defer left.local.drop()
		defer left.local.finish()
		left.leave()
	})
	return nil, true, err
}

// withOutage adds to err why the store did not decide the last time, or why it refused.
func (a *acquisition) withOutage(err error) error {
	switch {
	case a.reason != nil:
		return outage{err, "", a.reason}
	case a.down == nil:
		return err
	case errors.Is(a.down, errLate):
		return outage{err, "", a.down}
	case errors.Is(a.down, ErrRefused) && !errors.Is(a.down, ErrUnreachable): // the store has answered
		return outage{err, "the store was not available: ", a.down}
	}
	return outage{err, "the store could not be reached: ", a.down}
}

// outage is the end of an acquisition, and why the store has not decided before.
type outage struct {
	end  error
	text string
	why  error
}

func (e outage) Error() string   { return e.end.Error() + "; " + e.text + e.why.Error() }
func (e outage) Unwrap() []error { return []error{e.end, e.why} }

// errEnded says that the caller's ctx has ended. The caller, which may still have its turn, does
// not ask ctx why: see [Mutex.explain].
var errEnded = errors.New("the context has ended")

// explain returns err, with the error of ctx in place of errEnded. The caller has no turn any more.
func (l *Mutex) explain(ctx context.Context, err error) error {
	o, out := err.(outage)
	switch {
	case out:
		o.end = l.explain(ctx, o.end)
		err = o
	case err == errEnded:
		err = adapter.Ended(ctx)
	}
	if err != nil && ctx.Err() == nil && l.c.life.Err() != nil {
		return locks.ErrClosed // Close has ended the request
	}
	return err
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

// ask asks the store once. If ctx ends before the answer is there, ask reports that the request is
// pending, and the effect of the request is undone. If the answer is there when ctx ends, the
// answer counts.
func (a *acquisition) ask() (r answer, pending bool) {
	if a.end.Done() == nil {
		return a.noteAnswer(a.request()), false
	}
	sent := a.c.now()
	answers := make(chan answer, 1)
	asked := a.question
	a.c.spawn(func() { answers <- asked.request() })
	select {
	case r := <-answers:
		return a.noteAnswer(r), false
	case <-a.end.Done():
	}
	select {
	case r := <-answers:
		return a.noteAnswer(r), false
	default:
	}
	a.local.keep()
	left := *a
	left.placed = true // the request may have taken a place
	left.c.spawn(func() { left.undo(sent, answers) })
	return answer{err: errEnded}, true
}

// note notes that a request may have an effect until doubt, unless that is zero.
func (a *question) note(doubt time.Time) {
	if doubt.IsZero() {
		return
	}
	a.several = !a.doubt.IsZero()
	if doubt.After(a.doubt) {
		a.doubt = doubt
	}
}

// noteAnswer notes whether a may have a place by answer r, and until when a request may have an
// unknown effect. It returns r.
func (a *acquisition) noteAnswer(r answer) answer {
	a.note(r.doubt)
	a.placed = a.placed || !errors.Is(r.err, ErrRefused) && !errors.Is(r.err, locks.ErrForeign)
	return r
}

// request asks the store once: for a place in queue too if there is a queue. It undoes the effect
// of a request without an answer. With a queue it undoes nothing: the next request asks for the
// place again.
func (a question) request() (r answer) {
	c := a.c
	ctx := detach(c.life, a.ctx)
	c.schedule.expect(a.id.Acquisition)
	defer c.schedule.endExpect(a.id.Acquisition)
	l := a.l
	req := driver.Request{
		HoldID: a.id, TTL: l.term(), Permits: l.permits, Size: l.size, Writer: a.writer, Data: l.conf.Data,
	}
	c.announce(req.TTL)
	sent := c.now()
	var reply driver.Reply
	switch {
	case a.queue != nil:
		reply, r.err = a.queue.Enqueue(ctx, req)
	default:
		reply, r.err = c.store.Acquire(ctx, req)
	}
	if r.err != nil {
		if errors.Is(r.err, locks.ErrForeign) || errors.Is(r.err, ErrRefused) {
			return r
		}
		var unknown error // 6
		reply, unknown = c.store.Lookup(ctx, req)
		switch {
		case unknown == nil && reply.Settled && !reply.Held:
			return r
		case unknown != nil || !reply.Held || a.queue != nil && !a.doubt.IsZero():
			// If an earlier request of the acquisition is in doubt too, the lock may be held
			// because of that earlier request. In this case the lease began before this request was
			// sent, and this request may still come. The next request is answered with a new lease.
			r.doubt = c.unknownUntil(sent, req.TTL)
			if a.queue == nil {
				a.sweep(r.doubt, nil, false)
			}
			return r
		}
		r.err = nil
	}
	if !c.reached.Load() {
		c.reached.Store(true)
	}
	if !reply.Held {
		r.refused, r.listening, r.reason = reply.Wait, reply.Listening, reply.Reason
		return r
	}
	// A session that has become shorter meanwhile ends the hold sooner.
	return a.makeGrant(ctx, reply, sent, min(req.TTL, a.l.term()))
}

// makeGrant makes a grant of r, by which the store gave the lock for ttl. The request was sent at
// the time sent.
func (a question) makeGrant(ctx context.Context, r driver.Reply, sent time.Time, ttl time.Duration) answer {
	c := a.c
	g := &grant{
		s:     &c.schedule,
		id:    a.id,
		token: r.Token,
		ttl:   ttl,
		taken: sent,
		fixed: a.l.fixed(),
		until: sent.Add(ttl - c.marginOf(ttl)),
		index: -1,
	}
	g.first.g = g
	if a.queue != nil { // else the earlier request had another name, and is undone apart
		g.doubt, g.several = a.doubt, a.several
		if !a.doubt.IsZero() { // a late request sets the lease to ttl again, after an extension too
			g.unknown, g.late = ttl, c.now().Add(latest)
		}
	}
	g.trip = c.now().Sub(sent)
	g.handOver = tripsOfHandOver * g.trip
	begun := !r.Since.IsZero() && r.Since.Before(sent)
	if begun {
		g.until = r.Since.Add(ttl - c.marginOf(ttl))
	}
	g.kept = g.over()
	if begun && g.fixed {
		c.schedule.complete(ctx, g)
	}
	if g.err() != nil { // the answer came after the end of the lease
		if a.queue == nil { // else the next request asks for the same acquisition, which must not be undone
			a.sweep(sent.Add(ttl), nil, false)
		}
		return answer{err: errLate, doubt: sent.Add(ttl)}
	}
	c.schedule.add(g)
	if early := c.schedule.endExpect(g.id.Acquisition); early.notified {
		c.schedule.lose(g, early.cause) // as if the store reported the loss now
	}
	return answer{g: g}
}

var errLate = errors.New("the store's answer came after the end of the lease")

// detach returns a context that lives as long as life, with ctx's values: a request is not cut
// off when its caller has gone.
func detach(life, ctx context.Context) context.Context {
	if ctx == context.Background() { // which has no values
		return life
	}
	return adapter.Detach(life, ctx)
}
