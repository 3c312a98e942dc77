package lease

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/reentrant"
)

// Defaults of a [Client].
const (
	// DefaultLease is for how long a hold lasts that is renewed.
	DefaultLease = 30 * time.Second
	// DefaultPoll is how long a waiter relies on being notified before it asks again.
	DefaultPoll = 5 * time.Second
	// DefaultReleaseTimeout is for how long an unlock tries to reach the store.
	DefaultReleaseTimeout = 3 * time.Second
	// DefaultCohort is how often in a row a held lock goes from one local holder to the next.
	DefaultCohort = 64
)

// maxAsking is how long turns go on while a store has not answered yet whether anybody else waits.
const maxAsking = 20 * time.Millisecond

// Client is one process's, or one part of a process's, access to the locks of a [Store]. Locks of
// different Clients exclude each other like those of different processes. It is
// safe for concurrent use; [Client.Close] ends it.
type Client struct {
	store   Store
	queue   Queue            // the store, if it has one
	usher   Usher            // the store, if it is one
	teller  Teller           // the store, if it is one
	asker   ContentionProber // the store, if it is one
	session Session          // the store, if it is one
	id      string
	lease   time.Duration
	margin  time.Duration
	poll    time.Duration
	release time.Duration
	cohort  int
	retry   Retry
	log     *slog.Logger

	life  context.Context // until Close is through
	end   context.CancelFunc
	open  context.Context // until Close begins
	shut  context.CancelFunc
	sched scheduler

	acquisitions atomic.Uint64
	reached      atomic.Bool // the store has answered once

	mu       sync.Mutex
	brief    context.Context // see briefly
	briefEnd time.Time
	closing  bool
	entries  map[string]*entry
	jobs     int           // at work
	drained  chan struct{} // closed when there are none any more, once the client is closing
}

// Option changes how [New] makes a Client.
type Option func(*Client)

// WithTTL sets for how long a hold lasts that is renewed, [DefaultLease] if not given: the time
// after which others get the lock of a process that died. It is renewed when a third of it has passed.
func WithTTL(d time.Duration) Option { return func(c *Client) { c.lease = d } }

// WithMargin sets by how much earlier than the store a holder regards its hold as over. It
// covers the time from the loss to the moment when the holder's goroutines have seen it, and the
// drift between the two clocks in the course of a lease. The default is a twentieth of the lease, at
// most a second.
func WithMargin(d time.Duration) Option { return func(c *Client) { c.margin = d } }

// WithPoll sets how long a waiter relies on being notified before it asks again, [DefaultPoll] if
// not given.
func WithPoll(d time.Duration) Option { return func(c *Client) { c.poll = d } }

// WithReleaseTimeout sets for how long an unlock tries to reach the store, whatever its context
// says, [DefaultReleaseTimeout] if not given.
func WithReleaseTimeout(d time.Duration) Option { return func(c *Client) { c.release = d } }

// WithMaxLocalHandoffs sets how often in a row a held lock may go from one local holder to the next without
// the store knowing, [DefaultCohort] if not given. 0 gives it back each time. After so many turns, and after a quarter of the lease in
// any case, it is given back, so that other processes have theirs. Only if nobody else wanted the lock when it was taken, and the store
// is an [ContentionProber], is it asked first, in the background, whether anybody wants it now; if not, as many turns may follow.
//
// If somebody else did want it, the turns are for those who waited here when it was taken: whoever came later waits behind others.
// But turns that altogether take less time than to give the lock back and have others take it go on, which would be most of the time
// otherwise.
//
// The holders of a cohort share one fencing token. Where tokens count, adapters have no cohorts unless told to.
func WithMaxLocalHandoffs(n int) Option { return func(c *Client) { c.cohort = n } }

// WithLogger has losses, and releases that did not reach the store, logged. Without it nothing is.
func WithLogger(l *slog.Logger) Option { return func(c *Client) { c.log = l } }

// Retry says which errors of its first request LockContext takes as one more thing to wait for, until its context ends.
// Only requests that the store has surely not carried out are meant. Later requests of a call that waits already are
// repeated in any case.
type Retry int

const (
	// RetryPassing repeats a request that the store has refused for a reason that passes by itself: it is starting, its
	// cluster is about to heal, or its pool has no free connection. A store that cannot be reached is an error at once,
	// because its address may be wrong.
	RetryPassing Retry = iota
	// RetryNever returns every error of a first request.
	RetryNever
	// RetryUnreachable also repeats a request for which no connection could be made. A wrong address is then an error
	// only when the context ends.
	RetryUnreachable
)

