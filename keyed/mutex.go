package keyed

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/internal/attach"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/keytext"
	"github.com/jucgo/locks/internal/sched"
	"github.com/jucgo/locks/internal/syncq"
	"github.com/jucgo/locks/internal/unheld"
	"github.com/jucgo/locks/reentrant"
)

// Mutex is the lock for one key of a set, made by [Mutexes.Of]. It behaves like a
// [reentrant.Mutex], including errors and panics. Its plain methods act for the calling
// goroutine, its Context family for the owner that the context carries. A Mutex is a small value
// that may be copied. The zero Mutex belongs to no set, and its methods panic.
type Mutex[K comparable] struct {
	set  *Mutexes[K]
	hash uint64 // of key
	key  K
}

var _ locks.TryLocker = Mutex[string]{}

func (l *Mutex[K]) shard() *shard[K] {
	if l.set == nil {
		panic("keyed: a zero Mutex belongs to no set: use Mutexes.Of")
	}
	return &l.set.shards[l.hash%shardCount]
}

// attempt calls try for the lock of the entry e. The caller is a user of e until attempt returns.
func (s *shard[K]) attempt(e *entry[K], try func(m *reentrant.Mutex)) {
	defer s.dropUser(e) // deferred for a try that panics
	try(e.lock)
}

func current() locks.Owner { return locks.Owner(goid.Get()) }

// Lock is [reentrant.Mutex.Lock].
func (l Mutex[K]) Lock() {
	if sched.On {
		defer sched.Enter("Lock", l)()
	}
	s := l.shard()
	if e, held := s.addUser(&l, true, true); !held {
		s.attempt(e, func(m *reentrant.Mutex) {
			if !m.IsHeld() {
				s.describe(e)
			}
			m.Lock()
		})
	}
}

// TryLock is [reentrant.Mutex.TryLock].
func (l Mutex[K]) TryLock() (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryLock", l)(&ok)
	}
	s := l.shard()
	e, held := s.addUser(&l, true, false)
	if !held {
		s.attempt(e, func(m *reentrant.Mutex) { held = m.TryLock() })
	}
	return held
}

// TryLockFor is [reentrant.Mutex.TryLockFor].
func (l Mutex[K]) TryLockFor(d time.Duration) (ok bool) {
	if sched.On {
		defer sched.Tried[bool]("TryLockFor", l)(&ok)
	}
	s := l.shard()
	e, held := s.addUser(&l, true, d > 0)
	if !held {
		s.attempt(e, func(m *reentrant.Mutex) {
			if !m.IsHeld() {
				s.describe(e)
			}
			held = m.TryLockFor(d)
		})
	}
	return held
}

// Unlock is [reentrant.Mutex.Unlock].
func (l Mutex[K]) Unlock() {
	if sched.On {
		defer sched.Enter("Unlock", l)()
	}
	if !l.unlock() {
		panic(l.notHeld("Unlock", current()))
	}
}

// unlock releases a hold of the calling goroutine.
func (l *Mutex[K]) unlock() bool {
	s := l.shard()
	if s.contended.Load() != nil && s.unlockContended(l) {
		return true
	}
	me := goid.Get()
	s.mu.Lock()
	if s.holder == me && s.key == l.key {
		s.leave()
		s.mu.Unlock()
		return true
	}
	e := *s.find(l)
	if e == nil || e.lock.Owner() != locks.Owner(me) {
		s.mu.Unlock()
		return false
	}
	if e.users.Load() == 0 {
		e.lock.Unlock() // there is no waiter
		s.sweep(e)
		s.mu.Unlock()
		return true
	}
	e.users.Add(1) // until the end of the release
	s.mu.Unlock()
	e.lock.Unlock()
	s.dropUser(e)
	return true
}

// unlockOwner releases a hold of ctx's owner, which is not the calling goroutine.
func (l Mutex[K]) unlockOwner(ctx context.Context) (err error) {
	s := l.shard()
	s.mu.Lock()
	e := *s.find(&l)
	if e == nil {
		s.mu.Unlock()
		return locks.ErrNotHeld
	}
	e.users.Add(1) // another goroutine of this owner may release the last hold meanwhile
	s.mu.Unlock()
	defer s.dropUser(e) // deferred for a ctx that panics
	return e.lock.UnlockContext(ctx)
}

