package leader

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/distributed/internal/adapter"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/joined"
)

// Defaults of [WithBackoff].
const (
	DefaultMinBackoff = 250 * time.Millisecond
	DefaultMaxBackoff = 10 * time.Second
)

// ErrResigned is the cause with which the function's context ends after [Election.Resign].
var ErrResigned = errors.New("leader: resigned")

var (
	errRunning = errors.New("leader: run: the Election runs already")
	errNilLock = errors.New("leader: nil lock")
)

// Run is [Election.Run] of a new [Election].
func Run(ctx context.Context, lock locks.TryLocker, lead func(ctx context.Context) error, opts ...Option) error {
	return New(lock, opts...).Run(ctx, lead)
}

// Election is one candidate of the election that a lock decides. Its methods are safe for
// concurrent use. An Election must not be copied.
type Election struct {
	lock     locks.TryLocker
	min, max time.Duration
	gained   func(ctx context.Context)
	lost     func(reason error)
	failed   func(err error)
	news     func(leader Leader)

	running atomic.Bool

	mu     sync.Mutex
	resign func()    // ends the last term of Run
	out    time.Time // no campaign before
}

// Option changes how [New] makes an Election.
type Option func(*Election)

// WithBackoff sets the pauses before the next campaign. The first pause after a leadership is about
// min. Each failed campaign in a row doubles it, up to max. A pause is random, between half of that
// time and the whole, so that candidates do not ask the store all at once. New panics unless 0 <
// min <= max.
func WithBackoff(min, max time.Duration) Option {
	return func(e *Election) { e.min, e.max = min, max }
}

// WithOnGained makes Run call f before it calls the function, with the same ctx. The lock is held.
// If the leadership ends before f returns, Run does not call the function.
func WithOnGained(f func(ctx context.Context)) Option {
	return func(e *Election) { e.gained = f }
}

// WithOnLost makes Run call f once after each leadership, after the release of the lock. The reason
// matches
//
//   - [locks.ErrLost], if the lock was lost,
//   - [ErrResigned], after Resign,
//   - the error of Run's ctx, if it has ended.
//
// Otherwise the reason is the function's result, and Run returns it. After a panic or
// [runtime.Goexit] the reason says so, and the panic or the exit continues after f. For an action
// at the moment of the loss, use [context.AfterFunc] with the function's ctx.
func WithOnLost(f func(reason error)) Option {
	return func(e *Election) { e.lost = f }
}

// WithOnError makes Run call f with the error of each campaign that the store failed, before the
// pause. To give up, a program ends Run's ctx in f.
func WithOnError(f func(err error)) Option {
	return func(e *Election) { e.failed = f }
}

// Leader describes the holder of the lock, in any process.
type Leader = locks.Party

// WithNewLeader makes Run call f with the first leader that it finds, and then with each new
// leader: another owner in this process, or another label, host, or process id. Run calls
// [Election.Leader] every two seconds, in its own goroutine, and repeats a failed call. It does not
// call f while nobody leads. Run returns after the last call of f has returned.
//
// Run returns an error that matches [errors.ErrUnsupported] if the lock does not implement
// [locks.Inspector].
func WithNewLeader(f func(leader Leader)) Option {
	return func(e *Election) { e.news = f }
}

// newsEvery is the time between two calls of Leader for WithNewLeader.
const newsEvery = 2 * time.Second

// New returns a candidate for lock. It does nothing until Run is called. An option with a nil
// function is the same as no option.
func New(lock locks.TryLocker, opts ...Option) *Election {
	e := &Election{lock: lock, min: DefaultMinBackoff, max: DefaultMaxBackoff}
	for _, o := range opts {
		o(e)
	}
	if e.gained == nil {
		e.gained = func(context.Context) {}
	}
	if e.lost == nil {
		e.lost = func(error) {}
	}
	if e.failed == nil {
		e.failed = func(error) {}
	}
	if e.min <= 0 || e.max < e.min {
		panic(fmt.Sprintf("leader: WithBackoff(%v, %v): need 0 < min <= max", e.min, e.max))
	}
	return e
}

