// Package named gives locks by name in this process: a [locks.Provider] over reentrant
// locks, for call sites that may go distributed, and for whoever wants to lock on a key
// as Java locks on an object.
package named

import (
	"context"
	"fmt"
	"hash/maphash"
	"reflect"
	"runtime"
	"sync"
	"time"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/condition"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/ctxerr"
	"github.com/jucgo/locks/internal/syncq"
	"github.com/jucgo/locks/reentrant"
)

// Locks is a set of reentrant locks, one per key. A lock exists while somebody holds it, waits for
// it, or has a condition of it, so that the set costs nothing for keys that are not in use, however
// many there have been. It is safe for concurrent use.
//
// The zero Locks is an empty set of locks that admit by [fair.NonFair]. It must not be copied after first use.
type Locks struct {
	policy fair.Policy
	once   sync.Once // sets seed
	seed   maphash.Seed
	shards [shardCount]shard
	spare  sync.Pool // of *entry: locks that have no key, so that an uncontended one is not allocated each time
}

var _ locks.Provider = (*Locks)(nil)

// shardCount bounds how many keys share one mutex on their way to their locks. A power of 2.
const shardCount = 64

// shard is a part of the set. Its mutex is held for a map operation at a time.
//
// Two goroutines never have different locks for one key: an entry is made and deleted only with
// mu held, and deleted only when users is 0; whoever has a pointer to it, from before its attempt
// to its failure or to its last release, and from before a release to its end, is counted in users. So
// an entry that was deleted can serve another key.
type shard struct {
	mu      sync.Mutex
	entries map[any]*entry
	_       [48]byte // keeps the shards' mutexes on cache lines of their own
}

type entry struct {
	lock  *reentrant.Mutex
	users int        // holds, attempts and releases under way, and conditions; guarded by the shard's mu
	kind  syncq.Kind // shows the key to deadlock detection
}

// Option changes how [New] makes a set.
type Option func(*Locks)

// WithPolicy makes locks that admit by p. The default is [fair.NonFair].
func WithPolicy(p fair.Policy) Option { return func(ls *Locks) { ls.policy = p } }

// New returns an empty set.
func New(opts ...Option) *Locks {
	ls := new(Locks)
	for _, o := range opts {
		o(ls)
	}
	return ls
}

// Locker returns the lock called name. It is a [*Lock].
func (ls *Locks) Locker(name string) locks.TryLocker { return ls.For(name) }

// For returns the lock for key, of any comparable type. Keys are equal as in a map[any]: equal
// values of different types are different keys, and a NaN is equal to nothing, so that its lock
// could never be found again. For panics if key is a NaN, or cannot be compared.
func (ls *Locks) For(key any) *Lock {
	if key != nil && !reflect.ValueOf(key).Comparable() {
		panic(fmt.Sprintf("named: key of type %T cannot be compared", key))
	}
	if key != key {
		panic("named: key is not equal to itself")
	}
	return &Lock{ls, key}
}

// Len returns the number of locks that are held or waited for, or have a condition.
func (ls *Locks) Len() int {
	n := 0
	for i := range ls.shards {
		s := &ls.shards[i]
		s.mu.Lock()
		n += len(s.entries)
		s.mu.Unlock()
	}
	return n
}

func (ls *Locks) shard(key any) *shard {
	ls.once.Do(func() { ls.seed = maphash.MakeSeed() })
	return &ls.shards[maphash.Comparable(ls.seed, key)%shardCount]
}

// enter counts one more user of key's entry, and makes the entry if there is none.
func (ls *Locks) enter(key any) *entry {
	s := ls.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	if e == nil {
		e = ls.entry(key)
		if s.entries == nil {
			s.entries = make(map[any]*entry)
		}
		s.entries[key] = e
	}
	e.users++
	return e
}

// visit counts one more user of key's entry, and returns nil if there is none.
func (ls *Locks) visit(key any) *entry {
	s := ls.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	if e != nil {
		e.users++
	}
	return e
}

