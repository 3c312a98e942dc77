package leasetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// turnChecks use locks of several clients at once.
var turnChecks = []check{
	{"Turns", nil, turns},
	{"HandOvers", hasStore, handOvers},
	{"Tickets", nil, tickets},
	{"Arrival", func(s *suite) bool { return s.cfg.FIFO && has[driver.Queue](s) }, arrival},
	{"Readers", func(s *suite) bool { return s.cfg.Read != nil }, readers},
	{"DeadReader", func(s *suite) bool { return s.cfg.Read != nil && hasStore(s) }, deadReader},
	{"ReaderNotices", func(s *suite) bool { return s.cfg.Read != nil && hasStore(s) }, readerNotices},
	{"History", nil, history},
	{"Chaos", nil, chaos},
}

// crew is the goroutines of a check. Its ctx ends with the first broken promise.
type crew struct {
	*suite
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	grants atomic.Int64 // how often a goroutine of the crew has got what it waited for

	mu     sync.Mutex
	report string
}

func (s *suite) crew() *crew {
	w := &crew{suite: s}
	w.ctx, w.cancel = context.WithCancel(s.ctx)
	return w
}

// breaks is broken for goroutines of the crew, which return after it. It says nothing if a promise
// was broken before.
func (w *crew) breaks(promise string, clients ...*client) { w.breaksOf("", promise, clients...) }

// breaksOf is breaks with the events about one lock.
func (w *crew) breaksOf(name, promise string, clients ...*client) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() == nil {
		w.report = w.suite.report(promise, name, clients...)
		w.cancel()
	}
}

// wait ends the check if a promise was broken, when all goroutines have ended.
func (w *crew) wait() {
	w.Helper()
	w.wg.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel()
	if w.report != "" {
		w.Fatal(w.report)
	}
}

// errHangs ends the context of [crew.patient].
var errHangs = errors.New("no goroutine of the check has got on")

// patient returns a context for a wait. It ends when no goroutine of the crew has got on for the
// time limit. While others get on, the wait goes on: on a busy machine their turns take long. A
// waiter that starves beside them waits for twenty limits.
func (w *crew) patient(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, hangs := context.WithCancelCause(ctx)
	ctx, cancel := context.WithTimeout(ctx, 20*limit)
	w.wg.Go(func() {
		for seen := w.grants.Load(); ; {
			select {
			case <-ctx.Done():
				hangs(nil)
				return
			case <-time.After(limit):
			}
			now := w.grants.Load()
			if now == seen {
				hangs(errHangs)
				return
			}
			seen = now
		}
	})
	return ctx, cancel
}

// ended returns err, the error of a wait with a context of [crew.patient]. If errHangs has ended
// the context, ended adds [errHangs].
func ended(ctx context.Context, err error) error {
	if context.Cause(ctx) == errHangs && !errors.Is(err, errHangs) {
		return fmt.Errorf("%w: %w", err, errHangs)
	}
	return err
}

// room counts the clients that rely on one lock. The store does not know of it.
type room struct {
	inside atomic.Int64
	last   atomic.Pointer[client] // the last that came in
}

// enter returns the client that is inside already, or nil.
func (r *room) enter(c *client) (other *client) {
	n := r.inside.Add(1)
	if before := r.last.Swap(c); n != 1 {
		return before
	}
	return nil
}

func (r *room) leave() { r.inside.Add(-1) }

const oneHolds = "no two clients hold the lock at once"

// turn locks, works and unlocks, and returns how long it waited. It returns false if that broke a
// promise, or if the crew is to end.
func (w *crew) turn(c *client, l locks.TryLocker, r *room, limit time.Duration, work func()) (time.Duration, bool) {
	owner := locks.WithOwner(w.ctx, locks.NewOwner())
	ctx, cancel := w.patient(owner, limit)
	defer cancel()
	asked := time.Now()
	err := c.lockPersistently(ctx, l)
	wait := time.Since(asked)
	if err != nil {
		w.breaks(fmt.Sprintf("while nothing fails, a waiter gets on within %v (%v: %v)",
			limit, wait.Round(time.Millisecond), ended(ctx, err)), c)
		return wait, false
	}
	w.grants.Add(1)
	other := r.enter(c)
	if other == nil {
		work()
	}
	r.leave()
	err = l.UnlockContext(owner)
	switch {
	case other != nil:
		w.breaks(oneHolds, other, c)
	case err != nil && w.ctx.Err() == nil:
		w.breaks(fmt.Sprintf("%s (%v)", unlocks, err), c)
	}
	return wait, w.ctx.Err() == nil
}