// Run campaigns for the lock, and calls lead while this process leads, again and again. See the
// documentation of the package for when it returns.
//
// The ctx of lead is a child of ctx. It ends with the cause [locks.ErrLost] when the lock is lost,
// and with the cause [ErrResigned] after Resign. lead then must return, with any result. If lead
// panics or calls [runtime.Goexit], Run releases the lock, and the panic or the exit continues.
//
// If the lock was lost before the release, Run cannot know whether all of lead's work was done
// under the lock. It then runs lead again in the next leadership, even if lead returned nil. The
// same happens if the store does not confirm the release. So lead's work should be safe to repeat.
//
// Run calls lead and the callbacks in the calling goroutine. Each Run holds the lock as its own
// owner, so two Runs exclude each other even if their contexts carry one owner. For all other
// locks, the ctx of lead has the owner of Run's ctx. So lead cannot re-enter the lock: it would
// wait for itself. [locks.HoldFrom] returns the hold of Run. An Election that runs already makes
// Run return an error.
func (e *Election) Run(ctx context.Context, lead func(ctx context.Context) error) error {
	if ctx == nil {
		return ctxerr.Check("leader: run", ctx)
	}
	switch {
	case ctxerr.IsNil(e.lock):
		return errNilLock
	case lead == nil:
		return ctxerr.Wrap("leader: run", locks.ErrNilFunc)
	}
	if e.running.Swap(true) {
		return errRunning
	}
	defer e.running.Store(false)
	if e.news != nil {
		if _, ok := e.lock.(locks.Inspector); !ok {
			return fmt.Errorf("leader: run: %T: no Inspect: %w", e.lock, errors.ErrUnsupported)
		}
		watching, stop := context.WithCancel(ctx)
		var watch sync.WaitGroup
		watch.Go(func() { e.watch(watching) })
		defer watch.Wait()
		defer stop()
	}
	o := locks.NewOwner()
	var wait time.Duration
	backoff := e.min
	for {
		t := e.term(ctx, o, wait, lead)
		switch {
		case t.final:
			return t.err
		case errors.Is(t.err, ErrResigned):
			wait = 0
			if t.led {
				backoff = e.min
			}
		case t.led:
			backoff = e.min
			wait = adapter.Jitter(backoff)
		default:
			wait = adapter.Jitter(backoff)
			backoff = min(2*backoff, e.max)
		}
	}
}

// term is the outcome of one campaign.
type term struct {
	led   bool  // the function ran
	err   error // why the campaign failed or the leadership ended
	final bool  // Run returns err
}

// term campaigns once as o after the pause wait, and leads if it wins. Resign ends it.
func (e *Election) term(
	ctx context.Context, o locks.Owner, wait time.Duration, lead func(ctx context.Context) error) term {
	round, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	e.mu.Lock()
	e.resign = func() { cancel(ErrResigned) }
	wait = max(wait, time.Until(e.out))
	e.mu.Unlock()
	adapter.Sleep(round, wait)
	if err := round.Err(); err != nil {
		return e.defeat(ctx, round, err)
	}
	var t term
	told := false     // to return
	reason := errExit // if the function does not return
	defer func() {
		if t.led {
			e.lost(reason)
		}
	}()
	caller := callers(ctx)
	err := locks.Do(locks.WithOwner(round, o), e.lock, func(leading context.Context) error {
		if leading.Err() != nil { // since the acquisition
			return nil
		}
		leading = locks.WithOwner(leading, caller)
		t.led = true
		defer func() {
			told = leading.Err() != nil
			if echoes(t.err, leading) {
				t.err = nil
			}
			switch {
			case ctx.Err() != nil:
				reason = joined.Errors(endError(ctx), errExit)
			case told:
				reason = joined.Errors(context.Cause(leading), errExit)
			}
		}()
		if e.gained(leading); leading.Err() == nil {
			t.err = lead(leading)
		}
		return nil // so that the error of Do is the lock's
	})
	if !t.led {
		return e.defeat(ctx, round, err)
	}
	lost := errors.Is(err, locks.ErrLost)
	switch {
	case !told && !lost:
		t.final = true
	case ctx.Err() != nil:
		t.err, t.final = joined.Errors(endError(ctx), t.err), true
	case !lost:
		t.err = joined.Errors(ErrResigned, t.err)
	}
	t.err = joined.Errors(t.err, err)
	reason = t.err
	return t
}

