package synchronizer

import (
	"context"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/info"
	"github.com/jucgo/locks/internal/outcome"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/ruled"
	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/internal/syncq"
)

// Rules say when a [Sync] can be acquired and released. Both methods are functions of their
// arguments and of fields of the Rules that never change. They look at nothing else, change
// nothing, do not block, and do not panic. A Sync may call them at any time, in any goroutine, as
// often as it likes, also for a waiter that does not run. Its guard may be held then. Tests with
// the race detector call them twice and compare: see the package comment.
//
// No acquisition may help a waiter. If the rules refuse an arg at a word, they also refuse it at
// the word after any acquisition. Only releases admit waiters. Make goroutines wait for the
// Release of another goroutine, or use two Syncs.
type Rules interface {
	// Acquire returns the word after arg was acquired at the word w, and whether arg can be
	// acquired. It is the tryAcquire or tryAcquireShared of a Java AbstractQueuedSynchronizer.
	Acquire(w, arg uint64) (next uint64, ok bool)

	// Release returns the word after arg was released at the word w, and whether arg can be
	// released. False means misuse: the caller does not hold arg. It is Java's tryRelease or
	// tryReleaseShared.
	Release(w, arg uint64) (next uint64, ok bool)
}

// Sync is a synchronizer: a word that rules change, and a queue of the goroutines that wait until
// the rules let them in. Java's AbstractQueuedSynchronizer.
//
// The zero Sync has the word 0, the zero R, and the policy locks.FIFO. [New] makes a Sync with
// other values. A Sync must not be copied after first use. It belongs to no goroutine: one
// goroutine may acquire and another release.
//
// In the terms of the Go memory model, each change of the word synchronizes before each
// acquisition that comes after it in the order of the changes. Without waiters an acquisition and
// a release cost a compare-and-swap and a call of the rules each, and allocate nothing. Only
// waits with a context or a time limit allocate.
type Sync[R Rules] struct {
	s ruled.Sync[R]
}

// New returns a Sync with these rules, with a first word, and with a policy.
//
// Under locks.FIFO, waiters are admitted in the order of their arrival, and nobody overtakes a
// waiter.
//
// Under locks.NonFair, a goroutine that the rules admit overtakes the waiters. A goroutine that
// they refuse asks again for up to a microsecond before it waits. A release wakes the first waiter,
// which races for the word. The word is kept for a first waiter that has lost 16 races, or is
// overdue when a release looks. From then on no goroutine overtakes the waiter. A waiter is overdue
// after a millisecond, and one more for each 128 waiters. Each release looks at a waiter that
// sleeps, and one release in 64 at a waiter that is awake.
func New[R Rules](rules R, word uint64, policy locks.Policy) *Sync[R] {
	s := new(Sync[R])
	s.s.Init(rules, word, policy != locks.FIFO)
	return s
}

// TryAcquire acquires arg if the rules allow it now, and reports whether it did. Under locks.FIFO,
// and while the word is kept for the first waiter, it reports false if a goroutine waits.
func (s *Sync[R]) TryAcquire(arg uint64) (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryAcquire", s)(&ok)
	}
	return s.s.TryAcquire(arg)
}

// Acquire acquires arg, and waits until the rules allow it.
func (s *Sync[R]) Acquire(arg uint64) {
	if sched.On {
		defer sched.Enter("Acquire", s)()
	}
	if !s.s.TryAcquire(arg) {
		s.s.Wait(arg, 0, nil)
	}
}

// AcquireContext is Acquire until ctx ends. A ctx that has ended already is an error even if the
// rules allow the acquisition. If ctx ends, the waiter is out of the queue when the call returns.
// A waiter that was admitted when it sees the end of ctx has acquired, and gets nil.
func (s *Sync[R]) AcquireContext(ctx context.Context, arg uint64) (err error) {
	if sched.On {
		defer sched.Asked("AcquireContext", s)(&err)
	}
	const op = "synchronizer: AcquireContext"
	if err := ctxerr.Check(op, ctx); err != nil {
		return err
	}
	if s.s.TryAcquire(arg) {
		return nil
	}
	return outcome.Error(op, ctx, s.s.Wait(arg, int64(locks.CurrentOwner(ctx)), park.Until(ctx)))
}

// AcquireFor is Acquire for at most d, and reports whether it acquired. With d <= 0 it is
// TryAcquire.
func (s *Sync[R]) AcquireFor(arg uint64, d time.Duration) (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("AcquireFor", s)(&ok)
	}
	return s.s.TryAcquire(arg) || d > 0 && s.s.Wait(arg, 0, park.After(d)) == syncq.Acquired
}

// Release releases arg, and admits the waiters that the rules let in then. It reports false, with
// nothing changed, if the rules refuse.
func (s *Sync[R]) Release(arg uint64) (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("Release", s)(&ok)
	}
	return s.s.Release(arg)
}

// Word returns the word. The word may have changed before the caller looks at the result. Java's
// getState().
func (s *Sync[R]) Word() uint64 {
	if sched.On {
		sched.Begin("Word", s)
	}
	return s.s.Word()
}

// CompareAndSwap changes the word from old to next, past the rules and the waiters, and admits
// the waiters that the rules let in then. It reports whether the word was old. It is for changes
// that are neither an acquisition nor a release. Java's compareAndSetState(expect, update).
func (s *Sync[R]) CompareAndSwap(old, next uint64) bool {
	if sched.On {
		sched.Begin("CompareAndSwap", s)
	}
	return s.s.CompareAndSwap(old, next)
}

// HasQueued reports whether a goroutine waits. Java's hasQueuedThreads().
func (s *Sync[R]) HasQueued() bool {
	if sched.On {
		sched.Begin("HasQueued", s)
	}
	return s.s.HasQueued()
}

// QueueLength returns the number of goroutines that wait. Java's getQueueLength().
func (s *Sync[R]) QueueLength() int {
	if sched.On {
		sched.Begin("QueueLength", s)
	}
	return s.s.QueueLength()
}

// Queued returns the owners that wait, longest wait first. It takes a time in proportion to their
// number, during which no waiter is admitted. Java's getQueuedThreads().
func (s *Sync[R]) Queued() []locks.Owner {
	if sched.On {
		sched.Begin("Queued", s)
	}
	return outcome.Owners(s.s.Waiters())
}

// Inspect returns the waiters. Held is true if the word is not 0. The holders are not known.
// See [locks.Inspector].
func (s *Sync[R]) Inspect(ctx context.Context) (locks.Info, error) {
	if sched.On {
		defer sched.Enter("Inspect", s)()
	}
	return info.State{Held: s.Word() != 0, Waiters: s.Queued()}.Answer("synchronizer: Inspect", ctx)
}
