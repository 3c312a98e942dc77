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
	"github.com/jucgo/locks/internal/burst"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/keytext"
)

// lock is a wrapped TryLocker.
type lock struct {
	l                          locks.TryLocker
	r                          *Recorder
	c                          *counters
	leased                     locks.Leased // l, or nil
	name, waitRegion, holdTask string
	shared                     bool

	begun atomic.Int64 // the number of acquisitions

	// c.mu guards the fields below. A hold that begins on a free lock is in one, since a map costs
	// more. Every other hold is in others. If one is empty, its owner is 0.
	one    hold
	others map[locks.Owner]hold
	peak   burst.Peak // of others
	place  int        // in c.holding while there are holds

	// begun less ended is the number of calls under way that may note a hold. A release is such a
	// call, since it may put its own hold back. early is the number of releases without a noted
	// hold. The call that acquired such a hold is still on its way back, and will settle it.
	// Without holds early may be positive, and with holds early is 0. early is 0 when no call is
	// under way.
	ended, early int64
}

// hold is the record of one owner's holds.
type hold struct {
	owner locks.Owner
	since time.Duration
	n     int
	more  *more // or nil
}

// more is the rest of a hold's record, which exists if the lock is leased, or if the hold is in
// Options.Held or in a trace. The owner's nested holds share it. Its address is the value in
// Options.Held. c.mu guards it.
type more struct {
	of          *lock
	lease       locks.Hold // or nil
	task        *trace.Task
	lost, ended bool // the loss is counted, the hold is over
}

// lose counts the loss of h once.
func (c *counters) lose(h hold) {
	if h.more == nil {
		h.more = new(more)
	}
	if !h.more.lost {
		h.more.lost = true
		c.stats.Lost++
	}
}

// lookForLosses counts the holds that are lost and not unlocked.
func (c *counters) lookForLosses() {
	var unsure []hold
	c.mu.Lock()
	for _, w := range c.holding {
		for h := range w.holds {
			if h.more != nil && h.more.lease != nil && !h.more.lost {
				unsure = append(unsure, h)
			}
		}
	}
	c.mu.Unlock()
	for _, h := range unsure {
		if errors.Is(h.more.lease.Err(), locks.ErrLost) {
			c.mu.Lock()
			// Otherwise the hold is being released, and Err may be of a hold that is over.
			if now, ok := h.more.of.holdOf(h.owner); ok && now.more == h.more {
				c.lose(h)
			}
			c.mu.Unlock()
		}
	}
}

// maxHolders bounds the memory for holds that never end, such as lost leases without an unlock.
const maxHolders = 4096

// Unwrap returns the lock itself.
func (w *lock) Unwrap() locks.TryLocker { return w.l }

// String names the lock and describes what is inside: by its own String method or, since the fields
// of a lock may be changing, by its type alone.
func (w *lock) String() string {
	inside, ok := w.l.(fmt.Stringer)
	if !ok {
		return fmt.Sprintf("record(%q, %T)", w.name, w.l)
	}
	return fmt.Sprintf("record(%q, %s)", w.name, inside)
}

func (w *lock) LockContext(ctx context.Context) error {
	_, err := w.wait(ctx, nil)
	return err
}

func (w *lock) TryLockContext(ctx context.Context) (bool, error) {
	e := Event{Owner: locks.CurrentOwner(ctx), Try: true}
	w.begun.Add(1)
	returned := false
	defer func() {
		if !returned {
			w.c.mu.Lock()
			w.end()
			w.c.mu.Unlock()
		}
	}()
	asked := w.r.now()
	ok, err := w.l.TryLockContext(ctx)
	returned = true
	e.Err = err
	w.onAcquisition(ctx, &e, asked, ok)
	return ok, err
}

func (w *lock) UnlockContext(ctx context.Context) error {
	_, err := w.release(ctx, nil)
	return err
}