// turns makes clients take turns for three seconds, or for less if Chaos goes on for less, and at
// least once. Their leases are so long that a wait for the end of a lease is a stall.
func turns(s *suite) {
	clients := make([]*client, s.cfg.Clients)
	for i := range clients {
		clients[i] = s.client()
	}
	var (
		name    = s.name()
		w       = s.crew()
		r       room
		n       atomic.Int64
		mu      sync.Mutex
		longest time.Duration
		began   = time.Now()
	)
	answers, end := s.pulses()
	defer end()
	for _, c := range clients {
		l := c.lock(name)
		w.wg.Go(func() {
			for first := true; first || time.Since(began) < min(*long, 3*time.Second); first = false {
				// Another holder would come in during the yield.
				before := answers()
				wait, ok := w.turn(c, l, &r, max(s.cfg.Limit, s.cfg.Timeout), func() { s.pause(0) })
				if !ok {
					return
				}
				// A busy machine takes longer, also for other requests.
				if wait > s.cfg.Limit && answers()-before > int(s.cfg.Limit/pulse) {
					w.breaks(fmt.Sprintf("no wait is longer than %v while nothing fails, nor %v",
						s.cfg.Limit, wait.Round(time.Millisecond)), c)
					return
				}
				n.Add(1)
				mu.Lock()
				longest = max(longest, wait)
				mu.Unlock()
			}
		})
	}
	w.wait()
	s.Logf("%d clients take turns: %.0f acquisitions a second, the longest wait %v", len(clients),
		float64(n.Load())/time.Since(began).Seconds(), longest.Round(time.Millisecond))
}

// pulse is the pause between two requests of [suite.pulses].
const pulse = 50 * time.Millisecond

// pulses begins a clock that goes as fast as the store. A client of its own locks and unlocks
// another lock, with a pause after each turn. Requests that only read would be quicker than the
// writes of waiters.
func (s *suite) pulses() (answers func() int, end func()) {
	var (
		l           = s.client().lock(s.name())
		ctx, cancel = context.WithCancel(s.ctx)
		n           atomic.Int64
		wg          sync.WaitGroup
	)
	wg.Go(func() {
		for ; ctx.Err() == nil; n.Add(1) {
			owner := locks.NewOwner()
			if ok, err := l.TryLockContext(locks.WithOwner(ctx, owner)); ok && err == nil {
				_ = l.UnlockContext(locks.WithOwner(s.ctx, owner))
			}
			s.pause(pulse)
		}
	})
	return func() int { return int(n.Load()) }, func() { cancel(); wg.Wait() }
}

