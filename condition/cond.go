package condition

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/syncq"
)

// ErrNilPredicate reports a nil function given to [Cond.WaitWhile].
var ErrNilPredicate = errors.New("condition: nil predicate")

// Cond is a condition of a lock: a place to wait, with the lock given up meanwhile, until
// somebody who changed what the lock guards says so. A lock may have any number of
// conditions, each with waiters of its own. Java's Condition.
//
// A Cond is made by [New] or by the lock's NewCond method.
//
// A wait gives up all holds of the lock, however many, and has as many again when it
// returns, for whatever reason it does. A waiter does not wake without a reason, but
// what it was signalled for may have been changed by others until it has the lock
// again: wait in a loop, or with [Cond.WaitWhile].
//
// Signals go to the longest waiter, under a fair lock and a non-fair one. Whether a wait
// ended by a signal or by its limit is decided once: a signal is never
// lost to a waiter that reports its time-out or the end of its context.
//
// The plain methods are for the goroutine that holds the lock, and panic with
// [locks.ErrNotHeld] in any other. Those with a context act for its [locks.Owner], and
// return that error. A lock without owners can only tell that nobody
// holds it; over a [sync.Locker] of another kind not even that is checked, unless it has a
// method IsLocked() bool.
//
// In the terms of the Go memory model, a signal synchronizes before the return of the
// wait that it ends.
type Cond struct {
	q      *syncq.Cond
	check  check
	outer  lockable            // checked by asks
	refuse func(o int64) error // if not nil, says why o, which holds the lock, may not wait
}

// lockable is a lock that can tell whether anybody holds it.
type lockable interface{ IsLocked() bool }

// check is what a condition knows about the holder of its lock.
type check uint8

const (
	owned   check = iota // who holds
	held                 // whether anybody holds
	asks                 // the same, by the lock's own word
	unknown              // nothing
)

// New returns a condition of l. If l is a lock of this module, it is the same as
// l.NewCond(). Any other [sync.Locker] will do as well; its waiters, once signalled, ask
// for l one after the other. If it has a method IsLocked() bool, the condition cannot be used
// while that returns false.
//
// New panics if l is nil, and with an error that matches [errors.ErrUnsupported] if l is the read side of an
// RWMutex or a view of a StampedLock: a wait could not give up what its owner holds. Java's UnsupportedOperationException.
func New(l sync.Locker) *Cond {
	if l == nil {
		panic("condition: New of a nil Locker")
	}
	if _, ok := l.(interface{ HasNoConditions() }); ok {
		panic(fmt.Errorf("condition: New of %v, which has no conditions: %w", l, errors.ErrUnsupported))
	}
	if ours, ok := l.(interface{ NewCond() *Cond }); ok {
		return ours.NewCond()
	}
	c := &Cond{q: syncq.NewCondOver(l), check: unknown}
	if outer, ok := l.(lockable); ok {
		c.check, c.outer = asks, outer
	}
	return c
}

// Attach returns a condition of the lock whose synchronizer is s. It is how locks of
// this module make theirs.
func Attach(s *syncq.Sync, policy syncq.Policy, hasOwner bool) *Cond {
	c := &Cond{q: syncq.NewCond(s, policy), check: held}
	if hasOwner {
		c.check = owned
	}
	return c
}

// AttachIf is Attach for a lock with an owner that may not wait always: it is refused for the reason
// that refuse returns, if any.
func AttachIf(s *syncq.Sync, policy syncq.Policy, refuse func(o int64) error) *Cond {
	c := Attach(s, policy, true)
	c.refuse = refuse
	return c
}

// Of reports whether c is a condition of the lock whose synchronizer is s.
func (c *Cond) Of(s *syncq.Sync) bool { return c.q.Sync() == s }

// isHeld reports whether o may use c, as far as c can know.
func (c *Cond) isHeld(o int64) bool {
	switch c.check {
	case owned:
		return c.q.Sync().HeldBy(o)
	case held:
		return c.q.Sync().Held()
	case asks:
		return c.outer.IsLocked()
	}
	return true
}

// party returns o as the one to wait.
func (c *Cond) party(o int64) syncq.Party {
	if c.check == owned {
		return syncq.Owned(o)
	}
	return syncq.Anonymous(o)
}

// must returns the calling goroutine, which must hold the lock.
func (c *Cond) must() int64 {
	me := goid.Get()
	if !c.isHeld(me) {
		panic(locks.ErrNotHeld)
	}
	return me
}

// may returns the owner that ctx stands for, or why op may not be done for it.
func (c *Cond) may(op string, ctx context.Context) (int64, error) {
	if err := ctxerr.Check(op, ctx); err != nil {
		return 0, err
	}
	o := int64(locks.CurrentOwner(ctx))
	if !c.isHeld(o) {
		return 0, ctxerr.Wrap(op, locks.ErrNotHeld)
	}
	if c.refuse != nil {
		if err := c.refuse(o); err != nil {
			return 0, ctxerr.Wrap(op, err)
		}
	}
	return o, nil
}

