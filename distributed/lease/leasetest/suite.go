package leasetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/identity"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/driver"
)

// check is one promise. Its name is the subtest's.
type check struct {
	name    string
	applies func(*suite) bool // nil means to every store
	run     func(*suite)
}

const noStore = "leasetest: a Config needs Store or Open"

// TestStore runs every check that applies to the store of cfg as a subtest of t. Several run at a
// time, because they mostly wait for leases to end.
func TestStore(t *testing.T, cfg Config) {
	t.Helper()
	if cfg.Store == nil && cfg.Open == nil {
		t.Fatal(noStore)
	}
	cfg = cfg.withDefaults()
	var wg sync.WaitGroup
	room := make(chan struct{}, cfg.Parallel)
	for _, c := range checks() {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			t.Run(c.name, func(t *testing.T) { c.on(t, cfg) })
		})
	}
	wg.Wait()
}

// TestInVirtualTime is [TestStore] for a store in memory, without the waiting. Each check runs in a
// bubble of testing/synctest, where time jumps ahead when all goroutines wait. A minute of checks
// takes less than a second, and a busy machine changes nothing.
//
// The bubble of each check calls open, so each check has a store of its own. Start the server in
// open, and end its goroutines with tb: a goroutine that stays makes the bubble panic. The store
// must not use anything outside of the bubble, such as a socket, another process, or a goroutine of
// before. If the server serves connections, its clients connect with [Link.Pipe]. Each request
// takes a random time of up to two milliseconds.
//
// Time stands still while a goroutine waits for a sync.Mutex. So the store must not hold a
// sync.Mutex while it sleeps or waits.
func TestInVirtualTime(t *testing.T, open func(tb testing.TB) Config) {
	t.Helper()
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.virtually(t, open(t)) })
		})
	}
}

// virtually is [check.on] in a bubble.
func (c check) virtually(tb testing.TB, cfg Config) {
	if cfg.Store == nil && cfg.Open == nil {
		tb.Fatal(noStore)
	}
	cfg.virtual = true
	// Requests of clients that are closed may still be under way. Each of them ends by itself.
	tb.Cleanup(func() { time.Sleep(time.Hour) })
	c.on(tb, cfg.withDefaults())
}

// checks returns all checks.
func checks() []check {
	var all []check
	for _, part := range [][]check{storeChecks, faultChecks, turnChecks, permitChecks} {
		all = append(all, part...)
	}
	return all
}

// on runs the check with new clients and locks.
func (c check) on(tb testing.TB, cfg Config) {
	s := &suite{TB: tb, cfg: cfg, log: newJournal()}
	var cancel context.CancelFunc
	s.ctx, cancel = context.WithCancel(context.Background())
	tb.Cleanup(cancel)
	if cfg.Rest != nil {
		tb.Cleanup(func() { // the clients are closed before
			for _, name := range s.names {
				cfg.Rest(tb, name)
			}
		})
	}
	if c.applies != nil && !c.applies(s) {
		return
	}
	c.run(s)
}

// suite is one check at work.
type suite struct {
	testing.TB
	cfg   Config
	ctx   context.Context // ends with the check
	log   *journal
	count int
	spare *client // see ready

	mu    sync.Mutex
	names []string // of the locks
}

// client is a client of the store: another process, as far as the server can tell.
type client struct {
	*suite
	n        int
	link     *Link
	provider locks.Provider
	// requests stands in front of the Store of the exclusive lock. It is nil if the locks have
	// none.
	requests *Requests
	opened   []*Requests // of each kind of lock, in the order of opening
	serials  atomic.Uint64
	ends     atomic.Int64 // how often connections that may have had a lock were ended

	mu  sync.Mutex
	ids []driver.HoldID // what raw requests may have taken
}

// client opens a client with a lease that no check outlives.
func (s *suite) client(opts ...lease.Option) *client {
	if c := s.spare; c != nil && len(opts) == 0 {
		s.spare = nil
		return c
	}
	return s.clientFor(time.Minute, opts...)
}

// ready opens a client, by whose Store the suite learns of optional interfaces. The next call of
// client returns it.
func (s *suite) ready() *client {
	if s.spare == nil {
		s.spare = s.client()
	}
	return s.spare
}

// mortal opens a client with the lease cfg.TTL.
func (s *suite) mortal(opts ...lease.Option) *client { return s.clientFor(s.cfg.TTL, opts...) }

