package record

import (
	"context"
	"errors"
	"fmt"
	"runtime/trace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jucgo/locks"
)

// lock is a wrapped TryLocker.
type lock struct {
	l                          locks.TryLocker
	r                          *Recorder
	c                          *counters
	leased                     locks.Leased // l, or nil
	name, waitRegion, holdTask string
	shared                     bool

	mu      sync.Mutex
	holders map[locks.Owner]hold
	place   int // in c.holding while there are holders; c.mu guards it

	// calls is the number of calls under way. early is the number of releases without a noted
	// hold. The call that acquired such a hold is still on its way back, and will settle it.
	// Either holders is empty or early is 0. Therefore both are when the lock is free. early
	// changes under mu. It means nothing when no call is under way.
	calls, early atomic.Int64
}

// hold is what is noted of an owner.
type hold struct {
	since time.Duration
	n     int
	task  *trace.Task
	value *value // in Options.Held, or nil
	lease *lease // nil of a lock that cannot be lost
}

// lease is what tells of the loss of a hold. The owner's nested holds share it.
type lease struct {
	locks.Hold
	counted atomic.Bool
}

// lose counts the loss of h once.
func (c *counters) lose(h hold) {
	if h.lease == nil || h.lease.counted.CompareAndSwap(false, true) {
		c.lost.Add(1)
	}
}

// lookForLosses counts the holds of w that are lost and not unlocked.
func (w *lock) lookForLosses() {
	if w.leased == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.holders {
		if h.lease != nil && !h.lease.counted.Load() && errors.Is(h.lease.Err(), locks.ErrLost) {
			w.c.lose(h)
		}
	}
}

// value is a value of a profile. Its address is its identity, so it has a size.
type value struct{ _ byte }

// maxHolders bounds the memory for holds that never end, such as lost leases without an unlock.
const maxHolders = 4096

// Unwrap returns the lock itself.
func (w *lock) Unwrap() locks.TryLocker { return w.l }

// String names the lock and describes what is inside.
func (w *lock) String() string { return fmt.Sprintf("record(%q, %v)", w.name, w.l) }

func (w *lock) LockContext(ctx context.Context) error {
	return w.wait(ctx, func() error { return w.l.LockContext(ctx) })
}

func (w *lock) TryLockContext(ctx context.Context) (bool, error) {
	w.calls.Add(1)
	defer w.returned()
	owner := locks.CurrentOwner(ctx)
	asked := w.r.now()
	ok, err := w.l.TryLockContext(ctx)
	w.ended(ctx, Event{Owner: owner, Try: true, Err: err}, asked, ok)
	return ok, err
}

func (w *lock) UnlockContext(ctx context.Context) error {
	return w.release(ctx, func() error { return w.l.UnlockContext(ctx) })
}

// wait calls and observes acquire, which may wait for the lock.
func (w *lock) wait(ctx context.Context, acquire func() error) error {
	w.calls.Add(1)
	defer w.returned()
	owner := locks.CurrentOwner(ctx)
	e := Event{Kind: Waiting, Owner: owner}
	w.r.at(&e)
	w.c.waiting.Add(1)
	w.c.addWait(w, owner, e.At)
	w.report(ctx, e)
	var region *trace.Region
	if ctx != nil && trace.IsEnabled() {
		region = trace.StartRegion(ctx, w.waitRegion)
	}
	err := errAborted
	defer func() {
		if region != nil {
			region.End()
		}
		w.c.waiting.Add(-1)
		w.c.removeWait(w, owner)
		if err == errAborted {
			ctx = context.Background() // the caller's may be what panicked
		}
		w.c.waits.add(w.ended(ctx, Event{Owner: owner, Err: err}, e.At, err == nil))
	}()
	err = acquire()
	return err
}

// errAborted is the error of an acquisition that did not return.
var errAborted = errors.New("record: the lock or the context panicked, or ended the goroutine")

// ended reports the end of an acquisition that began at asked. It returns the duration.
func (w *lock) ended(ctx context.Context, e Event, asked time.Duration, ok bool) time.Duration {
	w.r.at(&e)
	e.Wait = e.At - asked
	switch {
	case ok:
		e.Kind = Acquired
		e.Holds = w.addHold(ctx, e)
		w.c.acquired.Add(1)
	case e.Err != nil && ctx != nil && ctx.Err() != nil && errors.Is(e.Err, ctx.Err()):
		e.Kind = Cancelled
		if ctx.Err() == context.DeadlineExceeded {
			w.c.timedOut.Add(1)
		} else {
			w.c.cancelled.Add(1)
		}
	default:
		e.Kind = Failed
		if e.Err == nil {
			w.c.busy.Add(1)
		} else {
			w.c.failed.Add(1)
		}
	}
	w.report(ctx, e)
	return e.Wait
}