// waiter returns the calling goroutine as the one to wait.
func (c *Cond) waiter() syncq.Party {
	me := c.must()
	if c.refuse != nil {
		if err := c.refuse(me); err != nil {
			panic(err)
		}
	}
	return c.party(me)
}

// Wait waits for a signal. Java's awaitUninterruptibly().
func (c *Cond) Wait() { c.q.Wait(c.waiter()) }

// WaitContext waits for a signal until ctx ends, and returns nil if and only if a signal
// ended the wait. It returns holding the lock in any case, so that it may return long
// after ctx ended. A ctx that has ended already is reported with the lock
// never given up. Java's await().
func (c *Cond) WaitContext(ctx context.Context) error {
	const op = "condition: WaitContext"
	signalled, err := c.wait(op, ctx)
	if err == nil && !signalled {
		return ctxerr.Ended(op, ctx)
	}
	return err
}

// wait waits for the owner that ctx stands for, and reports whether a signal ended the wait. The error
// says why there was none.
func (c *Cond) wait(op string, ctx context.Context) (signalled bool, err error) {
	for {
		o, err := c.may(op, ctx)
		if err != nil {
			return false, err
		}
		// Another goroutine of an explicit owner may have taken the reason to wait away
		// meanwhile; then there is an error to report, or it has come back.
		if waited, signalled := c.q.WaitOwned(ctx, c.party(o)); waited {
			return signalled, nil
		}
	}
}

// WaitFor waits for a signal for at most d, and returns what is left of d when the lock
// is held again: at most d, and not more than 0 if the time ran out. It may be 0 or less
// after a signal as well, if the lock was long in coming; [Cond.WaitUntil] tells the
// difference. With d <= 0 the lock is given up and taken again. Java's
// awaitNanos(long).
func (c *Cond) WaitFor(d time.Duration) (remaining time.Duration) {
	p := c.waiter()
	d = max(d, 0) // the least Duration must not wrap around below
	start := time.Now()
	c.q.WaitFor(p, d)
	return d - time.Since(start)
}

// WaitUntil waits for a signal until the time is t, and reports whether a signal ended
// the wait. Java's awaitUntil(Date).
func (c *Cond) WaitUntil(t time.Time) bool {
	return c.q.WaitFor(c.waiter(), time.Until(t))
}

// WaitWhile waits until blocked, which it calls with the lock held, returns false, and
// returns nil then. If ctx ends first, it returns ctx's error, unless blocked returns false
// all the same; a ctx that has ended already is an error, and blocked is not called. It holds the lock in any case.
func (c *Cond) WaitWhile(ctx context.Context, blocked func() bool) error {
	const op = "condition: WaitWhile"
	if blocked == nil {
		return ctxerr.Wrap(op, ErrNilPredicate)
	}
	if _, err := c.may(op, ctx); err != nil {
		return err
	}
	for blocked() {
		if ctx.Err() != nil {
			return ctxerr.Ended(op, ctx)
		}
		switch signalled, err := c.wait(op, ctx); {
		case err != nil:
			return err
		case !signalled && blocked():
			return ctxerr.Ended(op, ctx)
		}
	}
	return nil
}

// Signal moves the longest waiter, if there is one, to the end of the lock's queue. It is
// there when Signal returns, and runs when the lock is its own. Java's signal().
func (c *Cond) Signal() {
	c.must()
	c.q.Signal()
}

// SignalContext is Signal for the owner that ctx carries. Like an unlock it ignores
// that ctx has ended.
func (c *Cond) SignalContext(ctx context.Context) error {
	if !c.isHeld(int64(locks.CurrentOwner(ctx))) {
		return ctxerr.Wrap("condition: SignalContext", locks.ErrNotHeld)
	}
	c.q.Signal()
	return nil
}

// Broadcast moves all waiters, in their order, to the end of the lock's queue. Each
// runs when the lock is its own; they do not wake up together. Java's
// signalAll().
func (c *Cond) Broadcast() {
	c.must()
	c.q.Broadcast()
}

// BroadcastContext is Broadcast for the owner that ctx carries. Like an unlock it
// ignores that ctx has ended.
func (c *Cond) BroadcastContext(ctx context.Context) error {
	if !c.isHeld(int64(locks.CurrentOwner(ctx))) {
		return ctxerr.Wrap("condition: BroadcastContext", locks.ErrNotHeld)
	}
	c.q.Broadcast()
	return nil
}

// HasWaiters reports whether anybody waits for a signal.
func (c *Cond) HasWaiters() bool { return c.WaitQueueLength() > 0 }

// WaitQueueLength returns the number of those who wait for a signal.
func (c *Cond) WaitQueueLength() int {
	c.must()
	return c.q.Len()
}

// Waiters returns those who wait for a signal, longest wait first.
func (c *Cond) Waiters() []locks.Owner {
	c.must()
	who := c.q.Waiters()
	owners := make([]locks.Owner, len(who))
	for i, o := range who {
		owners[i] = locks.Owner(o)
	}
	return owners
}