// WithRetry sets which errors of a first request LockContext waits out, [RetryPassing] if not given. TryLockContext asks
// once and returns every error.
func WithRetry(r Retry) Option { return func(c *Client) { c.retry = r } }

// New returns a Client of s. It runs one goroutine until it is closed.
func New(s Store, opts ...Option) (*Client, error) {
	c := &Client{
		store:   s,
		id:      newID(),
		lease:   DefaultLease,
		poll:    DefaultPoll,
		release: DefaultReleaseTimeout,
		cohort:  DefaultCohort,
		margin:  -1,
		entries: make(map[string]*entry),
		drained: make(chan struct{}),
	}
	for _, o := range opts {
		o(c)
	}
	switch {
	case s == nil:
		return nil, errors.New("lease: nil Store")
	case c.lease < time.Millisecond:
		return nil, fmt.Errorf("lease: lease of %v is shorter than 1ms", c.lease)
	case c.poll <= 0 || c.release <= 0:
		return nil, fmt.Errorf("lease: poll interval %v and release timeout %v must be positive", c.poll, c.release)
	case c.retry < RetryPassing || c.retry > RetryUnreachable:
		return nil, fmt.Errorf("lease: retry of %d is none of RetryPassing, RetryNever and RetryUnreachable", c.retry)
	case c.cohort < 0:
		return nil, fmt.Errorf("lease: cohort of %d", c.cohort)
	case c.margin >= c.lease/2:
		return nil, fmt.Errorf("lease: margin %v leaves less than half of the lease %v", c.margin, c.lease)
	}
	c.queue, _ = s.(Queue)
	c.usher, _ = s.(Usher)
	c.teller, _ = s.(Teller)
	c.asker, _ = s.(ContentionProber)
	c.session, _ = s.(Session)
	c.life, c.end = context.WithCancel(context.Background())
	c.open, c.shut = context.WithCancel(context.Background())
	c.sched.init(c)
	if h, ok := s.(LossNotifier); ok {
		c.sched.owners = make(map[string]*grant)
		c.sched.early = make(map[string]*early)
		h.NotifyLoss(c.heralded)
	}
	return c, nil
}

// newID returns a random UUID, version 4.
func newID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// ID returns what all owners of the client have in front of their names in the store.
func (c *Client) ID() string { return c.id }

// owner returns the name that the next acquisition has in the store. Each has another one, so that a request of an
// earlier one, which the network delivers late, means nothing to a later hold.
func (c *Client) owner() string {
	var room [64]byte
	b := append(append(room[:0], c.id...), ':')
	return string(strconv.AppendUint(b, c.acquisitions.Add(1), 10))
}

// marginOf returns how much earlier than the store a hold for d is over.
func (c *Client) marginOf(d time.Duration) time.Duration {
	if c.margin >= 0 {
		return min(c.margin, d/2)
	}
	return min(d/20, time.Second)
}

// entry is what the process has to do with one name, or one owner with a [Shared] one. It exists while somebody here holds the lock,
// waits for it, or clears up.
type entry struct {
	name  string
	gate  *reentrant.Mutex
	users atomic.Int64 // from 0 to more only with Client.mu held

	mu        sync.Mutex
	depth     int       // holds at the gate that count
	extra     int       // how many of them, but for the first, count as a user too
	hold      *hold     // the holder's, if it has the store's lock too
	grant     *grant    // the store's lock, if it is here. The holder's, or left to the next one
	crowd     int       // how many waited at the gate when grant was taken
	turns     int       // how many holders had grant since the store knew, or was asked, last
	asked     time.Time // since when the store is being asked whether anybody else waits, or zero
	rival     bool      // somebody else waited when grant was taken, or when the store was asked last
	contended bool      // somebody else held the lock when grant was asked for, or was not let go first, see awaited
	awaited   bool      // when the store got the lock back the last time somebody else waited, and nobody here who could let him go first
	// yield is until when the next one here shall let others go first, after a cohort had its share.
	yield time.Time
	// busy is set while somebody talks to the store about grant, which nobody else may do then. idle, if
	// somebody waits for the end of that, is closed at it.
	busy bool
	idle chan struct{}
}

// spawn runs job in a goroutine for which Close waits.
func (c *Client) spawn(job func()) {
	c.mu.Lock()
	c.jobs++
	c.mu.Unlock()
	go func() {
		defer c.done()
		job()
	}()
}

// begin counts a job for which Close waits, until done, or reports false because it has begun.
func (c *Client) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closing {
		c.jobs++
	}
	return !c.closing
}