// handOvers makes one client wait while another client holds the lock, and releases it at a
// random moment of the wait. No client asks for the lock later, so the waiter relies on its own
// notice. The waiter asks by itself only after a long time. Now and then a third client waits,
// and gives up.
func handOvers(s *suite) {
	name := s.name()
	poll, limit := s.patience(name)
	open := func() *client { return s.clientFor(time.Minute, lease.WithPoll(poll)) }
	holder, waiter, third := open(), open(), open()
	owner := s.someone()
	s.gets(holder, name, owner)
	var longest, sum time.Duration
	n := 0
	for until := time.Now().Add(3 * time.Second); time.Now().Before(until); n++ {
		var (
			w           = s.crew()
			next        = locks.WithOwner(w.ctx, locks.NewOwner())
			ctx, cancel = context.WithTimeout(next, limit)
			got         time.Time
		)
		if rand.IntN(2) == 0 {
			w.wg.Go(func() { w.givesUp(third, name) })
		}
		w.wg.Go(func() {
			if err := waiter.lock(name).LockContext(ctx); err != nil {
				w.breaks(fmt.Sprintf("a waiter is told of a release (it waited %v: %v)", limit, err),
					holder, waiter, third)
			}
			got = time.Now()
		})
		s.pause(brief())
		released := time.Now()
		if err := holder.lock(name).UnlockContext(owner); err != nil {
			w.breaks(fmt.Sprintf("%s (%v)", unlocks, err), holder)
		}
		w.wg.Wait()
		cancel()
		wait := got.Sub(released)
		longest, sum = max(longest, wait), sum+wait
		owner = locks.WithOwner(s.ctx, locks.CurrentOwner(next))
		holder, waiter = waiter, holder
		w.wait()
	}
	s.Logf("%d hand-overs of %v on average, the longest %v", n,
		(sum / time.Duration(max(1, n))).Round(time.Microsecond), longest.Round(time.Millisecond))
}

// patience returns how long a waiter may rely on notices in a check of them, and how long a wait
// takes by then. The lock called name is free.
func (s *suite) patience(name string) (poll, limit time.Duration) {
	c := s.ready()
	mine, _ := c.take(name)
	defer c.free(name, mine)
	w := c.watch(name, c.acquisition())
	if w == nil {
		s.Log("the store has no notices: waiters ask at a tenth of the poll interval")
		return s.cfg.Poll, s.cfg.Timeout
	}
	w.Close()
	return s.cfg.Timeout, s.cfg.Timeout / 2
}

// gets locks a lock that nobody holds.
func (s *suite) gets(c *client, name string, owner context.Context) {
	s.Helper()
	ctx, cancel := context.WithTimeout(owner, s.cfg.Timeout)
	defer cancel()
	if err := c.lock(name).LockContext(ctx); err != nil {
		s.broken(fmt.Sprintf("%s (%v)", freeIsGiven, err), c)
	}
}

// givesUp waits for the lock for a short time.
func (w *crew) givesUp(c *client, name string) {
	owner := locks.WithOwner(w.ctx, locks.NewOwner())
	ctx, cancel := context.WithTimeout(owner, brief())
	defer cancel()
	if c.lock(name).LockContext(ctx) != nil {
		return
	}
	if err := c.lock(name).UnlockContext(owner); err != nil {
		w.breaks(fmt.Sprintf("%s (%v)", unlocks, err), c)
	}
}

const unlocks = "an unlock succeeds on a healthy store"

// brief returns a time of microseconds as often as one of milliseconds.
func brief() time.Duration {
	return time.Duration(rand.Int64N(int64(20 * time.Microsecond << rand.IntN(10))))
}

// pause waits for d, which is not for a state: it spreads moments.
func (s *suite) pause(d time.Duration) {
	switch {
	case d > 0:
		time.Sleep(d)
	case s.cfg.virtual: // a goroutine that only yields stops the time
		time.Sleep(time.Microsecond)
	default:
		runtime.Gosched()
	}
}

// tickets sells each ticket once.
func tickets(s *suite) {
	const count, each = 200, 4
	var (
		name = s.name()
		w    = s.crew()
		r    room
		next int   // protected by the lock alone
		sold []int // likewise
	)
	for range min(4, s.cfg.Clients) {
		c := s.client()
		for range each {
			w.wg.Go(func() {
				for over := false; !over; {
					// The work is done only in an empty room: a broken lock is not a data race.
					_, ok := w.turn(c, c.lock(name), &r, s.cfg.Timeout, func() {
						if over = next == count; over {
							return
						}
						n := next + 1
						s.pause(time.Duration(rand.IntN(3)) * 100 * time.Microsecond)
						next = n
						sold = append(sold, n)
					})
					over = over || !ok
				}
			})
		}
	}
	w.wait()
	for i, n := range sold {
		if n != i+1 {
			s.broken(fmt.Sprintf("each ticket is sold once: number %d is sold as number %d", n, i+1))
		}
	}
	if len(sold) != count {
		s.broken(fmt.Sprintf("%d tickets are sold, not %d", count, len(sold)))
	}
}