// wait calls and observes LockContext, or plain if it is not nil. It returns what plain panicked
// with.
func (w *lock) wait(ctx context.Context, plain func()) (panicked any, err error) {
	e := Event{Kind: Waiting, Owner: locks.CurrentOwner(ctx)}
	w.c.asked.Add(1)
	w.r.at(&e)
	asked := e.At
	if w.r.opts.Waits {
		w.addWait(e.Owner, asked)
	}
	w.report(ctx, &e)
	var region *trace.Region
	if ctx != nil && trace.IsEnabled() {
		region = trace.StartRegion(ctx, w.waitRegion)
	}
	e.Err = errAborted
	w.begun.Add(1)
	defer func() {
		if region != nil {
			region.End()
		}
		if e.Err == errAborted {
			ctx = context.Background() // the caller's may be what panicked
		}
		w.onAcquisition(ctx, &e, asked, e.Err == nil)
	}()
	if plain != nil {
		panicked, e.Err = attempt(plain)
	} else {
		e.Err = w.l.LockContext(ctx)
	}
	return panicked, e.Err
}

// errAborted is the error of an acquisition that did not return.
var errAborted = errors.New("record: the lock or the context panicked, or ended the goroutine")

// onAcquisition notes and reports the end of the acquisition e, which began at asked. Contexts and
// other foreign code may panic, so the counters of calls under way are settled before.
func (w *lock) onAcquisition(ctx context.Context, e *Event, asked time.Duration, ok bool) {
	w.r.at(e)
	e.Wait = e.At - asked
	var m *more
	w.c.mu.Lock()
	if !e.Try {
		w.c.answered++
		w.c.stats.Waits.add(e.Wait)
		if w.r.opts.Waits {
			w.removeWait(e.Owner)
		}
	}
	if ok {
		e.Kind = Acquired
		w.c.stats.Acquired++
		e.Holds, m = w.addHold(e)
	}
	w.end()
	w.c.mu.Unlock()
	if m != nil {
		w.describe(ctx, m, e.Try)
	}
	if !ok {
		w.c.countFailure(ctx, e)
	}
	w.report(ctx, e)
}

