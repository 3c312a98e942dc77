package condition

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/attach"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/outcome"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/raceorder"
	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/internal/shares"
	"github.com/jucgo/locks/internal/syncq"
	"github.com/jucgo/locks/internal/unheld"
)

// ErrNoLock reports the use of a zero [Cond], which belongs to no lock.
var ErrNoLock = errors.New("a zero Cond belongs to no lock: use New, or NewCond of the lock")

// ErrSharedHolds reports a wait of an explicit owner that has more than one hold, if the calling
// goroutine has not acquired all of them. The wait would release the holds of another goroutine,
// and admit other owners while that goroutine relies on its holds.
var ErrSharedHolds = errors.New("other goroutines of the owner hold the lock too")

// Cond is a condition of a lock: a place to wait until a goroutine that has changed what the
// lock guards sends a signal. The lock is released during the wait. A lock may have any number
// of conditions, each with its own waiters. Java's Condition.
//
// A Cond is made by [New] or by the lock's NewCond method. The methods of a zero Cond fail with
// [ErrNoLock]. A Cond must not be copied: keep the pointer.
//
// A wait releases all holds of the lock, and has acquired as many holds again when it returns,
// whatever ended the wait. A waiter does not wake without a reason. But before it has the lock
// again, other goroutines may have changed what the signal announced: wait in a loop, or with
// [Cond.WaitWhile].
//
// Signals go to the longest waiter, under fair and non-fair locks. A wait ends either by a
// signal or by its limit: a signal is never lost to a waiter that reports its time-out or the
// end of its context.
//
// # Owners
//
// The plain methods act for the calling goroutine, and panic with [locks.ErrNotHeld] if it does not
// hold the lock. The methods with a context act for the [locks.Owner] of the context, and return an
// error that matches ErrNotHeld. A lock without owners can only tell whether it is free. A
// [sync.Locker] of another module is not checked, unless it has a method IsLocked() bool.
//
// Goroutines that share an explicit owner share its holds. A wait by one of them is refused with
// [ErrSharedHolds] if the owner has more than one hold, and another goroutine acquired one of
// them. If another goroutine of the owner holds the lock when the wait ends, the waiter has its
// hold at once, like any re-entry.
//
// # Memory model
//
// A signal synchronizes before the return of the wait that it ends.
type Cond struct {
	_ [0]sync.Mutex // shows vet that a Cond must not be copied

	of     sync.Locker // the lock
	q      *syncq.Cond
	kind   *syncq.Kind         // the kind of a lock that knows its owner, else nil
	refuse func(o int64) error // if not nil, says why o, which holds the lock, may not wait
	order  *raceorder.Order    // the order of a lock that hides its word from the race detector, else nil
	outer  *foreign            // the lock, if the condition cannot use its queue, else nil
}

// New returns a condition of l. If l is a lock of this module, New(l) is the same as l.NewCond().
// Any other [sync.Locker] works as well, even a type that embeds a lock of this module. Its
// signalled waiters ask for l one after the other. If l has a method IsLocked() bool, the
// condition cannot be used while IsLocked returns false. New panics if l is nil, or a nil pointer.
// If l is a read side or a view of a StampedLock, New panics with an error that matches
// [errors.ErrUnsupported]: a wait could not release the holds of its owner. Java's
// UnsupportedOperationException.
func New(l sync.Locker) *Cond {
	switch ours, ok := l.(*attach.Lock); { // from NewCond of a lock of this module
	case ok && ours.Q == nil:
		return newForeign(ours.Locker)
	case ok:
		return &Cond{of: ours.Locker, q: ours.Q, kind: ours.Kind, refuse: ours.Refuse, order: ours.Order}
	}
	if ctxerr.IsNil(l) {
		panic("condition: New of a nil Locker")
	}
	if _, ok := l.(interface{ HasNoConditions() }); ok {
		panic(fmt.Errorf("condition: New of a %T, which has no conditions: %w", l, errors.ErrUnsupported))
	}
	if ours, ok := l.(interface{ NewCond() *Cond }); ok && isOurs(reflect.TypeOf(l)) {
		return ours.NewCond()
	}
	return newForeign(l)
}