func (c *Client) done() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs--; c.jobs == 0 && c.closing {
		c.drain()
	}
}

// drain says that no goroutine is at work. c.mu is held.
func (c *Client) drain() {
	select {
	case <-c.drained:
	default:
		close(c.drained)
	}
}

// enter returns name's entry with one more user. If there is none, it is last, unless that is nil: an earlier one of that name, which
// was forgotten. It is as good as a new one, since nobody was left to use it.
func (c *Client) enter(name string, last *entry) (*entry, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return nil, locks.ErrClosed
	}
	e := c.entries[name]
	if e == nil {
		if e = last; e == nil {
			e = &entry{name: name, gate: reentrant.New(fair.FIFO)}
		}
		c.entries[name] = e
	}
	e.users.Add(1)
	return e, nil
}

// keep counts one more user of e, which has some.
func (c *Client) keep(e *entry) { e.users.Add(1) }

// leave counts one user less, and forgets e with the last. Whoever enters meanwhile has counted itself before the second look, or
// finds e gone.
func (c *Client) leave(e *entry) {
	if e.users.Add(-1) > 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.users.Load() == 0 && c.entries[e.name] == e {
		delete(c.entries, e.name)
	}
}

// look returns name's entry, or nil.
func (c *Client) look(name string) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[name]
}

// settled ends a time in which e was busy. e.mu is held.
func (e *entry) settled() {
	e.busy = false
	if e.idle != nil {
		close(e.idle)
		e.idle = nil
	}
}

// whenIdle returns a channel that is closed when e, which is busy, is so no more. e.mu is held.
func (e *entry) whenIdle() <-chan struct{} {
	if e.idle == nil {
		e.idle = make(chan struct{})
	}
	return e.idle
}

// Close releases all holds, and has all who wait for locks return [locks.ErrClosed]. Holders find
// their holds lost: before the locks are released. It waits for the store to answer for at most
// the release timeout or until ctx ends, and returns an error if some locks could not be released; these
// end with their leases. Nothing of the client runs any more when it returns, unless
// the store ignores contexts. Only the first call does anything.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		return nil
	}
	c.closing = true
	entries := make([]*entry, 0, len(c.entries))
	for _, e := range c.entries {
		entries = append(entries, e)
	}
	if c.jobs == 0 {
		c.drain()
	}
	c.mu.Unlock()
	c.shut()
	c.sched.wait()

	stop := context.AfterFunc(ctx, c.end)
	defer stop()
	defer time.AfterFunc(c.release, c.end).Stop()
	var held []*grant
	var busy []<-chan struct{}
	for _, e := range entries {
		e.mu.Lock()
		switch {
		case e.busy: // perhaps with an unlock that is no job, since this has begun before it was one
			busy = append(busy, e.whenIdle())
		case e.grant != nil:
			held = append(held, e.grant)
		}
		e.mu.Unlock()
	}
	failed := c.abandonAll(held)
	for _, idle := range busy {
		select {
		case <-idle:
		case <-c.life.Done():
		}
	}
	select {
	case <-c.drained:
	case <-c.life.Done():
	}
	c.end()
	return failed
}

// closers is how many releases Close has under way at a time.
const closers = 16

// abandonAll makes gs lost, all of them before it waits for anything, and has the store free them. It returns when life ends at the
// latest, even if the store does not care for that.
func (c *Client) abandonAll(gs []*grant) error {
	if len(gs) == 0 {
		return nil
	}
	var mine []*grant
	for _, g := range gs {
		if c.abandon(g) {
			mine = append(mine, g)
		}
	}
	work := make(chan *grant, len(mine))
	for _, g := range mine {
		work <- g
	}
	close(work)
	errs := make(chan error, len(mine))
	for range min(closers, len(mine)) {
		go func() {
			for g := range work {
				_, err := c.store.Release(c.life, g.ref.Name, g.ref.Acquisition)
				if err != nil {
					err = fmt.Errorf("lease: Close: release of %q: %w", g.ref.Name, err)
				}
				errs <- err
			}
		}()
	}
	var failed []error
	for i := range mine {
		select {
		case err := <-errs:
			if err != nil {
				failed = append(failed, err)
			}
		case <-c.life.Done():
			select {
			case err := <-errs: // it was on time
				failed = append(failed, err)
				continue
			default:
			}
			err := fmt.Errorf("lease: Close: %d of %d locks not released: %w", len(mine)-i, len(mine), context.Cause(c.life))
			return errors.Join(append(failed, err)...)
		}
	}
	return errors.Join(failed...)
}