// LockContext is [reentrant.Mutex.LockContext].
func (l Mutex[K]) LockContext(ctx context.Context) (err error) {
	if sched.On {
		defer sched.Asked("LockContext", l)(&err)
	}
	const op = "LockContext"
	if err := ctxerr.Check(op, ctx); err != nil {
		return l.wrap(op, err)
	}
	o := locks.CurrentOwner(ctx)
	s := l.shard()
	e, held := s.addUser(&l, o == current(), true)
	if held {
		return nil
	}
	s.attempt(e, func(m *reentrant.Mutex) {
		// An explicit owner tries first: to describe the lock of a key that no other owner wants
		// would allocate. A fair lock is never free while goroutines wait.
		if !m.IsLocked() {
			if ok, failed := m.TryLockContext(ctx); ok || failed != nil {
				err = failed
				return
			}
		}
		if m.Owner() != o {
			s.describe(e)
		}
		err = m.LockContext(ctx)
	})
	return l.wrap(op, err)
}

// TryLockContext is [reentrant.Mutex.TryLockContext].
func (l Mutex[K]) TryLockContext(ctx context.Context) (ok bool, err error) {
	if sched.On {
		defer sched.Tried[bool]("TryLockContext", l)(&ok)
	}
	const op = "TryLockContext"
	if err := ctxerr.Check(op, ctx); err != nil {
		return false, l.wrap(op, err)
	}
	s := l.shard()
	e, held := s.addUser(&l, locks.CurrentOwner(ctx) == current(), false)
	if held {
		return true, nil
	}
	s.attempt(e, func(m *reentrant.Mutex) { ok, err = m.TryLockContext(ctx) })
	return ok, l.wrap(op, err)
}

// UnlockContext is [reentrant.Mutex.UnlockContext].
func (l Mutex[K]) UnlockContext(ctx context.Context) error {
	if sched.On {
		defer sched.Enter("UnlockContext", l)()
	}
	const op = "UnlockContext"
	if o := locks.CurrentOwner(ctx); o != current() {
		if err := l.unlockOwner(ctx); !errors.Is(err, locks.ErrNotHeld) {
			return l.wrap(op, err)
		}
		return l.notHeld(op, o)
	}
	if !l.unlock() {
		return l.notHeld(op, current())
	}
	return nil
}

// kind describes a lock with conditions, whose key its condition knows, to deadlock detection.
var kind = syncq.Kind{Name: "keyed.Mutex", Refusable: true}

// what is the name of a lock of this package in errors.
const what = "the keyed.Mutex"

// notHeld returns the error of op by o, which does not hold the lock.
func (l Mutex[K]) notHeld(op string, o locks.Owner) error {
	err := unheld.Free(what)
	if holder := l.Owner(); holder != 0 {
		err = unheld.By(o, what+" is held by", "", holder)
	}
	return l.wrap(op, err)
}

// wrap returns err with the operation and the lock.
func (l Mutex[K]) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return &failure[K]{op, l.key, ctxerr.Bare(err)}
}

// failure is formatted only when it is read, because most callers only compare errors.
type failure[K comparable] struct {
	op  string
	key K
	err error
}

func (f *failure[K]) Error() string {
	return "keyed: " + f.op + " of " + keytext.Of(f.key) + ": " + f.err.Error()
}

func (f *failure[K]) Unwrap() error { return f.err }

// inspect returns ask's answer about the lock. If the lock does not exist, it returns the zero R,
// which is the right answer about a free lock.
func inspect[K comparable, R any](l Mutex[K], ask func(m *reentrant.Mutex) R) (answer R) {
	s := l.shard()
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := *s.find(&l); e != nil {
		answer = ask(e.lock)
	}
	return answer
}

// NewCond returns a new condition of the lock. As with [reentrant.Mutex.NewCond], each condition
// has waiters of its own: a signal of one wakes no waiter of another, even for the same key. Call
// NewCond once for each thing that goroutines wait for. Keep the Cond where the waiters and the
// goroutines that signal find it. Java's newCondition().
//
// The lock exists for as long as the condition does: until the garbage collector finds the
// condition unreachable. The set refers to the key until then. Therefore a key that leads to the
// condition, such as a pointer to a struct with the condition, stays as long as the set.
func (l Mutex[K]) NewCond() *condition.Cond {
	s := l.shard()
	e, _ := s.addUser(&l, false, false)
	s.describe(e) // a signalled waiter may be the first in the lock's queue
	q := attach.Reentrant(e.lock).NewCond()
	// The cleanup is on the queue, because a copy of the Cond has the same queue.
	runtime.AddCleanup(q, func(e *entry[K]) { s.dropUser(e) }, e)
	return condition.New(&attach.Lock{Locker: l, Q: q, Kind: &kind})
}