// packages are the packages of this module whose locks have a method NewCond.
var packages = []string{"fair", "keyed", "reentrant", "rwlock", "spin"}

// isOurs reports whether t is the type of a lock of packages. New does not call the NewCond of any
// other type, since that method may call New.
func isOurs(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	name, ok := strings.CutPrefix(t.PkgPath(), "github.com/jucgo/locks/")
	return ok && slices.Contains(packages, name)
}

// Locker returns the lock of the condition, which [sync.Cond] has in its field L. A zero Cond
// belongs to no lock, and Locker returns nil.
func (c *Cond) Locker() sync.Locker { return c.of }

// isHeld reports whether o holds the lock, as far as c can know.
func (c *Cond) isHeld(o int64) bool {
	switch {
	case c.outer != nil:
		return c.outer.isHeld()
	case c.kind != nil:
		return c.q.Sync().HeldBy(o)
	}
	exclusively, _ := c.q.Holds() // a read hold does not count
	return exclusively
}

// party returns o as a party that may wait.
func (c *Cond) party(o int64) syncq.Party {
	if c.kind != nil {
		return syncq.Owned(o).Of(c.kind)
	}
	return syncq.Anonymous(o)
}

// must panics in op if the calling goroutine does not hold the lock, as far as c can know.
func (c *Cond) must(op string) {
	var me int64
	if c.kind != nil {
		me = goid.Get()
	}
	if err := c.mayUse(me); err != nil {
		refuse(op, err)
	}
}

// refuse panics in op because of err.
func refuse(op string, err error) {
	if errors.Is(err, locks.ErrNotHeld) {
		err = ctxerr.Wrap("condition: "+op, err)
	}
	panic(err)
}

// mayUse returns the reason why o must not use c, or nil.
func (c *Cond) mayUse(o int64) error {
	switch {
	case c.q == nil:
		return ErrNoLock
	case !c.isHeld(o):
		return c.notHeld(locks.Owner(o))
	}
	return nil
}

// notHeld returns the error of o, which does not hold the lock.
func (c *Cond) notHeld(o locks.Owner) error {
	if c.outer != nil {
		return unheld.Free("the lock")
	}
	what := "the " + strings.TrimPrefix(fmt.Sprintf("%T", c.of), "*")
	if c.kind != nil && reflect.TypeOf(c.of).Kind() == reflect.Pointer { // or a view of its lock
		what = "the " + c.kind.Name
	}
	s := c.q.Sync()
	if c.kind == nil {
		if _, shared := c.q.Holds(); shared > 0 {
			return unheld.Because(what + " is held for reading")
		}
		return unheld.Free(what)
	}
	readers := outcome.Owners(shares.Holders(s))
	switch holder := locks.Owner(s.Owner()); {
	case holder != 0:
		return unheld.By(o, what+" is held by", "", holder)
	case slices.Contains(readers, o):
		return unheld.Because(o.String() + " holds " + what + " for reading only")
	case len(readers) > 0:
		return unheld.By(o, what+" is held for reading by", "", readers...)
	}
	return unheld.Free(what)
}

// mayWait returns the reason why o must not wait, or nil.
func (c *Cond) mayWait(o int64) error {
	if err := c.mayUse(o); err != nil {
		return err
	}
	if c.refuse != nil {
		return c.refuse(o)
	}
	return nil
}

// Wait waits for a signal. Java's awaitUninterruptibly().
func (c *Cond) Wait() {
	if sched.On {
		defer sched.Enter("Wait", c.Locker())()
	}
	me := c.mustWait("Wait")
	if c.outer != nil {
		c.outer.wait(c.q, nil, me)
		return
	}
	c.await(c.party(me), nil)
}