func (s *suite) clientFor(ttl time.Duration, opts ...lease.Option) *client {
	s.Helper()
	s.count++
	c := &client{suite: s, n: s.count, link: NewLink(s.TB)}
	c.link.ttl = ttl
	wrap := func(inner driver.Store) driver.Store {
		r := newRequests(inner, s.log, c.n)
		r.lags = s.cfg.virtual
		c.opened = append(c.opened, r)
		return r
	}
	opts = append([]lease.Option{
		lease.WithTTL(ttl), lease.WithPoll(s.cfg.Poll), lease.WithReleaseTimeout(s.cfg.Timeout),
		lease.WithWrapper(wrap),
	}, opts...)
	c.provider = s.cfg.Open(s.TB, c.link, opts...)
	s.Cleanup(func() { // before the client is closed
		c.link.Heal()
		for _, r := range c.opened {
			r.Heal()
		}
		c.giveUp()
	})
	c.requests = c.exclusive()
	return c
}

// exclusive returns which of the Stores has the exclusive locks.
func (c *client) exclusive() *Requests {
	name := c.name()
	l := c.lock(name)
	if len(c.opened) < 2 {
		for _, r := range c.opened {
			return r
		}
		return nil
	}
	owner := c.someone()
	if ok, _ := l.TryLockContext(owner); ok {
		_ = l.UnlockContext(owner)
	}
	for _, r := range c.opened {
		if r.Count(Acquire, Enqueue) > 0 {
			return r
		}
	}
	c.Fatal("the lock sends no request to a Store that was opened with its client")
	return nil
}

// name returns the name of a lock that no other check uses.
func (s *suite) name() string { return s.named(randomName()) }

func randomName() string {
	var random [8]byte
	rand.Read(random[:]) // never fails
	return fmt.Sprintf("leasetest-%x", random)
}

// named returns the name of a lock by plain, which has letters, digits and hyphens only.
func (s *suite) named(plain string) string {
	name := s.cfg.Name(plain)
	s.used(name)
	return name
}

// used remembers the name of a lock for the end of the check.
func (s *suite) used(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = append(s.names, names...)
}

// lock returns the exclusive lock called name.
func (c *client) lock(name string) locks.TryLocker { return c.provider.Locker(name) }

// stored returns the name by which the store knows the lock called name.
func (c *client) stored(name string) string {
	if l, ok := c.lock(name).(interface{ Name() string }); ok {
		return l.Name()
	}
	return name
}

// read returns the read half of the lock called name.
func (c *client) read(name string) locks.TryLocker { return c.cfg.Read(c.provider, name) }

// acquisition returns the name of a new acquisition of the client, for requests without a
// lease.Client.
func (c *client) acquisition() string {
	return c.numbered(strconv.FormatUint(identity.Serial(&c.serials), 10))
}

// numbered returns the name of an acquisition with this number.
func (c *client) numbered(serial string) string {
	id := fmt.Sprintf("leasetest-%p-%d", c.suite, c.n)
	if identified := c.requests.identified(); identified != "" {
		id = identified
	}
	return id + ":" + serial
}

// die kills the client: its requests stop and its network is cut. Its session is not closed.
func (c *client) die() {
	for _, r := range c.opened {
		r.Die()
	}
	c.link.Cut()
	c.event("dies")
}

// giveUp releases what raw requests of the client may have left.
func (c *client) giveUp() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.requests == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.cfg.Timeout)
	defer cancel()
	queue := optional[driver.Queue](c.requests)
	inner := c.requests.Unwrap()
	for _, id := range c.ids {
		if queue != nil {
			_ = inner.(driver.Queue).Leave(ctx, id)
		}
		_, _ = inner.Release(ctx, id)
	}
}

// event adds to the journal.
func (c *client) event(format string, args ...any) { c.log.add(c.n, format, args...) }

// someone returns a context with an owner of its own.
func (s *suite) someone() context.Context { return locks.WithOwner(s.ctx, locks.NewOwner()) }

// broken ends the check: the promise did not hold. It shows the last events of these clients.
func (s *suite) broken(promise string, clients ...*client) {
	s.Helper()
	s.Fatal(s.report(promise, "", clients...))
}

// report says which promise was broken, with the last events of these clients about the lock
// called name, or about all if that is empty.
func (s *suite) report(promise, name string, clients ...*client) string {
	var who []int
	for _, c := range clients {
		who = append(who, c.n)
	}
	return fmt.Sprintf("broken: %s\nthe last events:\n%s", promise, s.log.last(12, name, who...))
}

// hasStore says that requests to the Store can be seen.
func hasStore(s *suite) bool { return s.ready().requests != nil }

// has says that the Store of the lock is a T.
func has[T any](s *suite) bool {
	c := s.ready()
	if c.requests == nil {
		return false
	}
	_, ok := any(optional[T](c.requests)).(T)
	return ok
}

// optional returns r as a T. It is nil unless the Store behind it is one.
func optional[T any](r *Requests) (none T) {
	var s driver.Store = r
	for {
		w, wraps := s.(interface{ Unwrap() driver.Store })
		if !wraps {
			break
		}
		s = w.Unwrap()
	}
	if _, ok := s.(T); !ok {
		return none
	}
	return any(r).(T)
}
