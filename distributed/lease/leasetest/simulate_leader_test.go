package leasetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/leader"
	"github.com/jucgo/locks/distributed/lease"
	"github.com/jucgo/locks/distributed/lease/leasetest/internal/fakestore"
	"github.com/jucgo/locks/internal/test/effort"
)

// elections has a user of a life lead where it would hold a lock.
type elections struct {
	*lease.Client
	tb testing.TB
	n  *atomic.Int64 // leaderships that began or were ended: they take turns in how
}

func (e elections) Locker(name string) locks.TryLocker {
	return &candidate{Mutex: e.Client.Mutex(name), tb: e.tb, n: e.n, terms: make(map[locks.Owner]*term)}
}

// candidate is a lock whose owner is elected: it is acquired when the owner leads, and released
// when the owner no longer does.
type candidate struct {
	*lease.Mutex // for ForceUnlock and Inspect
	tb           testing.TB
	n            *atomic.Int64

	mu    sync.Mutex
	terms map[locks.Owner]*term
}

// term is the part of an owner in a candidate.
type term struct {
	election  *leader.Election
	depth     int
	gained    chan struct{} // closed when the owner leads
	leading   context.Context
	hold      locks.Hold
	leave     chan struct{} // closed when the owner no longer leads
	cancel    context.CancelFunc
	done      chan struct{} // closed when Run has returned
	err       error         // of Run
	lost      chan struct{} // closed with the loss of the leadership
	once      sync.Once
	lostEarly bool // the leadership was lost before OnGained returned
	lossTold  bool // OnLost was told of the loss, which Run does not return after Resign
	late      bool // the leadership has ended before OnGained returned
	terms     int  // leaderships that began
	reported  int  // leaderships whose end was reported
}

var errLed = errors.New("the owner has led before")

func (c *candidate) term(ctx context.Context) *term {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.terms[locks.CurrentOwner(ctx)]
}