// await waits at q, and tells the race detector that p releases the lock, and acquires it again.
func (c *Cond) await(p syncq.Party, l *park.Limit) (signalled bool) {
	hidden := raceorder.Enabled && c.order != nil
	if hidden {
		c.order.WriteEnds()
	}
	signalled = c.q.Wait(p, l)
	runtime.KeepAlive(c) // a keyed lock exists for as long as its condition does
	if hidden {
		c.order.AfterAll()
	}
	return signalled
}

// mustWait returns the calling goroutine. It panics in op if the goroutine must not wait.
func (c *Cond) mustWait(op string) int64 {
	me := goid.Get()
	if err := c.mayWait(me); err != nil {
		refuse(op, err)
	}
	return me
}

// WaitContext waits for a signal until ctx ends, and returns nil if and only if a signal ended the
// wait. It always returns with the lock held, possibly long after the end of ctx. If ctx has ended
// already, WaitContext returns ctx's error without releasing the lock. An explicit owner gets
// [ErrSharedHolds] if its other goroutines hold the lock too. Java's await().
func (c *Cond) WaitContext(ctx context.Context) error {
	if sched.On {
		defer sched.Enter("WaitContext", c.Locker())()
	}
	const op = "condition: WaitContext"
	signalled, err := c.wait(op, ctx)
	if err == nil && !signalled {
		return ctxerr.Ended(op, ctx)
	}
	return err
}

// wait waits for ctx's owner, and reports whether a signal ended the wait. The error says why the
// owner did not wait.
func (c *Cond) wait(op string, ctx context.Context) (signalled bool, err error) {
	if err := ctxerr.Check(op, ctx); err != nil {
		return false, err
	}
	o := int64(locks.CurrentOwner(ctx))
	if err := c.mayWait(o); err != nil {
		return false, ctxerr.Wrap(op, err)
	}
	switch {
	case c.outer != nil:
		return c.outer.wait(c.q, park.Until(ctx), o), nil
	case c.shared(o):
		signalled, out := shares.Of(c.q.Sync()).Wait(ctx, c.q, c.party(o))
		runtime.KeepAlive(c) // as in await
		switch out {
		case syncq.Acquired:
			if goid.Recording() {
				c.q.Sync().Acquired(c.party(o))
			}
			return signalled, nil
		case syncq.OthersHold:
			return false, ctxerr.Wrap(op, ErrSharedHolds)
		}
		return false, ctxerr.Wrap(op, outcome.Cause(out))
	}
	return c.await(c.party(o), park.Until(ctx)), nil
}

// shared reports whether several goroutines may share the holds of o.
func (c *Cond) shared(o int64) bool { return c.kind != nil && o < 0 }

// WaitFor waits for a signal for at most d. It returns the rest of d at the time when the lock is
// held again, and 0 or less if the time ran out. After a signal it may also return 0 or less, if
// the lock was not free for long; use [Cond.WaitUntil] to tell the two apart. With d <= 0 it
// releases the lock and acquires it again. Java's awaitNanos(long).
func (c *Cond) WaitFor(d time.Duration) (remaining time.Duration) {
	if sched.On {
		defer sched.Enter("WaitFor", c.Locker())()
	}
	me := c.mustWait("WaitFor")
	d = max(d, 0) // the least Duration must not wrap around below
	start := time.Now()
	c.waitFor(me, d)
	return d - time.Since(start)
}

// WaitUntil waits for a signal until the time is t, and reports whether a signal ended the wait.
// Java's awaitUntil(Date).
func (c *Cond) WaitUntil(t time.Time) (signalled bool) {
	if sched.On {
		defer sched.Enter("WaitUntil", c.Locker())()
	}
	return c.waitFor(c.mustWait("WaitUntil"), time.Until(t))
}

