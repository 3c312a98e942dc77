// Package keyed has a reentrant lock for each key of a set, like Java's lock on any object.
//
//	var accounts keyed.Mutexes[int64]
//
//	func deposit(id, amount int64) {
//		l := accounts.Of(id)
//		l.Lock()
//		defer l.Unlock()
//		...
//	}
//
// Use package named for locks by name at call sites that also work with distributed locks.
package keyed

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/attach"
	"github.com/jucgo/locks/internal/syncq"
	"github.com/jucgo/locks/reentrant"
)

// Mutexes is a set of reentrant locks, one for each key. A lock exists while a goroutine holds
// it, waits for it, or has a condition of it. The set uses no memory for other keys, however
// many there have been at once. It is safe for concurrent use.
//
// The zero Mutexes is an empty set of locks that admit by [fair.NonFair]; [New] makes others. A
// Mutexes must not be copied after first use.
//
// A lock and an unlock look up the key once each, and allocate nothing if no goroutine waits.
type Mutexes[K comparable] struct {
	policy fair.Policy
	once   sync.Once // sets seed
	seed   maphash.Seed
	shards [shardCount]shard[K]
}

// shardCount is the number of shards. Lookups in different shards do not wait for each other. It
// is a power of 2.
const shardCount = 64

// spareEntries is the number of unused entries that a shard keeps, so that an uncontended lock
// allocates nothing.
const spareEntries = 4

// Go's maps never shrink. A shard replaces its map if the map has had more than shrinkAbove keys
// and now has less than a shrinkFactor'th of its maximum. Therefore copying costs a fraction of
// the deletions.
const (
	shrinkAbove  = 64
	shrinkFactor = 8
)

// shard is a part of the set.
//
// Two goroutines never have different locks for one key. An entry is made and deleted only with
// mu held, and deleted only when users is 0. users counts each goroutine that has a pointer to
// the entry. A goroutine counts from before its attempt until it fails or makes its last
// release. A release counts from before it begins until it ends. Therefore a deleted entry can
// serve another key.
type shard[K comparable] struct {
	mu      sync.Mutex
	entries map[K]*entry
	most    int // the greatest number of entries that this map has had
	spare   []*entry
	_       [16]byte // keeps the shards' mutexes on cache lines of their own
}

type entry struct {
	lock      *reentrant.Mutex
	users     int         // holds, attempts and releases under way, and conditions; guarded by the shard's mu
	described atomic.Bool // deadlock detection, if there is any, knows the lock by its key
}

// New returns an empty set of locks that admit by p.
func New[K comparable](p fair.Policy) *Mutexes[K] { return &Mutexes[K]{policy: p} }

// Of returns the lock for key. Two locks of one key in one set are the same lock. Keys are equal
// as in a map[K]. Of panics if key is not equal to itself, as a NaN is not, because its lock
// could not be found again. It panics if K is an interface type and the value in it cannot be
// compared.
func (ms *Mutexes[K]) Of(key K) Mutex[K] {
	if key != key {
		panic("keyed: key is not equal to itself")
	}
	return Mutex[K]{ms, key}
}

// Len returns the number of locks that are held or waited for, or have a condition.
func (ms *Mutexes[K]) Len() int {
	n := 0
	for i := range ms.shards {
		s := &ms.shards[i]
		s.mu.Lock()
		n += len(s.entries)
		s.mu.Unlock()
	}
	return n
}

func (ms *Mutexes[K]) shard(key K) *shard[K] {
	if ms == nil {
		panic("keyed: a zero Mutex belongs to no set: use Mutexes.Of")
	}
	ms.once.Do(func() { ms.seed = maphash.MakeSeed() })
	return &ms.shards[maphash.Comparable(ms.seed, key)%shardCount]
}

// addUser counts one more user of key's entry, and makes the entry if there is none. If lock is
// true and there is no other user, the lock is free, and the calling goroutine acquires it.
func (s *shard[K]) addUser(key K, p fair.Policy, lock bool) (e *entry, held bool) {
	s.mu.Lock()
	e = s.entries[key]
	if e == nil {
		e = s.add(key, p)
	}
	e.users++
	if lock && e.users == 1 {
		e.lock.Lock()
		held = true
	}
	s.mu.Unlock()
	return e, held
}

// add makes an entry for key.
func (s *shard[K]) add(key K, p fair.Policy) (e *entry) {
	if last := len(s.spare) - 1; last >= 0 {
		e = s.spare[last]
		s.spare = s.spare[:last]
	} else {
		e = &entry{lock: reentrant.New(p)}
	}
	if s.entries == nil {
		s.entries = make(map[K]*entry)
	}
	s.entries[key] = e
	s.most = max(s.most, len(s.entries))
	return e
}

// dropUsers counts n users of key's entry e less, and deletes the entry after its last user.
func (s *shard[K]) dropUsers(key K, e *entry, n int) {
	s.mu.Lock()
	s.dropUsersGuarded(key, e, n)
	s.mu.Unlock()
}

// dropUsersGuarded is dropUsers with mu held.
func (s *shard[K]) dropUsersGuarded(key K, e *entry, n int) {
	if e.users -= n; e.users > 0 {
		return
	}
	delete(s.entries, key)
	if s.most > shrinkAbove && len(s.entries)*shrinkFactor < s.most {
		s.shrink()
	}
	// Deadlock detection knows a described lock by its old key, which a report may be about to
	// read.
	if len(s.spare) < spareEntries && !e.described.Load() {
		s.spare = append(s.spare, e)
	}
}

// shrink moves the entries to a map without spare room.
func (s *shard[K]) shrink() {
	entries := make(map[K]*entry, len(s.entries))
	for k, e := range s.entries {
		entries[k] = e
	}
	s.entries, s.most = entries, len(entries)
}

// describe tells deadlock detection the key of the lock. It has to happen before each wait.
func (s *shard[K]) describe(key K, e *entry) {
	if e.described.Load() || !syncq.Watched() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !e.described.Load() {
		attach.Describe(e.lock, &syncq.Kind{Name: "keyed.Mutex", Key: key, Refusable: true})
		e.described.Store(true)
	}
}