// campaign begins to run the election for the owner of ctx.
func (c *candidate) campaign(ctx context.Context) *term {
	t := &term{
		depth: 1, gained: make(chan struct{}), leave: make(chan struct{}), done: make(chan struct{}), lost: make(chan struct{}),
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t.cancel = cancel
	var leading context.Context // of the present leadership
	t.election = leader.New(c.Mutex, leader.WithBackoff(20*time.Millisecond, 200*time.Millisecond),
		leader.WithOnGained(func(ctx context.Context) {
			t.terms++
			leading = ctx
			if c.n.Add(1)%4 == 0 { // the caller may give up meanwhile
				select {
				case <-time.After(300 * time.Millisecond):
				case <-ctx.Done():
				}
			}
			t.late = ctx.Err() != nil
		}),
		leader.WithOnLost(func(reason error) {
			if t.reported++; t.reported != t.terms {
				c.tb.Errorf("leader: the end of leadership %d is reported as the %dth", t.terms, t.reported)
			}
			if errors.Is(context.Cause(leading), locks.ErrLost) && !errors.Is(reason, locks.ErrLost) {
				c.tb.Errorf("leader: a lost leadership has ended for another reason: %v", reason)
			}
			if leading.Err() == nil {
				c.tb.Errorf("leader: the leadership has ended, and its context has not")
			}
			if errors.Is(reason, locks.ErrLost) { // Run goes on until then
				t.lostEarly = t.leading == nil
				t.lossTold = t.lossTold || t.leading == leading
				time.AfterFunc(time.Millisecond, cancel)
			}
		}))
	go func() {
		t.err = t.election.Run(running, func(ctx context.Context) error {
			if t.late {
				c.tb.Error("leader: the function runs although its leadership has ended")
			}
			if t.leading != nil {
				return errLed
			}
			hold, ok := locks.HoldFrom(ctx)
			if !ok {
				c.tb.Error("leader: the function has no hold")
			}
			t.leading, t.hold = ctx, hold
			close(t.gained)
			select {
			case <-t.leave:
			case <-ctx.Done():
			}
			return nil
		})
		if errors.Is(t.err, locks.ErrLost) && !errors.Is(t.err, locks.ErrClosed) && running.Err() == nil {
			c.tb.Errorf("leader: Run ends with a loss: %v", t.err)
		}
		cancel()
		close(t.done)
	}()
	return t
}

func (c *candidate) LockContext(ctx context.Context) error {
	if t := c.term(ctx); t != nil {
		t.depth++
		return nil
	}
	t := c.campaign(ctx)
	select {
	case <-t.gained:
	case <-t.done:
	case <-ctx.Done():
		t.cancel()
		<-t.done
	}
	select {
	case <-t.gained:
	default:
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case t.lostEarly:
			return c.LockContext(ctx)
		}
		return t.err
	}
	if ctx.Err() != nil { // the leadership is over
		return context.Cause(ctx)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.terms[locks.CurrentOwner(ctx)] = t
	return nil
}

func (c *candidate) TryLockContext(ctx context.Context) (bool, error) {
	brief, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
	defer cancel()
	err := c.LockContext(brief)
	if err != nil && ctx.Err() == nil && brief.Err() != nil {
		return false, nil
	}
	return err == nil, err
}

// UnlockContext ends the leadership in one of three ways.
func (c *candidate) UnlockContext(ctx context.Context) error {
	c.mu.Lock()
	owner := locks.CurrentOwner(ctx)
	t := c.terms[owner]
	if t == nil {
		c.mu.Unlock()
		return locks.ErrNotHeld
	}
	if t.depth--; t.depth > 0 {
		c.mu.Unlock()
		return nil
	}
	delete(c.terms, owner)
	c.mu.Unlock()
	switch c.n.Add(1) % 3 {
	case 0:
		t.election.Resign(0)
		<-t.leading.Done()
		t.cancel()
	case 1:
		t.cancel()
	default:
		close(t.leave)
	}
	<-t.done
	switch {
	case t.lossTold, errors.Is(t.err, locks.ErrLost), errors.Is(context.Cause(t.leading), locks.ErrLost):
		return fmt.Errorf("%w: %w", locks.ErrLost, t.err)
	case t.err == nil, errors.Is(t.err, context.Canceled), errors.Is(t.err, errLed):
		return nil
	}
	return t.err
}

func (c *candidate) Hold(ctx context.Context) (locks.Hold, error) {
	t := c.term(ctx)
	if t == nil {
		return nil, locks.ErrNotHeld
	}
	context.AfterFunc(t.leading, t.tell)
	return leadership{t.hold, t}, nil
}

// tell closes lost if the leadership was lost.
func (t *term) tell() {
	if errors.Is(context.Cause(t.leading), locks.ErrLost) {
		t.once.Do(func() { close(t.lost) })
	}
}

// leadership is a hold that lasts as long as the context of the function that leads.
type leadership struct {
	locks.Hold
	term *term
}

func (l leadership) Lost() <-chan struct{} { return l.term.lost }

func (l leadership) Err() error {
	if l.term.leading.Err() == nil {
		return nil
	}
	l.term.tell()
	return context.Cause(l.term.leading)
}

// electing is cfg with elections instead of locks. tb is the testing.TB of the server.
func electing(tb testing.TB, cfg Config) Config {
	cfg = cfg.withDefaults()
	open := cfg.Open
	cfg.Open = func(opened testing.TB, link *Link, opts ...lease.Option) locks.Provider {
		return elections{open(opened, link, opts...).(*lease.Client), tb, new(atomic.Int64)}
	}
	return cfg
}

// leaderSeeds are the seeds of lives that have found something.
var leaderSeeds = map[fakestore.Kind][]uint64{
	fakestore.Tied:   {12559668065707946105}, // a leadership was lost before OnGained returned
	fakestore.Polled: {11189970043143233970}, // the release after Resign found a loss, which Run does not return
}

func TestLivesOfLeaders(t *testing.T) {
	t.Parallel()
	for _, kind := range []fakestore.Kind{fakestore.Polled, fakestore.Watched, fakestore.Full, fakestore.Tied} {
		t.Run(string(kind), func(t *testing.T) {
			Simulate(t, World{For: effort.Part(5 * time.Minute), Seeds: leaderSeeds[kind], Open: func(tb testing.TB) Config {
				return electing(tb, direct(tb, "", kind))
			}})
		})
	}
}