// leave counts n users of key's entry e less, and deletes the entry after its last.
func (ls *Locks) leave(key any, e *entry, n int) {
	s := ls.shard(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.users -= n; e.users == 0 {
		delete(s.entries, key)
		ls.drop(e)
	}
}

// entry returns an entry for key without users.
func (ls *Locks) entry(key any) *entry {
	if e, ok := ls.spare.Get().(*entry); ok {
		e.kind.Key = key
		return e
	}
	e := &entry{kind: syncq.Kind{Name: "named.Lock", Key: key, Refusable: true}}
	e.lock = reentrant.NewKind(ls.policy, &e.kind)
	return e
}

// drop keeps e, which has no users and is out of the set, for another key, unless deadlock detection has it
// in its list and may be about to read what its key was.
func (ls *Locks) drop(e *entry) {
	if !reentrant.Listed(e.lock) {
		e.kind.Key = nil
		ls.spare.Put(e)
	}
}

// Lock is the lock for one key of a set. All Locks of one key in one set are the same lock. It is
// a [reentrant.Mutex] in everything it does, errors and panics included; its plain methods
// act for the calling goroutine, its Context family for the owner that the context carries. [Locks.For] makes it; the zero
// Lock is of no set, and cannot be used.
//
// On top of what that costs, a lock looks the key up once and an unlock twice. Neither allocates if nobody waits.
type Lock struct {
	set *Locks
	key any
}

var _ locks.TryLocker = (*Lock)(nil)

// attempt has try ask for the lock, and keeps the entry if it got a hold, whatever way it ends.
func (l *Lock) attempt(try func(m *reentrant.Mutex) bool) bool {
	e := l.set.enter(l.key)
	held := false
	defer func() {
		if !held {
			l.set.leave(l.key, e, 1)
		}
	}()
	held = try(e.lock)
	return held
}

// Lock is [reentrant.Mutex.Lock].
func (l *Lock) Lock() {
	l.attempt(func(m *reentrant.Mutex) bool { m.Lock(); return true })
}

// TryLock is [reentrant.Mutex.TryLock].
func (l *Lock) TryLock() bool { return l.attempt((*reentrant.Mutex).TryLock) }

// TryLockFor is [reentrant.Mutex.TryLockFor].
func (l *Lock) TryLockFor(d time.Duration) bool {
	return l.attempt(func(m *reentrant.Mutex) bool { return m.TryLockFor(d) })
}

// Unlock is [reentrant.Mutex.Unlock].
func (l *Lock) Unlock() {
	if l.unlock(context.Background()) != nil {
		panic(locks.ErrNotHeld)
	}
}

func (l *Lock) unlock(ctx context.Context) error {
	e := l.set.visit(l.key)
	if e == nil {
		return ctxerr.Wrap("UnlockContext of a free lock", locks.ErrNotHeld)
	}
	err := e.lock.UnlockContext(ctx)
	if err != nil {
		l.set.leave(l.key, e, 1)
	} else {
		l.set.leave(l.key, e, 2)
	}
	return err
}

// LockContext is [reentrant.Mutex.LockContext].
func (l *Lock) LockContext(ctx context.Context) (err error) {
	l.attempt(func(m *reentrant.Mutex) bool {
		err = m.LockContext(ctx)
		return err == nil
	})
	return l.named(err)
}

// TryLockContext is [reentrant.Mutex.TryLockContext].
func (l *Lock) TryLockContext(ctx context.Context) (ok bool, err error) {
	l.attempt(func(m *reentrant.Mutex) bool {
		ok, err = m.TryLockContext(ctx)
		return ok
	})
	return ok, l.named(err)
}

// UnlockContext is [reentrant.Mutex.UnlockContext].
func (l *Lock) UnlockContext(ctx context.Context) error {
	return l.named(l.unlock(ctx))
}

// named says in err which lock it is about.
func (l *Lock) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("named: %s: %w", describe(l.key), err)
}