// arrival has locks of clients wait one after the other.
func arrival(s *suite) {
	holder, name := s.client(), s.name()
	for range 3 {
		clients := make([]*client, min(4, s.cfg.Clients))
		for i := range clients {
			clients[i] = s.client()
		}
		owner := s.someone()
		s.gets(holder, name, owner)
		var (
			w     = s.crew()
			mu    sync.Mutex
			order []*client
		)
		for _, c := range clients {
			before := c.requests.Count(Enqueue, Watch)
			w.wg.Go(func() {
				owner := locks.WithOwner(w.ctx, locks.NewOwner())
				ctx, cancel := w.patient(owner, s.cfg.Timeout)
				defer cancel()
				if err := c.lock(name).LockContext(ctx); err != nil {
					w.breaks(fmt.Sprintf("each waiter gets the lock (%v)", ended(ctx, err)), holder, c)
					return
				}
				w.grants.Add(1)
				mu.Lock()
				order = append(order, c)
				mu.Unlock()
				if err := c.lock(name).UnlockContext(owner); err != nil {
					w.breaks(fmt.Sprintf("%s (%v)", unlocks, err), c)
				}
			})
			// The client watches, or asks again, when it has its place.
			s.await("a client that waits asks for a place in the queue, and watches or asks again", func() bool {
				return c.requests.Count(Enqueue, Watch) > before+1
			}, c)
			w.grants.Add(1) // a place
		}
		if err := holder.lock(name).UnlockContext(owner); err != nil {
			s.broken(fmt.Sprintf("%s (%v)", unlocks, err), holder)
		}
		w.wait()
		for i, c := range clients {
			if order[i] != c {
				s.broken("the lock goes to clients in order of arrival", c, order[i])
			}
		}
	}
}

// readers share the lock with each other, and with no writer.
func readers(s *suite) {
	a, b, c, name := s.client(), s.client(), s.client(), s.name()
	as, bs, cs := s.someone(), s.someone(), s.someone()
	try := func(c *client, l locks.TryLocker, ctx context.Context, want bool, promise string) {
		s.Helper()
		got, err := l.TryLockContext(ctx)
		if err != nil || got != want {
			s.broken(fmt.Sprintf("%s (%v, error %v)", promise, got, err), a, b, c)
		}
	}
	unlock := func(c *client, l locks.TryLocker, ctx context.Context) {
		s.Helper()
		if err := l.UnlockContext(ctx); err != nil {
			s.broken(fmt.Sprintf("%s (%v)", unlocks, err), c)
		}
	}
	const share, alone, excluded = "readers of several clients share the lock",
		"a writer gets a lock without holders", "a writer holds the lock alone"
	for range 3 {
		try(a, a.read(name), as, true, share)
		try(b, b.read(name), bs, true, share)
		try(c, c.lock(name), cs, false, excluded)
		unlock(a, a.read(name), as)
		try(c, c.lock(name), cs, false, excluded)
		unlock(b, b.read(name), bs)
		try(c, c.lock(name), cs, true, alone)
		try(a, a.read(name), as, false, excluded)
		try(b, b.lock(name), bs, false, excluded)
		unlock(c, c.lock(name), cs)
	}

	var (
		w      = s.crew()
		inside atomic.Int64 // a writer counts as many readers
		both   atomic.Int64
		until  = time.Now().Add(time.Second)
	)
	const writer = 1 << 32
	for i, c := range []*client{a, b, c, a, b, c} {
		l, size := c.read(name), int64(1)
		if i < 2 {
			l, size = c.lock(name), writer
		}
		w.wg.Go(func() {
			for time.Now().Before(until) && w.ctx.Err() == nil {
				owner := locks.WithOwner(w.ctx, locks.NewOwner())
				ctx, cancel := w.patient(owner, s.cfg.Timeout)
				err := l.LockContext(ctx)
				cancel()
				if err != nil {
					w.breaks(fmt.Sprintf("readers and writers get on while nothing fails (%v)", ended(ctx, err)), c)
					return
				}
				w.grants.Add(1)
				n := inside.Add(size)
				if n > writer || size == writer && n != writer {
					w.breaks(excluded, a, b, c)
				}
				if n > 1 && n < writer {
					both.Add(1)
				}
				s.pause(time.Duration(rand.IntN(2)) * time.Millisecond)
				inside.Add(-size)
				if err := l.UnlockContext(owner); err != nil {
					w.breaks(fmt.Sprintf("%s (%v)", unlocks, err), c)
				}
				s.pause(time.Duration(rand.IntN(2)) * time.Millisecond)
			}
		})
	}
	w.wait()
	s.Logf("a reader met another one %d times", both.Load())
}

