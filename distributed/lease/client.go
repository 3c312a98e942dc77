package lease

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/distributed/internal/identity"
	"github.com/jucgo/locks/distributed/lease/driver"
	"github.com/jucgo/locks/distributed/lease/internal/clock"
	"github.com/jucgo/locks/distributed/lease/internal/closing"
	"github.com/jucgo/locks/internal/leases"
)

// Defaults of a [Client].
const (
	// DefaultLease is how long a hold lasts without a renewal.
	DefaultLease = 30 * time.Second
	// DefaultPoll is how long a waiter relies on notifications before it asks again.
	DefaultPoll = 5 * time.Second
	// DefaultReleaseTimeout is how long an unlock tries to reach the store.
	DefaultReleaseTimeout = 3 * time.Second
	// DefaultMaxLocalHandoffs is how often in a row a held lock goes from one local holder to
	// the next.
	DefaultMaxLocalHandoffs = 64
)

// Client gives locks of a [driver.Store] to one process, or to one part of it. Locks of different
// Clients exclude each other like locks of different processes. [New] makes a Client; the locks of
// a zero Client return an error. A Client is safe for concurrent use, and must not be copied.
// [Client.Close] ends it.
type Client struct {
	base
	schedule schedule    // of the holds: their renewals and their ends
	releaser releaser    // gives holds back, and undoes requests of acquisitions without a hold
	queues   localQueues // of the names in use

	id           string
	where        string // the place of the locks, see driver.WithPlace
	namePrefix   string // the text that the store puts in front of the locks' names
	identity     string // the description of this process for other processes
	acquisitions atomic.Uint64
	reached      atomic.Bool // the store has answered once
	unlist       func()      // takes the client from the list of package leases
}

// Option changes how [New] makes a Client.
type Option func(*driver.Config)

// WithTTL sets how long a hold lasts without a renewal, [DefaultLease] if not given. After that
// time other owners get the lock of a process that died. Holds are renewed when a third of that
// time is over.
func WithTTL(d time.Duration) Option { return func(c *driver.Config) { c.TTL = d } }

// WithMargin sets how much earlier a hold ends here than in the store. The margin covers the time
// from a loss until the holder's goroutines have seen it, and the drift between the two clocks
// during a lease. The default is a twentieth of the lease, at most a second.
func WithMargin(d time.Duration) Option { return func(c *driver.Config) { c.Margin = d } }

// WithPoll sets how long a waiter relies on notifications before it asks again, [DefaultPoll] if
// not given.
func WithPoll(d time.Duration) Option { return func(c *driver.Config) { c.Poll = d } }

// WithReleaseTimeout sets how long an unlock tries to reach the store, whatever its context says,
// [DefaultReleaseTimeout] if not given. An unlock returns by then, even if the store's client
// does not.
func WithReleaseTimeout(d time.Duration) Option {
	return func(c *driver.Config) { c.ReleaseTimeout = d }
}

// WithMaxLocalHandoffs sets how often in a row a held lock may go from one local holder to the next
// without a request to the store. The default is [DefaultMaxLocalHandoffs]. With 0 the lock goes
// back to the store each time.
//
// After n hand-offs, and after a quarter of the lease, the lock goes back to the store, so that
// other processes have their turn. If no other client wanted the lock when it was acquired, the
// Client first asks a store that is a [driver.ContentionProber], in the background. Then n more
// hand-offs follow for as long as no other client wants the lock. If another client wanted the
// lock when it was acquired, only goroutines that already waited here get it. But hand-offs go on
// for as long as a hand-over to another process would take.
//
// All holders between two acquisitions from the store have the same fencing token. Adapters with
// tokens set n to 0 by default.
func WithMaxLocalHandoffs(n int) Option { return func(c *driver.Config) { c.MaxLocalHandoffs = n } }

// Retry says after which errors of its first request LockContext goes on, until its context ends.
// After an error of a later request LockContext goes on, unless the store has refused the request
// itself, or something other than a lock is under the name.
type Retry int

const (
	// RetryPassing repeats a request after an error matching [ErrUnavailable]: the store is
	// starting, or its cluster or pool will recover. It also repeats a request whose answer comes
	// after the end of the lease. It does not repeat a request after [ErrUnreachable] or
	// [ErrLogin]: the address or the password may be wrong.
	RetryPassing Retry = iota
	// RetryNever returns every error of a first request.
	RetryNever
	// RetryUnreachable also repeats a request after [ErrUnreachable]. With a wrong address,
	// LockContext then returns only when its context ends.
	RetryUnreachable
)

// WithRetry sets after which errors of a first request LockContext goes on, [RetryPassing] if not
// given. TryLockContext asks once and returns every error.
func WithRetry(r Retry) Option { return func(c *driver.Config) { c.Retry = int(r) } }

// WithLogger makes the Client log losses, and releases that did not reach the store. The default
// is not to log.
func WithLogger(l *slog.Logger) Option { return func(c *driver.Config) { c.Logger = l } }

// WithWrapper makes the Client use the result of wrap in place of its Store, for tests that lose
// requests and for traces. The result needs a method Unwrap() Store, which returns the Store that
// wrap got. The Client then uses the optional interfaces that both implement. [New] returns an
// error if wrap returns nil.
func WithWrapper(wrap func(driver.Store) driver.Store) Option {
	return func(c *driver.Config) { c.Wrapper = wrap }
}

// New returns a Client of s. It runs one goroutine until it is closed.
func New(s driver.Store, opts ...Option) (*Client, error) {
	return newClient(s, clock.Suspended, opts...)
}