// errExit is the reason of WithOnLost after a panic or runtime.Goexit.
var errExit = errors.New("leader: the function has ended in a panic or an exit of its goroutine")

// callers returns the explicit owner that ctx carries, or 0 if the owner is the calling goroutine.
func callers(ctx context.Context) locks.Owner {
	if o := locks.CurrentOwner(ctx); o != locks.CurrentOwner(context.Background()) {
		return o
	}
	return 0
}

// watch calls news for each new leader, until ctx ends.
func (e *Election) watch(ctx context.Context) {
	var last Leader
	for known := false; ctx.Err() == nil; adapter.Sleep(ctx, newsEvery) {
		leader, ok, _ := e.Leader(ctx) // not ok after an error
		if !ok {
			continue
		}
		now := Leader{Owner: leader.Owner, Label: leader.Label, Host: leader.Host, PID: leader.PID}
		if !known || now != last {
			known, last = true, now
			e.news(leader)
		}
	}
}

// echoes reports whether err only says why ctx ended.
func echoes(err error, ctx context.Context) bool {
	return err == ctx.Err() || err == context.Cause(ctx)
}

// defeat returns the outcome of a campaign that failed with err.
func (e *Election) defeat(ctx, round context.Context, err error) term {
	switch {
	case ctx.Err() != nil:
		return term{err: endError(ctx), final: true}
	case round.Err() != nil:
		return term{err: ErrResigned}
	case errors.Is(err, locks.ErrClosed), errors.Is(err, locks.ErrForeign):
		return term{err: err, final: true}
	}
	e.failed(err)
	return term{err: err}
}

// endError returns the error of Run after the end of ctx.
func endError(ctx context.Context) error { return ctxerr.Ended("leader: run", ctx) }

// Resign gives up the leadership, or the campaign, and keeps this candidate out of the election for
// the duration out. Another candidate can lead meanwhile. Resign does not wait: [WithOnLost]
// reports when the lock is released. The function itself may call Resign, and then must return.
//
// A later Resign replaces the duration of an earlier Resign. Without Run, it delays the first
// campaign. With 0, Run campaigns again at once. The lock decides whether another waiter goes
// first.
func (e *Election) Resign(out time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.out = time.Now().Add(out)
	if e.resign != nil {
		e.resign()
	}
}

// Leader returns the present leader, in any process, and false if nobody leads. A holder that the
// lock does not know is the zero [Leader]. When a caller reads the answer, there may already be
// another leader.
//
// Leader asks the store by the lock's Inspect, until ctx ends. The error matches
// [errors.ErrUnsupported] if the lock does not implement [locks.Inspector].
func (e *Election) Leader(ctx context.Context) (leader Leader, ok bool, err error) {
	if ctxerr.IsNil(e.lock) {
		return leader, false, errNilLock
	}
	inspector, ok := e.lock.(locks.Inspector)
	if !ok {
		return leader, false, fmt.Errorf("leader: %T: no Inspect: %w", e.lock, errors.ErrUnsupported)
	}
	info, err := inspector.Inspect(ctx)
	if err != nil {
		return leader, false, err
	}
	if len(info.Holders) > 0 {
		leader = info.Holders[0]
	}
	return leader, info.Held, nil
}
