package syncq

import (
	"sync"
	"sync/atomic"
	"weak"
)

// Kind describes a lock to those who look for deadlocks. Usually it is static, one for all
// locks of a type. A lock without a Kind has no owners to wait for, and takes no part. One with
// a Kind lets its exclusive holder enter again, and never wait for itself exclusively.
type Kind struct {
	// Name is the lock's type.
	Name string

	// Key, if not nil, tells the lock from others of its type.
	Key any

	// Holders returns who holds the lock shared, in any order. If it is nil, nobody knows.
	//
	// The answer must be right about owners that wait: one that waits for any lock
	// is returned if and only if it has a shared hold of this one. About others it may be wrong.
	// It is called without the guard held, and must not wait for anybody who may
	// wait for a lock.
	Holders func(*Sync) []int64

	// Refusable says that the lock knows that Lock, LockShared, and their limited forms may
	// refuse a wait, and treats false accordingly. The waits of other locks are never refused.
	Refusable bool
}

// Of says of which kind p's lock is.
func (p Party) Of(k *Kind) Party {
	p.kind = k
	return p
}

// Describe says of which kind the lock is, unless that has been said before. It is for locks
// whose waiters do not say it, or that differ from others of their type.
func (s *Sync) Describe(k *Kind) {
	if s.kind.Load() == nil {
		s.kind.CompareAndSwap(nil, k)
	}
}

// Kind returns of which kind the lock is. Until somebody has waited for it, that may
// be unknown, which is nil.
func (s *Sync) Kind() *Kind { return s.kind.Load() }

// The registry lists the locks that have a Kind and had a waiter at any time, so that the
// waits of all of them can be found. It keeps neither a lock nor a waiter
// alive: the garbage collector has to find out by itself that nothing but each other refers to
// them, as the goroutine leak profile depends on that. A lock enters once in its life.
var registry struct {
	sync.Mutex // taken with a guard held; under it nothing else is

	locks []weak.Pointer[Sync]
	limit int // the length at which dead ones are thrown out

	// waits says which lock a goroutine waits for, while waits are refused. It may be out of
	// date about goroutines that have just stopped waiting.
	waits map[int64]weak.Pointer[Sync]
}

// minLimit is the least limit of the registry.
const minLimit = 64

// refusing says that waits that would close a cycle are refused. Written with the registry locked.
var refusing atomic.Bool

// Listed reports whether the lock is in the registry, where others may find it, and ask for its
// Kind.
func (s *Sync) Listed() bool { return s.listed.Load() }

// enlist puts the lock, which is of kind k if that is not nil, in the registry. A waiter does that
// before it joins the queue, without the guard.
func (s *Sync) enlist(k *Kind) {
	if k != nil {
		s.Describe(k)
	}
	if s.listed.Load() {
		return
	}
	registry.Lock()
	defer registry.Unlock()
	if s.listed.Swap(true) {
		return
	}
	if len(registry.locks) >= max(registry.limit, minLimit) {
		sweep()
	}
	registry.locks = append(registry.locks, weak.Make(s))
}

// index makes the wait of n, which is in the lock's queue, findable by its goroutine. The guard is
// held, and waits are refused.
func (s *Sync) index(n *node) {
	if n.who <= 0 || s.kind.Load() == nil {
		return
	}
	registry.Lock()
	defer registry.Unlock()
	if refusing.Load() {
		registry.waits[n.who] = weak.Make(s)
		n.indexed = true
	}
}

// sweep throws the dead locks out of the registry, which is locked. Next time is when there are
// twice as many as are left, so that the cost per lock stays the same.
func sweep() {
	live := 0
	for _, p := range registry.locks {
		if p.Value() != nil {
			live++
		}
	}
	registry.limit = 2 * live
	kept := make([]weak.Pointer[Sync], 0, max(registry.limit, minLimit))
	for _, p := range registry.locks {
		if p.Value() != nil {
			kept = append(kept, p)
		}
	}
	registry.locks = kept
}

// forget says that the wait of the goroutine who is over.
func forget(who int64) {
	registry.Lock()
	delete(registry.waits, who)
	registry.Unlock()
}

// registered returns the locks that are or were waited for, and throws the dead ones out.
func registered() []*Sync {
	registry.Lock()
	defer registry.Unlock()
	sweep()
	locks := make([]*Sync, 0, len(registry.locks))
	for _, p := range registry.locks {
		if s := p.Value(); s != nil {
			locks = append(locks, s)
		}
	}
	return locks
}

// waitsFor returns the lock that the goroutine who waits for as far as is known, or nil.
func waitsFor(who int64) *Sync {
	registry.Lock()
	defer registry.Unlock()
	return registry.waits[who].Value()
}

// allWaitFor is waitsFor of all goroutines among who: which of them wait for which lock.
func allWaitFor(who []int64) map[*Sync]map[int64]bool {
	at := make(map[*Sync]map[int64]bool)
	registry.Lock()
	defer registry.Unlock()
	for _, h := range who {
		lock := registry.waits[h].Value()
		if lock == nil {
			continue
		}
		if at[lock] == nil {
			at[lock] = make(map[int64]bool)
		}
		at[lock][h] = true
	}
	return at
}