func (c *Cond) waitFor(me int64, d time.Duration) (signalled bool) {
	if c.outer != nil {
		return c.outer.wait(c.q, park.After(d), me)
	}
	return c.await(c.party(me), park.After(d))
}

// WaitWhile waits until blocked returns false, and then returns nil. It calls blocked with the lock
// held. If ctx ends first, WaitWhile returns ctx's error, unless a last call of blocked returns
// false. A ctx that has ended already is an error, and then blocked is not called. WaitWhile always
// returns with the lock held. A nil blocked is [locks.ErrNilFunc].
func (c *Cond) WaitWhile(ctx context.Context, blocked func() bool) error {
	if sched.On {
		defer sched.Enter("WaitWhile", c.Locker())()
	}
	const op = "condition: WaitWhile"
	if blocked == nil {
		return ctxerr.Wrap(op, locks.ErrNilFunc)
	}
	if err := ctxerr.Check(op, ctx); err != nil {
		return err
	}
	if err := c.mayWait(int64(locks.CurrentOwner(ctx))); err != nil {
		return ctxerr.Wrap(op, err)
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

// Signal moves the longest waiter, if there is one, to the end of the lock's queue. The waiter is
// there when Signal returns, and runs when it holds the lock. Java's signal().
func (c *Cond) Signal() {
	if sched.On {
		sched.Begin("Signal", c.Locker())
	}
	c.must("Signal")
	c.q.Signal()
}

// SignalContext is Signal for ctx's owner. It ignores the end of ctx.
func (c *Cond) SignalContext(ctx context.Context) error {
	if sched.On {
		sched.Begin("SignalContext", c.Locker())
	}
	return c.signal("condition: SignalContext", ctx, false)
}

// Broadcast moves all waiters, in their order, to the end of the lock's queue. Each one runs
// when it holds the lock; they do not wake together. Java's signalAll().
func (c *Cond) Broadcast() {
	if sched.On {
		sched.Begin("Broadcast", c.Locker())
	}
	c.must("Broadcast")
	c.q.Broadcast()
}

// BroadcastContext is Broadcast for ctx's owner. It ignores the end of ctx.
func (c *Cond) BroadcastContext(ctx context.Context) error {
	if sched.On {
		sched.Begin("BroadcastContext", c.Locker())
	}
	return c.signal("condition: BroadcastContext", ctx, true)
}

func (c *Cond) signal(op string, ctx context.Context, all bool) error {
	o := int64(locks.CurrentOwner(ctx))
	if err := c.mayUse(o); err != nil {
		return ctxerr.Wrap(op, err)
	}
	switch {
	case c.outer == nil && c.shared(o):
		shares.Of(c.q.Sync()).Signal(c.q, o, all)
	case all:
		c.q.Broadcast()
	default:
		c.q.Signal()
	}
	return nil
}

// HasWaiters reports whether a goroutine waits for a signal. Java's hasWaiters(Condition).
func (c *Cond) HasWaiters() bool { return c.WaitQueueLength() > 0 }

// WaitQueueLength returns the number of waiters for a signal. Java's getWaitQueueLength(Condition).
func (c *Cond) WaitQueueLength() int {
	c.must("WaitQueueLength")
	return c.q.Len()
}

// Waiters returns the owners that wait for a signal, longest wait first. Java's
// getWaitingThreads(Condition).
func (c *Cond) Waiters() []locks.Owner {
	c.must("Waiters")
	return outcome.Owners(c.q.Waiters())
}

// WaitersContext is Waiters for ctx's owner. It ignores the end of ctx.
func (c *Cond) WaitersContext(ctx context.Context) ([]locks.Owner, error) {
	if err := c.mayUse(int64(locks.CurrentOwner(ctx))); err != nil {
		return nil, ctxerr.Wrap("condition: WaitersContext", err)
	}
	return outcome.Owners(c.q.Waiters()), nil
}