// release calls and observes unlock.
func (w *lock) release(ctx context.Context, unlock func() error) error {
	w.calls.Add(1)
	defer w.returned()
	owner := locks.CurrentOwner(ctx)
	e := Event{Kind: Released, Owner: owner}
	w.r.at(&e)
	// A noted hold of the caller is removed before the lock is released, because right after the
	// release the owner may acquire the lock again in another goroutine. Any other hold is
	// removed only after the release has succeeded: most locks refuse it.
	h, noted := w.removeHold(owner)
	returned := false
	defer func() {
		if noted && !returned {
			w.restoreHold(owner, h, e)
		}
	}()
	e.Err = unlock()
	returned = true
	if e.Err != nil {
		if noted {
			w.restoreHold(owner, h, e)
		}
		if noted && errors.Is(e.Err, locks.ErrLost) {
			e.Held = e.At - h.since
			w.c.lose(h)
		} else {
			w.c.refused.Add(1)
		}
		e.Kind = Refused
		w.report(ctx, e)
		return e.Err
	}
	w.c.released.Add(1)
	if !noted {
		h, noted = w.removeOldest()
	}
	switch {
	case h.n > 0:
		e.Holds = h.n
	case noted:
		e.Held = e.At - h.since
		w.endHold(h, e.Held)
	}
	w.report(ctx, e)
	return nil
}

func (w *lock) report(ctx context.Context, e Event) {
	e.Lock, e.Shared = w.name, w.shared
	w.r.report(ctx, e)
}

// endHold counts a hold that has ended.
func (w *lock) endHold(h hold, held time.Duration) {
	w.c.holds.add(held)
	w.drop(h)
}

// drop ends what else is known of a hold.
func (w *lock) drop(h hold) {
	if h.task != nil {
		h.task.End()
	}
	if h.value != nil {
		w.r.opts.Held.Remove(h.value)
	}
}

// Frames between the profile and the caller of the lock.
const (
	lockFrames = 6 // addHold, ended, wait and its deferred call, LockContext or Lock
	tryFrames  = 4 // addHold, ended, TryLockContext
)

// addHold notes the hold that e, which ends, has acquired. It returns the number of the owner's
// holds.
func (w *lock) addHold(ctx context.Context, e Event) int {
	o := e.Owner
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.settled() {
		w.endHold(hold{}, 0)
		return 1
	}
	h, ok := w.holders[o]
	if !ok {
		h.since = e.At
		if w.leased != nil {
			if held, err := w.leased.Hold(ctx); err == nil {
				h.lease = &lease{Hold: held}
			}
		}
		if w.r.opts.Held != nil {
			h.value = new(value)
			skip := lockFrames
			if e.Try {
				skip = tryFrames
			}
			w.r.opts.Held.Add(h.value, skip)
		}
		if ctx != nil && trace.IsEnabled() {
			_, h.task = trace.NewTask(ctx, w.holdTask)
		}
	}
	h.n++
	w.note(o, h)
	return h.n
}

// settled reports whether the hold that the caller is about to note is released already.
func (w *lock) settled() bool {
	if w.early.Load() == 0 {
		return false
	}
	w.early.Add(-1)
	return true
}

// returned ends a call. After the last call no early release can be settled: it was the release
// of a hold that was acquired without the wrapper.
func (w *lock) returned() {
	if w.calls.Add(-1) > 0 || w.early.Load() == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls.Load() == 0 {
		w.early.Store(0)
	}
}

func (w *lock) note(o locks.Owner, h hold) {
	if w.holders == nil {
		w.holders = map[locks.Owner]hold{}
	}
	if _, ok := w.holders[o]; !ok {
		if len(w.holders) >= maxHolders {
			for any, h := range w.holders {
				w.forget(any)
				w.drop(h)
				break
			}
		}
		if len(w.holders) == 0 {
			w.c.add(w)
		}
		w.c.held.Add(1)
	}
	w.holders[o] = h
}