// readerNotices checks that all readers get the lock when a writer releases it. The readers ask
// by themselves only after a long time, and no reader releases before all have the lock.
func readerNotices(s *suite) {
	name := s.name()
	poll, limit := s.patience(name)
	open := func() *client { return s.clientFor(time.Minute, lease.WithPoll(poll)) }
	writer, readers := open(), []*client{open(), open(), open()}
	owner, w := s.someone(), s.crew()
	s.gets(writer, name, owner)
	var all sync.WaitGroup
	for _, c := range readers {
		all.Add(1)
		asked := func() (n int) {
			for _, r := range c.opened {
				n += r.Count(Acquire, Enqueue, Watch)
			}
			return n
		}
		before := asked()
		w.wg.Go(func() {
			owner := locks.WithOwner(w.ctx, locks.NewOwner())
			ctx, cancel := context.WithTimeout(owner, limit)
			defer cancel()
			err := c.read(name).LockContext(ctx)
			if err != nil {
				w.breaks(fmt.Sprintf("each reader is told of a writer's release (%v)", err), writer, c)
			}
			all.Done()
			all.Wait()
			if err == nil {
				_ = c.read(name).UnlockContext(owner)
			}
		})
		s.await("a reader that waits asks, and watches or asks again",
			func() bool { return asked() > before+1 }, c)
	}
	if err := writer.lock(name).UnlockContext(owner); err != nil {
		s.broken(fmt.Sprintf("%s (%v)", unlocks, err), writer)
	}
	w.wait()
}

// deadReader has one of three readers die. It keeps a writer out for its lease, and not for longer
// because others renew theirs. A short lease ends none of the others'.
func deadReader(s *suite) {
	old, busy, dead, writer, name := s.client(), s.mortal(), s.mortal(), s.client(), s.name()
	if !dead.canDie() {
		return
	}
	owners := make(map[*client]context.Context)
	for _, c := range []*client{old, busy, dead} {
		owners[c] = s.someone()
		if err := c.read(name).LockContext(owners[c]); err != nil {
			s.broken(fmt.Sprintf("readers of several clients share the lock (%v)", err), c)
		}
	}
	began := driver.Now()
	dead.die()
	free := func() bool {
		owner := s.someone()
		ok, _ := writer.lock(name).TryLockContext(owner)
		if ok {
			_ = writer.lock(name).UnlockContext(owner)
		}
		return ok
	}
	term := dead.term(s.cfg.TTL)
	for driver.Now().Sub(began) < 2*term {
		if free() {
			s.broken("a reader keeps a writer out when the leases of others end", old, dead, writer)
		}
		s.pause(20 * time.Millisecond)
	}
	left := busy.read(name).UnlockContext(owners[busy])
	if err := old.read(name).UnlockContext(owners[old]); err != nil {
		s.broken(fmt.Sprintf("%s (%v)", unlocks, err), old)
	}
	late := term / 4
	if left != nil { // on a busy machine its lease may have ended here, and last in the store
		late += term
	}
	if optional[driver.Session](dead.requests) != nil {
		late = s.cfg.Timeout
	}
	s.soon("a dead reader keeps a writer out for its lease only", late, free, busy, dead, writer)
}
