package syncq

import (
	"sync/atomic"
	"time"
)

// Kind describes a lock to the [Watcher]. Usually all locks of a type share one static Kind. A lock
// without a Kind is not watched: its owners are unknown. A lock with a Kind lets its exclusive
// holder enter again, and never wait for itself exclusively.
type Kind struct {
	// Name is the lock's type.
	Name string

	// Key, if not nil, tells the lock from others of its type.
	Key any

	// Holders returns the shared holders of the lock, in any order. If it is nil, they are unknown.
	// Holders is called after the caller has found the lock without an exclusive holder.
	//
	// The answer must be right about owners that wait. An owner that waits for any lock is returned
	// if and only if the owner has a shared hold of this lock. About other owners the answer may be
	// wrong. Holders is called without the guard held, and must not wait for a goroutine that may
	// wait for a lock.
	Holders func(*Sync) []int64

	// Refusable says that the lock knows that Lock, LockShared, and their limited forms may
	// refuse a wait, and treats false accordingly. The waits of other locks are never refused.
	Refusable bool
}

// A Watcher learns of the waits for locks that have a Kind. Package waits is the watcher of
// programs that look for deadlocks; other programs have none.
type Watcher interface {
	// Begin is called when a wait is about to begin, without the guard. It calls e.Enqueue, and
	// returns its result, or false after e.Refuse.
	Begin(e Entry) (queued bool)

	// Watch is called once for each lock, with the guard held, before the first Queued.
	Watch(s *Sync, k *Kind)

	// Queued is called with the guard held when a wait is in the queue. who is the waiting
	// party. Queued reports whether Ended shall be called when the wait is over.
	Queued(s *Sync, who int64) bool
	Ended(who int64)

	// Acquired is called after an acquisition while [goid.Recording] is true.
	Acquired(s *Sync, k *Kind, owner int64)
}

var watcher atomic.Pointer[Watcher]

// SetWatcher sets the watcher. It is called once, before main.
func SetWatcher(w Watcher) { watcher.Store(&w) }

// Watched reports whether there is a watcher.
func Watched() bool { return watcher.Load() != nil }

// Describe sets the kind of the lock, unless the lock has one. It is for a lock that differs from
// others of its type, before its first wait.
func (s *Sync) Describe(k *Kind) {
	if w := watcher.Load(); w != nil {
		s.guard.Lock()
		s.watch(*w, k)
		s.guard.Unlock()
	}
}

// watch tells w of the lock before its first watched wait. The guard is held.
func (s *Sync) watch(w Watcher, k *Kind) {
	if marks := s.queue.marks.load(); marks&watched == 0 {
		s.queue.marks.set(marks | watched)
		w.Watch(s, k)
	}
}

// report tells the watcher that n is in the lock's queue. The guard is held.
func (s *Sync) report(n *node) {
	if n.kind == nil {
		return
	}
	if w := watcher.Load(); w != nil {
		s.watch(*w, n.kind)
		n.reported = (*w).Queued(s, n.who) || n.reported
		if n.began == 0 && timed.Load() {
			n.began = clock()
		}
	}
}

// timed says that watched waits note when they began.
var timed atomic.Bool

// TimeWaits makes each later watched wait note when it began. That is one reading of the clock,
// with the guard held.
func TimeWaits() { timed.Store(true) }

// Report tells the watcher of the waits in the queue again.
func (s *Sync) Report() { s.queue.each(&s.guard, s.report) }

// Acquired tells the watcher that p has acquired the lock.
func (s *Sync) Acquired(p Party) {
	if w := watcher.Load(); w != nil && p.kind != nil {
		(*w).Acquired(s, p.kind, p.who)
	}
}

// Entry is a wait that is about to begin. Its methods are for the waiter's goroutine.
type Entry struct{ n *node }

// Lock returns the synchronizer of the lock.
func (e Entry) Lock() *Sync { return e.n.s }

// Refusable reports whether the wait may be refused. The wait of an explicit owner is not refused,
// since another goroutine of that owner may release.
func (e Entry) Refusable() bool { return e.n.kind.Refusable && !explicit(e.n.who) }

// Enqueue lets the waiter have the lock, and returns false, or puts it in the queue.
func (e Entry) Enqueue() (queued bool) {
	e.n.s.guard.Lock()
	wake, queued := e.n.tryEnqueue()
	e.n.s.guard.Unlock()
	unpark(wake)
	return queued
}

// Waiting returns the wait after Enqueue.
func (e Entry) Waiting() Waiting { return e.n.waiting() }

// Refuse ends the wait after Enqueue. It is refused, unless the waiter was granted the lock before.
func (e Entry) Refuse() { e.n.refused = e.n.leave() == Ended }

// Waiting is a wait in the lock's queue.
type Waiting struct {
	ID        WaitID
	Who       int64
	Goroutine int64 // that waits; Who unless that is an explicit owner
	Shared    bool
	Limited   bool      // a context or a time limit can end it
	Since     time.Time // when it joined the queue; zero if it was not timed
}

// WaitID tells a wait from all others while it is kept. The zero WaitID is of none.
type WaitID struct {
	n    *node
	wait uint64
}

func (n *node) waiting() Waiting {
	w := Waiting{
		ID: WaitID{n, n.number}, Who: n.who, Goroutine: n.goroutine, Shared: n.shared, Limited: n.limited,
	}
	if n.began != 0 {
		w.Since = start.Add(n.began)
	}
	if w.Goroutine == 0 {
		w.Goroutine = n.who
	}
	return w
}

// EachWaiting calls visit for the waits in the queue, in its order. Waits that begin or end
// meanwhile may be missed.
func (s *Sync) EachWaiting(visit func(Waiting)) {
	s.queue.each(&s.guard, func(n *node) { visit(n.waiting()) })
}