// IsFair reports whether the lock admits by [locks.FIFO].
func (l Mutex[K]) IsFair() bool {
	l.shard()
	return l.set.policy == locks.FIFO
}

// IsLocked reports whether the lock is held.
func (l Mutex[K]) IsLocked() bool { return inspect(l, (*reentrant.Mutex).IsLocked) }

// IsHeld reports whether the calling goroutine holds the lock.
func (l Mutex[K]) IsHeld() bool { return l.HoldCount() > 0 }

// HoldCount returns how many holds the calling goroutine has.
func (l Mutex[K]) HoldCount() int { return inspect(l, (*reentrant.Mutex).HoldCount) }

// IsHeldContext is [reentrant.Mutex.IsHeldContext].
func (l Mutex[K]) IsHeldContext(ctx context.Context) bool { return l.HoldCountContext(ctx) > 0 }

// HoldCountContext is [reentrant.Mutex.HoldCountContext].
func (l Mutex[K]) HoldCountContext(ctx context.Context) int {
	// Ask ctx before inspect acquires a mutex, because ctx may be a type of the program.
	ctx = locks.WithOwner(context.Background(), locks.CurrentOwner(ctx))
	return inspect(l, func(m *reentrant.Mutex) int { return m.HoldCountContext(ctx) })
}

// Owner returns the holder, or 0.
func (l Mutex[K]) Owner() locks.Owner { return inspect(l, (*reentrant.Mutex).Owner) }

// HasQueued reports whether a goroutine waits for the lock.
func (l Mutex[K]) HasQueued() bool { return l.QueueLength() > 0 }

// QueueLength returns the number of goroutines that wait for the lock.
func (l Mutex[K]) QueueLength() int { return inspect(l, (*reentrant.Mutex).QueueLength) }

// IsQueued reports whether o waits for the lock.
func (l Mutex[K]) IsQueued(o locks.Owner) bool {
	return inspect(l, func(m *reentrant.Mutex) bool { return m.IsQueued(o) })
}

// Queued returns the owners that wait for the lock, longest wait first.
func (l Mutex[K]) Queued() []locks.Owner { return inspect(l, (*reentrant.Mutex).Queued) }

// HasWaiters reports whether a goroutine waits for a signal of c. It panics like
// [reentrant.Mutex.HasWaiters].
func (l Mutex[K]) HasWaiters(c *condition.Cond) bool { return l.WaitQueueLength(c) > 0 }

// WaitQueueLength returns the number of goroutines that wait for a signal of c. It panics like
// [reentrant.Mutex.HasWaiters].
func (l Mutex[K]) WaitQueueLength(c *condition.Cond) int {
	if c == nil || c.Locker() != l {
		panic(locks.ErrForeign)
	}
	return c.WaitQueueLength()
}

// Inspect describes the lock, its owner, and its waiters. See [locks.Inspector].
func (l Mutex[K]) Inspect(ctx context.Context) (info locks.Info, err error) {
	if err = ctxerr.Check("Inspect", ctx); err == nil {
		info = inspect(l, func(m *reentrant.Mutex) (existing locks.Info) {
			// Not with ctx: inspect holds a mutex, and ctx may be a type of the program.
			existing, err = m.Inspect(context.Background())
			return existing
		})
	}
	return info, l.wrap("Inspect", err)
}

// LockKey names the lock among all locks of its type. [locks.Multi] orders locks by it.
func (l Mutex[K]) LockKey() string {
	set := sched.Address(reflect.ValueOf(l.set).Pointer()) // the same number in each run of explore
	return string(appendKey(fmt.Appendf(nil, "%#x/", set), reflect.ValueOf(&l.key).Elem()))
}

// String describes the lock and its state.
func (l Mutex[K]) String() string {
	state := "unlocked"
	if o := l.Owner(); o != 0 {
		state = "locked by " + o.String()
	}
	return fmt.Sprintf("keyed.Mutex(%s)[%s, %d queued]", keytext.Of(l.key), state, l.QueueLength())
}