// newClient is New with a clock, see base.suspended.
func newClient(s driver.Store, suspended func(time.Time) time.Duration, opts ...Option) (*Client, error) {
	conf := driver.Config{
		ErrorPrefix:      "lease",
		TTL:              DefaultLease,
		Poll:             DefaultPoll,
		ReleaseTimeout:   DefaultReleaseTimeout,
		MaxLocalHandoffs: DefaultMaxLocalHandoffs,
		Margin:           -1,
	}
	for _, o := range opts {
		o(&conf)
	}
	err := checkOptions(s, &conf)
	self := ""
	if err == nil {
		self, err = identity.Of(conf.Label)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", conf.ErrorPrefix, err)
	}
	if conf.Wrapper != nil {
		if s = conf.Wrapper(s); s == nil {
			return nil, fmt.Errorf("%s: WithWrapper returned a nil Store", conf.ErrorPrefix)
		}
	}
	// Version 8 tells clients of this module from Redisson's, whose ids are of version 4.
	c := &Client{id: adapter.NewUUID(8), identity: self, where: conf.Place, namePrefix: conf.NamePrefix}
	c.base = base{
		store:     s,
		prefix:    conf.ErrorPrefix,
		ttl:       conf.TTL,
		margin:    conf.Margin,
		poll:      conf.Poll,
		patience:  conf.ReleaseTimeout,
		handoffs:  conf.MaxLocalHandoffs,
		retry:     Retry(conf.Retry),
		log:       conf.Logger,
		suspended: suspended,
	}
	c.queue = optional[driver.Queue](c.store)
	c.prober = optional[driver.ContentionProber](c.store)
	c.session = optional[driver.Session](c.store)
	c.inspector = optional[driver.Inspector](c.store)
	c.announcer = optional[driver.Announcer](c.store)
	c.breaker = optional[driver.Breaker](c.store)
	c.batches = optional[driver.BatchReleaser](c.store)
	if p := optional[driver.ReleaseHeedsDeadline](c.store); p != nil {
		c.heedsDeadline = p.ReleaseHeedsDeadline()
	}
	c.jobs.init()
	c.releaser.base, c.releaser.schedule = &c.base, &c.schedule
	c.releaser.unsettled = make(map[driver.HoldID][]*sweeping)
	c.schedule.sweep = c.releaser.sweep
	c.schedule.init(&c.base)
	c.queues.base, c.queues.releaser = &c.base, &c.releaser
	c.queues.names = make(map[string]*localQueue)
	c.unlist = leases.Register(c.live)
	if c.inspector != nil {
		c.inspector.Identify(c.id, c.identity)
	}
	if n := optional[driver.LossNotifier](c.store); n != nil {
		c.schedule.listen()
		n.NotifyLoss(c.schedule.onLoss)
	}
	return c, nil
}

// optional returns s as a T. It returns nil if s is not a T, or wraps a Store that is not a T.
func optional[T any](s driver.Store) (none T) {
	t, ok := s.(T)
	for ok {
		w, wraps := s.(interface{ Unwrap() driver.Store })
		if !wraps {
			return t
		}
		s = w.Unwrap()
		_, ok = s.(T)
	}
	return none
}

// checkOptions returns an error if an option has a wrong value.
func checkOptions(s driver.Store, c *driver.Config) error {
	retry := Retry(c.Retry)
	switch {
	case s == nil:
		return errors.New("nil Store")
	case c.TTL < time.Millisecond:
		return fmt.Errorf("TTL of %v, at least 1ms is needed", c.TTL)
	case c.Poll <= 0:
		return fmt.Errorf("poll interval of %v, it must be positive", c.Poll)
	case c.ReleaseTimeout <= 0:
		return fmt.Errorf("release timeout of %v, it must be positive", c.ReleaseTimeout)
	case retry < RetryPassing || retry > RetryUnreachable:
		return fmt.Errorf("retry of %d, it must be RetryPassing, RetryNever or RetryUnreachable", retry)
	case c.MaxLocalHandoffs < 0:
		return fmt.Errorf("%d local hand-offs, at least 0 is needed", c.MaxLocalHandoffs)
	case c.Margin >= c.TTL/2:
		return fmt.Errorf("margin of %v, less than half of the TTL %v is allowed", c.Margin, c.TTL)
	}
	return nil
}

// ID returns the client's name in the store. The names of its acquisitions begin with it.
func (c *Client) ID() string { return c.id }

// newAcquisition returns the name of the next acquisition in the store. Each acquisition has a
// name of its own, so that a late request of an earlier acquisition does not affect a later hold.
// The name also tells an inspector when the acquisition began.
func (c *Client) newAcquisition() string {
	var room [64]byte
	b := append(append(room[:0], c.id...), ':')
	return string(strconv.AppendUint(b, identity.Serial(&c.acquisitions), 10))
}

// Close releases all holds, and makes all waiters return [locks.ErrClosed]. Holders find their
// holds lost, before the locks are released. Close waits for the store until ctx ends, whatever the
// number of holds. It gives up earlier if the store answers no release for the release timeout.
//
// Close returns nil only if no hold is left, and if no earlier request can take a lock any more.
// Otherwise it returns one error. The error says how many holds were released, how many
// acquisitions are in doubt, and for how long their locks may stay held at most. An acquisition is
// in doubt if the store has not answered its request, its release, or the last renewal of its lost
// hold. Close asks the store once more to undo the acquisition, but does not wait until a late
// request could not come any more.
//
// When Close returns, no goroutine of the client runs any more, unless the store ignores contexts.
// Only the first call does anything.
func (c *Client) Close(ctx context.Context) error {
	if !c.made() {
		return nil // it holds nothing
	}
	end := c.beginClose()
	together := closing.Of(ctx)
	together.Begin()
	if end == nil {
		return nil
	}
	left := end.finish(ctx)
	together.Add(left)
	if left.None() {
		return nil
	}
	return left
}
