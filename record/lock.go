package record

import (
	"context"
	"errors"
	"fmt"
	"runtime/trace"
	"sync"
	"time"

	"github.com/jucgo/locks"
)

// lock is a TryLocker that is watched.
type lock struct {
	l                          locks.TryLocker
	r                          *Recorder
	c                          *counters
	name, waitRegion, holdTask string
	shared                     bool

	mu      sync.Mutex
	holders map[locks.Owner]hold
}

// hold is what an owner has.
type hold struct {
	since time.Duration
	n     int
	// leaving tells that another owner is releasing it, which a lock without owners allows.
	leaving bool
	task    *trace.Task
}

// maxHolders bounds the memory for holds of which the end is never seen, such as lost leases that
// nobody unlocks.
const maxHolders = 4096

// Unwrap returns the lock itself.
func (w *lock) Unwrap() locks.TryLocker { return w.l }

// String names the lock and describes what is inside.
func (w *lock) String() string { return fmt.Sprintf("record(%q, %v)", w.name, w.l) }

func (w *lock) LockContext(ctx context.Context) error {
	owner := locks.CurrentOwner(ctx)
	e := Event{Kind: Waiting, Owner: owner}
	w.r.at(&e)
	w.c.waiting.Add(1)
	w.tell(ctx, e)
	var region *trace.Region
	if ctx != nil && trace.IsEnabled() {
		region = trace.StartRegion(ctx, w.waitRegion)
	}
	err := w.l.LockContext(ctx)
	if region != nil {
		region.End()
	}
	w.c.waiting.Add(-1)
	w.c.waits.add(w.asked(ctx, Event{Owner: owner, Err: err}, e.At, err == nil))
	return err
}

func (w *lock) TryLockContext(ctx context.Context) (bool, error) {
	owner := locks.CurrentOwner(ctx)
	asked := w.r.now()
	ok, err := w.l.TryLockContext(ctx)
	w.asked(ctx, Event{Owner: owner, Try: true, Err: err}, asked, ok)
	return ok, err
}

// asked tells how an acquisition ended, and returns how long it took.
func (w *lock) asked(ctx context.Context, e Event, since time.Duration, ok bool) time.Duration {
	w.r.at(&e)
	e.Wait = e.At - since
	switch {
	case ok:
		e.Kind = Acquired
		e.Holds = w.took(ctx, e.Owner, e.At)
		w.c.acquired.Add(1)
	case e.Err != nil && ctx != nil && ctx.Err() != nil && errors.Is(e.Err, ctx.Err()):
		e.Kind = Cancelled
		w.c.cancelled.Add(1)
	default:
		e.Kind = Failed
		w.c.failed.Add(1)
	}
	w.tell(ctx, e)
	return e.Wait
}

func (w *lock) UnlockContext(ctx context.Context) error {
	owner := locks.CurrentOwner(ctx)
	// All that is known of the hold is read before it is given up: right after that it may be
	// somebody else's.
	e := Event{Kind: Released, Owner: owner}
	w.r.at(&e)
	whose, h, last := w.leave(owner)
	if e.Err = w.l.UnlockContext(ctx); e.Err != nil {
		w.stay(owner, whose, h, errors.Is(e.Err, locks.ErrLost))
		e.Kind = Refused
		w.c.refused.Add(1)
		w.tell(ctx, e)
		return e.Err
	}
	w.c.released.Add(1)
	if whose != owner && whose != 0 {
		w.left(whose)
	}
	if !last {
		e.Holds = h.n
	} else if whose != 0 {
		e.Held = e.At - h.since
		w.c.holds.add(e.Held)
		if h.task != nil {
			h.task.End()
		}
	}
	w.tell(ctx, e)
	return nil
}

func (w *lock) tell(ctx context.Context, e Event) {
	e.Lock, e.Shared = w.name, w.shared
	w.r.tell(ctx, e)
}

// took notes one more hold of o, and returns how many it has.
func (w *lock) took(ctx context.Context, o locks.Owner, at time.Duration) int {
	var task *trace.Task
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holders == nil {
		w.holders = map[locks.Owner]hold{}
	}
	h, ok := w.holders[o]
	if !ok || h.leaving {
		if ctx != nil && trace.IsEnabled() {
			_, task = trace.NewTask(ctx, w.holdTask)
		}
		if !ok {
			w.makeRoom()
			w.c.held.Add(1)
		}
		h = hold{since: at, task: task}
	}
	h.n++
	w.holders[o] = h
	return h.n
}

func (w *lock) makeRoom() {
	if len(w.holders) < maxHolders {
		return
	}
	for o := range w.holders {
		w.drop(o)
		return
	}
}

func (w *lock) drop(o locks.Owner) {
	delete(w.holders, o)
	w.c.held.Add(-1)
}

// leave takes one hold of o off the notes. If there is none, the lock may be one without
// owners, and o may be releasing somebody else's hold: the oldest is marked. whose is 0 if there
// is no hold at all. last tells that it was the only one of its owner.
func (w *lock) leave(o locks.Owner) (whose locks.Owner, h hold, last bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if h, ok := w.holders[o]; ok && !h.leaving {
		h.n--
		if h.n > 0 {
			w.holders[o] = h
			return o, h, false
		}
		w.drop(o)
		return o, h, true
	}
	for other, candidate := range w.holders {
		if !candidate.leaving && (whose == 0 || candidate.since < h.since) {
			whose, h = other, candidate
		}
	}
	if whose != 0 {
		marked := h
		marked.leaving = true
		w.holders[whose] = marked
	}
	return whose, h, true
}

// left removes a hold that leave marked, unless its owner has a new one by now.
func (w *lock) left(whose locks.Owner) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holders[whose].leaving {
		w.drop(whose)
	}
}

// stay undoes leave, as the lock refused the release. A hold that was lost is gone all the same.
func (w *lock) stay(o, whose locks.Owner, h hold, lost bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case whose == 0:
	case whose != o:
		if h, ok := w.holders[whose]; ok && h.leaving {
			h.leaving = false
			w.holders[whose] = h
		}
	case lost:
		if _, ok := w.holders[o]; ok {
			w.drop(o)
		}
		if h.task != nil {
			h.task.End()
		}
	default:
		_, ok := w.holders[o]
		h.n++
		w.holders[o] = h
		if !ok {
			w.c.held.Add(1)
		}
	}
}

// leasedLock is a lock over one that can be lost.
type leasedLock struct {
	*lock
	leased locks.Leased
}

func (w *leasedLock) Hold(ctx context.Context) (locks.Hold, error) { return w.leased.Hold(ctx) }

var (
	_ locks.TryLocker = (*lock)(nil)
	_ locks.Leased    = (*leasedLock)(nil)
)