// inspect asks the lock while it exists; a lock that does not is free.
func (l *Lock) inspect(ask func(m *reentrant.Mutex)) {
	s := l.set.shard(l.key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[l.key]; e != nil {
		ask(e.lock)
	}
}

// NewCond returns a new condition of the lock, which exists for as long as the condition does: until the
// garbage collector finds that nobody has it any more. The set has the key until then, so a key that leads to the
// condition, as a pointer to what has it in a field does, stays with it for as long as the set. Java's wait and notify on an
// object.
func (l *Lock) NewCond() *condition.Cond {
	e := l.set.enter(l.key)
	c := e.lock.NewCond()
	set, key := l.set, l.key
	runtime.AddCleanup(c, func(e *entry) { set.leave(key, e, 1) }, e)
	return c
}

// IsFair reports whether the lock admits by [fair.FIFO].
func (l *Lock) IsFair() bool { return l.set.policy == fair.FIFO }

// IsLocked reports whether anybody holds the lock.
func (l *Lock) IsLocked() (locked bool) {
	l.inspect(func(m *reentrant.Mutex) { locked = m.IsLocked() })
	return locked
}

// IsHeld reports whether the calling goroutine holds the lock.
func (l *Lock) IsHeld() bool { return l.HoldCount() > 0 }

// AssertHeld panics with [locks.ErrNotHeld] if the calling goroutine does not hold the lock.
func (l *Lock) AssertHeld() {
	if !l.IsHeld() {
		panic(locks.ErrNotHeld)
	}
}

// HoldCount returns how many holds the calling goroutine has.
func (l *Lock) HoldCount() (n int) {
	l.inspect(func(m *reentrant.Mutex) { n = m.HoldCount() })
	return n
}

// Owner returns who holds the lock, or 0.
func (l *Lock) Owner() (o locks.Owner) {
	l.inspect(func(m *reentrant.Mutex) { o = m.Owner() })
	return o
}

// HasQueued reports whether anybody waits for the lock.
func (l *Lock) HasQueued() bool { return l.QueueLength() > 0 }

// QueueLength returns how many wait for the lock.
func (l *Lock) QueueLength() (n int) {
	l.inspect(func(m *reentrant.Mutex) { n = m.QueueLength() })
	return n
}

// IsQueued reports whether o waits for the lock.
func (l *Lock) IsQueued(o locks.Owner) (queued bool) {
	l.inspect(func(m *reentrant.Mutex) { queued = m.IsQueued(o) })
	return queued
}

// Queued returns those who wait for the lock, longest wait first.
func (l *Lock) Queued() (os []locks.Owner) {
	l.inspect(func(m *reentrant.Mutex) { os = m.Queued() })
	return os
}

// HasWaiters reports whether anybody waits for a signal of c, and panics like [reentrant.Mutex.HasWaiters].
func (l *Lock) HasWaiters(c *condition.Cond) bool { return l.WaitQueueLength(c) > 0 }

// WaitQueueLength returns how many wait for a signal of c, and panics like [reentrant.Mutex.HasWaiters].
func (l *Lock) WaitQueueLength(c *condition.Cond) (n int) {
	foreign := true
	l.inspect(func(m *reentrant.Mutex) { n, foreign = m.WaitQueueLength(c), false })
	if foreign {
		panic(locks.ErrForeign) // a lock that does not exist has no conditions
	}
	return n
}

// LockKey names the lock among those of its set, which gives [locks.Multi] its order.
func (l *Lock) LockKey() string {
	b := fmt.Appendf(nil, "%p/", l.set)
	if l.key == nil {
		return string(b)
	}
	return string(appendTyped(b, reflect.ValueOf(l.key)))
}

// String describes the lock and its state.
func (l *Lock) String() string {
	state := "unlocked"
	if o := l.Owner(); o != 0 {
		state = "locked by " + o.String()
	}
	return fmt.Sprintf("named.Lock(%s)[%s, %d queued]", describe(l.key), state, l.QueueLength())
}