func (w *lock) forget(o locks.Owner) {
	delete(w.holders, o)
	w.c.held.Add(-1)
	if len(w.holders) == 0 {
		w.c.remove(w)
	}
}

// removeHold removes one noted hold of o, and returns what is left of o's holds.
func (w *lock) removeHold(o locks.Owner) (h hold, noted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.removeGuarded(o)
}

func (w *lock) removeGuarded(o locks.Owner) (h hold, noted bool) {
	h, noted = w.holders[o]
	if !noted {
		return h, false
	}
	if h.n--; h.n > 0 {
		w.holders[o] = h
	} else {
		w.forget(o)
	}
	return h, true
}

// removeOldest removes the oldest noted hold, for a release by another owner. If there is none,
// the hold is not noted yet.
func (w *lock) removeOldest() (h hold, noted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var oldest locks.Owner
	for o, candidate := range w.holders {
		if !noted || candidate.since < h.since {
			oldest, h, noted = o, candidate, true
		}
	}
	if noted {
		return w.removeGuarded(oldest)
	}
	// On the read side, a release without an acquisition is probably one after a downgrade.
	if !w.shared {
		w.early.Add(1)
	}
	return h, false
}

// restoreHold puts back a hold that removeHold removed, because the lock refused the release. An
// owner that lost the lock has no holds any more.
func (w *lock) restoreHold(o locks.Owner, h hold, e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now, ok := w.holders[o]
	switch {
	case errors.Is(e.Err, locks.ErrLost):
		if ok && now.since <= e.At {
			w.forget(o)
			if now.value != h.value {
				w.drop(now)
			}
		}
		w.drop(h)
		return
	case !ok && w.settled():
		w.endHold(h, e.At-h.since)
		return
	}
	if ok && now.value != h.value {
		w.drop(now)
	}
	h.n = now.n + 1 // others may have changed it meanwhile
	w.note(o, h)
}

// locker is a wrapped lock that also has the plain methods.
type locker struct {
	*lock
	plain sync.Locker
}

func (w *locker) Lock() {
	var panicked any
	_ = w.wait(context.Background(), func() (err error) {
		panicked, err = attempt(w.plain.Lock)
		return err
	})
	if panicked != nil {
		panic(panicked)
	}
}

func (w *locker) Unlock() {
	var panicked any
	_ = w.release(context.Background(), func() (err error) {
		panicked, err = attempt(w.plain.Unlock)
		return err
	})
	if panicked != nil {
		panic(panicked)
	}
}

// attempt calls f. It returns the value that f panicked with, and the same as an error.
func attempt(f func()) (panicked any, err error) {
	defer func() {
		if panicked = recover(); panicked != nil {
			var ok bool
			if err, ok = panicked.(error); !ok {
				err = fmt.Errorf("record: the lock panicked: %v", panicked)
			}
		}
	}()
	f()
	return nil, nil
}

// leasedLock is a wrapped lock that can be lost.
type leasedLock struct{ *lock }

func (w *leasedLock) Hold(ctx context.Context) (locks.Hold, error) { return w.leased.Hold(ctx) }

// leasedLocker is both.
type leasedLocker struct{ *locker }

func (w *leasedLocker) Hold(ctx context.Context) (locks.Hold, error) { return w.leased.Hold(ctx) }

// The same four with the Inspect of the lock itself.
type (
	inspectedLock struct {
		*lock
		locks.Inspector
	}
	inspectedLocker struct {
		*locker
		locks.Inspector
	}
	inspectedLeasedLock struct {
		*leasedLock
		locks.Inspector
	}
	inspectedLeasedLocker struct {
		*leasedLocker
		locks.Inspector
	}
)

var (
	_ locks.TryLocker = (*lock)(nil)
	_ sync.Locker     = (*locker)(nil)
	_ locks.Leased    = (*leasedLock)(nil)
	_ locks.Leased    = (*leasedLocker)(nil)
	_ sync.Locker     = (*leasedLocker)(nil)
	_ locks.TryLocker = (*inspectedLock)(nil)
	_ sync.Locker     = (*inspectedLocker)(nil)
	_ locks.Leased    = (*inspectedLeasedLock)(nil)
	_ locks.Leased    = (*inspectedLeasedLocker)(nil)
	_ sync.Locker     = (*inspectedLeasedLocker)(nil)
)
