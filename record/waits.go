package record

import (
	"cmp"
	"slices"
	"time"

	"github.com/jucgo/locks"
)

// Wait is the wait of one owner in LockContext or Lock.
type Wait struct {
	Lock   string          // the name given to Wrap
	Of     locks.TryLocker // the lock that was wrapped, which tells locks of one name apart
	Owner  locks.Owner
	Since  time.Time // of the first of the calls
	Calls  int       // how many calls of the owner wait: more than one only of an explicit owner
	Shared bool      // as in Event
}

// Waits returns the waits that have not ended, the longest first. It returns nil without
// [Options.Waits]. An acquisition without contention is a wait too, for as long as it takes.
func (r *Recorder) Waits() []Wait {
	var all []Wait
	for _, c := range r.counters() {
		c.mu.Lock()
		for w, n := range c.calls {
			all = append(all, Wait{w.lock.name, w.lock.l, w.owner, r.start.Add(n.since), n.n, w.lock.shared})
		}
		c.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b Wait) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Lock, b.Lock), cmp.Compare(a.Owner, b.Owner))
	})
	return all
}

// waiter is an owner that waits for a lock.
type waiter struct {
	lock  *lock
	owner locks.Owner
}

// calls are the calls of a waiter.
type calls struct {
	since time.Duration // of the first
	n     int
}

// addWait notes that a call of o waits since at.
func (w *lock) addWait(o locks.Owner, at time.Duration) {
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	if w.c.calls == nil {
		w.c.calls = make(map[waiter]calls)
	}
	now := w.c.calls[waiter{w, o}]
	if now.n++; now.n == 1 {
		now.since = at
	}
	w.c.calls[waiter{w, o}] = now
	w.c.peak.Grew(len(w.c.calls))
}

// removeWait ends the wait that addWait noted. The caller holds c.mu.
func (w *lock) removeWait(o locks.Owner) {
	now := w.c.calls[waiter{w, o}]
	if now.n--; now.n > 0 {
		w.c.calls[waiter{w, o}] = now
	} else {
		delete(w.c.calls, waiter{w, o})
	}
	if w.c.peak.IsOver(len(w.c.calls)) {
		w.c.calls = nil
	}
}