// countFailure counts the failed acquisition e.
func (c *counters) countFailure(ctx context.Context, e *Event) {
	var cause error
	if e.Err != nil && ctx != nil {
		cause = ctx.Err()
	}
	e.Kind = Failed
	if cause != nil && errors.Is(e.Err, cause) {
		e.Kind = Cancelled
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	st := &c.stats
	switch {
	case e.Kind == Failed && e.Err == nil:
		st.Busy++
		st.Failed++
	case e.Kind == Failed:
		st.Failed++
	case cause == context.DeadlineExceeded:
		st.TimedOut++
		st.Cancelled++
	default:
		st.Cancelled++
	}
}

// release calls and observes UnlockContext, or plain if it is not nil. It returns what plain
// panicked with.
func (w *lock) release(ctx context.Context, plain func()) (panicked any, err error) {
	e := Event{Kind: Released, Owner: locks.CurrentOwner(ctx)}
	w.r.at(&e)
	// A noted hold of the caller is removed before the lock is released. Right after the release
	// the owner may acquire the lock again in another goroutine. And a hold that is over must not
	// be taken for the hold of the next holder. Any other hold is removed only after the release
	// has succeeded: most locks refuse it.
	returned := false
	w.c.mu.Lock()
	w.ended--
	h, noted := w.removeHold(e.Owner)
	w.c.mu.Unlock()
	defer func() {
		if !returned {
			w.c.mu.Lock()
			w.giveBack(h, e.At, false)
			w.end()
			w.c.mu.Unlock()
		}
	}()
	if plain != nil {
		panicked, e.Err = attempt(plain)
	} else {
		e.Err = w.l.UnlockContext(ctx)
	}
	lost := e.Err != nil && errors.Is(e.Err, locks.ErrLost) // may panic
	returned = true
	w.c.mu.Lock()
	switch {
	case e.Err == nil:
		w.c.stats.Released++
		if !noted {
			h, noted = w.removeOldest()
		}
		if h.n > 0 {
			e.Holds = h.n
		} else if noted {
			e.Held = e.At - h.since
			w.endHold(h, e.Held)
		}
	case noted && lost:
		e.Kind = Refused
		e.Held = e.At - h.since
		w.c.lose(h)
		w.giveBack(h, e.At, true)
	default:
		e.Kind = Refused
		w.c.stats.Refused++
		w.giveBack(h, e.At, false)
	}
	w.end()
	w.c.mu.Unlock()
	w.report(ctx, &e)
	return panicked, e.Err
}

func (w *lock) report(ctx context.Context, e *Event) {
	if w.r.reports || w.r.listeners.Load() != nil {
		e.Lock, e.Shared = w.name, w.shared
		w.r.report(ctx, e)
	}
}

// Frames between the profile and the caller of the lock.
const (
	lockFrames = 6 // describe, answered, wait and its deferred call, LockContext or Lock
	tryFrames  = 4 // describe, answered, TryLockContext
)

// describe fills in m of a hold that was noted just now.
func (w *lock) describe(ctx context.Context, m *more, try bool) {
	var made more
	if w.leased != nil {
		if held, err := w.leased.Hold(ctx); err == nil {
			made.lease = held
		}
	}
	if ctx != nil && trace.IsEnabled() {
		_, made.task = trace.NewTask(ctx, w.holdTask)
	}
	skip := lockFrames
	if try {
		skip = tryFrames
	}
	if w.r.opts.Held != nil {
		w.r.opts.Held.Add(m, skip)
	}
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	m.lease, m.task = made.lease, made.task
	if m.ended { // by another owner
		w.drop(hold{more: m})
	}
}

// The functions from here to giveBack are called with c.mu held.

// endHold counts a hold that has ended.
func (w *lock) endHold(h hold, held time.Duration) {
	w.c.stats.Holds.add(held)
	w.drop(h)
}

// drop marks the hold as ended, ends its trace task, and removes it from Options.Held.
func (w *lock) drop(h hold) {
	if h.more == nil {
		return
	}
	h.more.ended = true
	if h.more.task != nil {
		h.more.task.End()
	}
	if w.r.opts.Held != nil {
		w.r.opts.Held.Remove(h.more)
	}
}

// addHold notes the hold that e, which ends, has acquired. It returns the number of the owner's
// holds, and the record that describe must fill in, or nil.
func (w *lock) addHold(e *Event) (n int, m *more) {
	if w.settled() {
		w.endHold(hold{}, 0)
		return 1, nil
	}
	h, ok := w.holdOf(e.Owner)
	if !ok {
		h = hold{owner: e.Owner, since: e.At}
		if w.leased != nil || w.r.opts.Held != nil || trace.IsEnabled() {
			m = &more{of: w}
			h.more = m
		}
	}
	h.n++
	w.note(h)
	return h.n, m
}

// settled reports whether the hold that the caller is about to note is released already.
func (w *lock) settled() bool {
	if w.early == 0 {
		return false
	}
	w.early--
	return true
}

// end ends a call that may note a hold. After the last such call, no early release can be
// settled: an early release that is left was of a hold that was acquired without the wrapper.
func (w *lock) end() {
	w.ended++
	if w.early > 0 && w.ended == w.begun.Load() {
		w.early = 0
	}
}

// holdOf returns the hold of o, and whether there is one.
func (w *lock) holdOf(o locks.Owner) (h hold, noted bool) {
	if w.one.owner == o {
		return w.one, true
	}
	if len(w.others) > 0 { // saves most locks the call
		h, noted = w.others[o]
	}
	return h, noted
}

// holds yields all holds.
func (w *lock) holds(yield func(hold) bool) {
	for _, h := range w.others {
		if !yield(h) {
			return
		}
	}
	if w.one.owner != 0 {
		yield(w.one)
	}
}

// free reports whether nobody holds the lock.
func (w *lock) free() bool { return w.one.owner == 0 && len(w.others) == 0 }

// note notes h, which may replace a hold of its owner.
func (w *lock) note(h hold) {
	if _, ok := w.holdOf(h.owner); !ok {
		if len(w.others) >= maxHolders {
			for h := range w.holds {
				w.forget(h.owner)
				w.drop(h)
				break
			}
		}
		if w.free() {
			w.c.add(w)
		}
		w.c.stats.Held++
	}
	switch {
	case w.one.owner == h.owner, w.free():
		w.one = h
		return
	case w.others == nil:
		w.others = map[locks.Owner]hold{}
	}
	w.others[h.owner] = h
	w.peak.Grew(len(w.others))
}

func (w *lock) forget(o locks.Owner) {
	if w.one.owner == o {
		w.one = hold{}
	} else {
		delete(w.others, o)
	}
	if w.peak.IsOver(len(w.others)) {
		w.others = nil
	}
	w.c.stats.Held--
	if w.free() {
		w.c.remove(w)
	}
}

// removeHold removes one noted hold of o, and returns the rest of o's holds.
func (w *lock) removeHold(o locks.Owner) (h hold, noted bool) {
	h, noted = w.holdOf(o)
	if !noted {
		return h, false
	}
	if h.n--; h.n > 0 {
		w.note(h)
	} else {
		w.forget(o)
	}
	return h, true
}

// removeOldest removes the oldest noted hold, for a release by another owner. If there is none,
// the hold is not noted yet.
func (w *lock) removeOldest() (h hold, noted bool) {
	for candidate := range w.holds {
		if !noted || candidate.since < h.since {
			h, noted = candidate, true
		}
	}
	if noted {
		return w.removeHold(h.owner)
	}
	// On the read side, a release without an acquisition is probably a release after a downgrade.
	if !w.shared {
		w.early++
	}
	return h, false
}

// giveBack puts back a hold that removeHold removed, if it was noted, because the lock refused the
// release at the given time. An owner that lost the lock does not hold it any more.
func (w *lock) giveBack(h hold, at time.Duration, lost bool) {
	now, ok := w.holdOf(h.owner)
	switch {
	case h.owner == 0:
		return
	case lost:
		if ok && now.since <= at {
			w.forget(h.owner)
			if now.more != h.more {
				w.drop(now)
			}
		}
		w.drop(h)
		return
	case !ok && w.settled():
		w.endHold(h, at-h.since)
		return
	}
	if ok && now.more != h.more {
		w.drop(now)
	}
	h.n = now.n + 1 // others may have changed it meanwhile
	w.note(h)
}

// locker is a wrapped lock that also has the plain methods.
type locker struct {
	*lock
	plain sync.Locker
}

func (w *locker) Lock() {
	if panicked, _ := w.wait(context.Background(), w.plain.Lock); panicked != nil {
		panic(panicked)
	}
}

func (w *locker) Unlock() {
	if panicked, _ := w.release(context.Background(), w.plain.Unlock); panicked != nil {
		panic(panicked)
	}
}

// attempt calls f. It returns the value that f panicked with, and the same as an error.
func attempt(f func()) (panicked any, err error) {
	defer func() {
		if panicked = recover(); panicked != nil {
			err = keytext.Panic(panicked)
			if _, ok := panicked.(error); !ok {
				err = ctxerr.Wrap("record: the lock panicked", err)
			}
		}
	}()
	f()
	return nil, nil
}

// leasedLock is a wrapped lock that can be lost.
type leasedLock struct{ *lock }

func (w *leasedLock) Hold(ctx context.Context) (locks.Hold, error) { return w.leased.Hold(ctx) }

// leasedLocker is a leasedLock that also has the plain methods.
type leasedLocker struct{ *locker }

func (w *leasedLocker) Hold(ctx context.Context) (locks.Hold, error) { return w.leased.Hold(ctx) }

// The same four types with the Inspect of the lock itself.
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
