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

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/internal/attach"
	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/syncq"
	"github.com/jucgo/locks/reentrant"
)

// Mutexes is a set of reentrant locks, one for each key. A lock exists while a goroutine holds
// it, waits for it, or has a condition of it. The set uses no memory for other keys, however many
// there have been at once. An empty set takes 8 kB if a key takes 16 bytes. A Mutexes is safe for
// concurrent use.
//
// The zero Mutexes is an empty set of locks that admit by [locks.NonFair]; [New] makes others. A
// Mutexes must not be copied after first use.
//
// Of computes a hash of the key. A lock and an unlock look up the key by this hash once each, and
// allocate nothing if no goroutine waits.
type Mutexes[K comparable] struct {
	shards [shardCount]shard[K] // first, so that they begin where an allocated set does
	policy locks.Policy
}

// seed is the seed of the hashes of all keys.
var seed = maphash.MakeSeed()

// shardCount is the number of shards. Lookups in different shards do not wait for each other. It
// is a power of 2.
const shardCount = 64

// spareEntries is the number of unused entries that a shard keeps, so that an uncontended lock
// allocates nothing.
const spareEntries = 4

// A shard starts with minChains chains. It doubles their number when it has more entries than
// chains. It halves their number when it has more than shrinkAbove chains, and fewer entries
// than a shrinkFactor'th of them. Between two moves of the entries, there are therefore at least
// as many additions or deletions as an eighth of the chains.
const (
	minChains    = 8
	shrinkAbove  = 64
	shrinkFactor = 8
)

// shard is a part of the set. It has a place for one sole hold, and a hash table of entries.
//
// A sole hold is the only use of its key. One goroutine holds the lock, once or several times. The
// key is without waiters, conditions and inspections. The fields holder, holds and key are the
// whole record of a sole hold. Therefore its lock and unlock change one cache line, and no atomic
// variable but mu. The next other use of the key moves the hold to an entry. A key gets an entry at
// once if the place has a hold of another key, or if package deadlock must know of the hold.
//
// The table is not a map[K]*entry[K], because a map would hash the key again for each lookup,
// addition and deletion.
//
// mu guards the fields of the shard except contended, and the fields of its entries except lock and
// users. The fields contended, users, and described are read without mu as well. These are the
// states of a key while mu is free:
//
//	holder and key     entry in its chain
//	0, or another key  none                not in use
//	of this key        none                held by holder alone, holds times
//	0, or another key  one                 in use, or about to be swept
//
// While holder is 0, holds is 0, and key is zero. An entry is in use while its lock is held or
// users is greater than 0. A waiter is a user, or its condition is one. The states of an entry
// while mu is free:
//
//	place                     lock                  users
//	in the chain of its hash  held                  any
//	in the chain of its hash  free                  greater than 0
//	contended, in the chain   free                  0, and a goroutine is about to sweep it
//	in the spare list         free, and key zero    0
//	left to the collector     free, or retired      0
//
// While an entry is in its chain, neither its hash nor its key changes. Therefore find leads to
// it. find moves a sole hold of its key to an entry before it looks. Apart from find and move,
// only addUser, unlock and Len know of sole holds. addUser and unlock look for a sole hold before
// they call find.
//
// Two goroutines never have different locks for one key. A sole hold begins, or an entry is made,
// only with mu held, and only if the key has neither. The exception is move: it makes an entry
// for the sole hold, gives the entry's lock to holder as often as it held, and ends the sole
// hold, all with mu held. An entry is deleted by sweep only, with mu held, and only if it is not in
// use.
//
// A goroutine that uses an entry without mu is a user, or holds the entry's lock, or found the
// entry in the field contended. users changes from 0 and to 0 only with mu held. Therefore a
// deleted entry that was not contended can serve another key.
//
// An entry becomes the contended entry when a goroutine is about to wait for it and is not its only
// user. Goroutines acquire and release the lock of the contended entry without mu, and without
// being users. A mutex and a count that all goroutines of a crowd change would cost the crowd more
// than the lock itself. Two rules make up for mu and the count:
//   - A contended entry never serves another key, and keeps its key. So a goroutine may compare the
//     key without mu. sweep deletes the entry by an acquisition of its lock that no goroutine
//     releases: the lock is retired. Either sweep or a goroutine without mu acquires the free lock.
//     A goroutine that comes after sweep finds the lock held and users 0, and begins anew with mu
//     held.
//   - A release frees the lock, and then reads users. The departure of the last user decrements
//     users, and then looks at the lock. So the later of the two finds the lock free and users 0,
//     and sweeps the entry, unless another goroutine has become a holder or a user. That goroutine
//     releases or departs later.
type shard[K comparable] struct {
	mu        sync.Mutex
	holder    int64                    // the goroutine that has the sole hold, or 0
	holds     int                      // how often holder has acquired it
	key       K                        // of the sole hold
	used      int                      // the number of entries in the chains
	contended atomic.Pointer[entry[K]] // in its chain, or nil; changed with mu held
	chains    []*entry[K]              // each links the entries of some hashes; none at first, then a power of 2
	spare     *entry[K]                // links the unused entries
	spares    int                      // the number of unused entries
	_         [32]byte                 // keeps the fields up to contended of two shards more than a cache line apart
}

type entry[K comparable] struct {
	next      *entry[K]
	hash      uint64
	key       K
	lock      *reentrant.Mutex
	users     atomic.Int64 // attempts and releases under way, and conditions
	described atomic.Bool  // deadlock detection, if there is any, knows the lock by its key
}

// New returns an empty set of locks that admit by p.
func New[K comparable](p locks.Policy) *Mutexes[K] { return &Mutexes[K]{policy: p} }

// Of returns the lock for key. Two locks of one key in one set are the same lock. Keys are equal
// as in a map[K]. Of panics if key is not equal to itself, as a NaN is not, because its lock
// could not be found again. It panics if K is an interface type and the value in it cannot be
// compared.
func (ms *Mutexes[K]) Of(key K) Mutex[K] {
	if key != key {
		panic("keyed: key is not equal to itself")
	}
	return Mutex[K]{ms, maphash.Comparable(seed, key), key}
}

// Len returns the number of locks that are held or waited for, or have a condition.
func (ms *Mutexes[K]) Len() int {
	n := 0
	for i := range ms.shards {
		s := &ms.shards[i]
		s.mu.Lock()
		n += s.used
		if s.holder != 0 {
			n++
		}
		s.mu.Unlock()
	}
	return n
}

// chain returns the start of the chain of hash. The shard must have chains.
func (s *shard[K]) chain(hash uint64) **entry[K] {
	return &s.chains[hash/shardCount&uint64(len(s.chains)-1)]
}

// find returns the pointer to l's entry in its chain. It returns the nil at the end of the chain if
// the chain lacks such an entry. The result is valid until mu is released or add is called. If the
// key is held alone, find moves this hold to an entry.
func (s *shard[K]) find(l *Mutex[K]) (at **entry[K]) {
	if s.chains == nil {
		s.chains = make([]*entry[K], minChains)
	}
	if s.holder != 0 && s.key == l.key {
		s.move(l)
	}
	at = s.chain(l.hash)
	for e := *at; e != nil && (e.hash != l.hash || e.key != l.key); e = *at {
		at = &e.next
	}
	return at
}

// leave gives back one of the holds of holder.
func (s *shard[K]) leave() {
	if s.holds--; s.holds == 0 {
		var none K
		s.holder, s.key = 0, none // the key may lead to memory
	}
}

// move moves the sole hold, which is of l's key, to an entry.
func (s *shard[K]) move(l *Mutex[K]) {
	e := s.add(s.chain(l.hash), l)
	r := attach.Reentrant(e.lock)
	r.TryLock(syncq.Owned(s.holder))
	r.Holds = int32(s.holds - 1)
	s.holds = 1
	s.leave()
}

// addUser counts one more user of l's entry, and makes the entry if it is missing. If lock is true,
// and the calling goroutine can acquire the lock at once, it holds the lock instead, and is no
// user. In this case the hold needs no entry if the key is not in use and the shard has room for a
// sole hold. If waits is true, the caller is about to wait.
func (s *shard[K]) addUser(l *Mutex[K], lock, waits bool) (e *entry[K], held bool) {
	if s.contended.Load() != nil {
		if e, held = s.useContended(l, lock, waits); held || e != nil {
			return e, held
		}
	}
	me := goid.Fast() // 0 if package deadlock has to know of each hold
	s.mu.Lock()
	if lock && me != 0 {
		if s.holder == 0 {
			if s.used == 0 || *s.find(l) == nil {
				s.holder, s.holds, s.key = me, 1, l.key
				s.mu.Unlock()
				return nil, true
			}
		} else if s.holder == me && s.key == l.key && s.holds < reentrant.MaxHolds {
			s.holds++
			s.mu.Unlock()
			return nil, true
		}
	}
	at := s.find(l)
	if e = *at; e == nil {
		e = s.add(at, l)
		if lock {
			e.lock.Lock()
			s.mu.Unlock()
			return nil, true
		}
	}
	if e.users.Add(1) > 1 && waits && s.contended.Load() == nil {
		s.contended.Store(e)
	}
	s.mu.Unlock()
	return e, false
}

// useContended is addUser for the contended entry. It does nothing if that entry is not l's, or is
// about to be swept. A goroutine that is about to wait spins before it becomes a user: in a crowd most
// acquisitions follow a spin.
func (s *shard[K]) useContended(l *Mutex[K], lock, waits bool) (e *entry[K], held bool) {
	if e = s.contended.Load(); e == nil || e.hash != l.hash || e.key != l.key {
		return nil, false
	}
	if me := goid.Fast(); lock && me != 0 {
		r, p := attach.Reentrant(e.lock), syncq.Owned(me)
		if r.LockOrReenter(me) || r.TryLock(p) || waits && r.Policy() == syncq.NonFair && r.Spin(p) {
			return nil, true
		}
	}
	for n := e.users.Load(); n > 0; n = e.users.Load() {
		if e.users.CompareAndSwap(n, n+1) {
			return e, false
		}
	}
	return nil, false
}

// unlockContended releases a hold of the calling goroutine if l's entry is the contended entry.
func (s *shard[K]) unlockContended(l *Mutex[K]) bool {
	e := s.contended.Load()
	if e == nil || e.hash != l.hash || e.key != l.key || e.lock.Owner() != current() {
		return false
	}
	e.lock.Unlock()
	if e.users.Load() == 0 && !e.lock.IsLocked() {
		s.mu.Lock()
		s.sweep(e)
		s.mu.Unlock()
	}
	return true
}

// add puts an entry for l's key at a place in its chain.
func (s *shard[K]) add(at **entry[K], l *Mutex[K]) *entry[K] {
	e := s.spareEntry(l.set.policy)
	e.hash, e.key, e.next = l.hash, l.key, *at
	*at = e
	if s.used++; s.used > len(s.chains) {
		s.resize(2 * len(s.chains))
	}
	return e
}

// spareEntry returns a spare entry or makes one.
func (s *shard[K]) spareEntry(p locks.Policy) *entry[K] {
	e := s.spare
	if e == nil {
		return &entry[K]{lock: reentrant.New(p)}
	}
	s.spare = e.next
	s.spares--
	return e
}

// dropUser counts one user of e less, and deletes e if it is not in use.
func (s *shard[K]) dropUser(e *entry[K]) {
	for n := e.users.Load(); n > 1; n = e.users.Load() {
		if e.users.CompareAndSwap(n, n-1) {
			return
		}
	}
	s.mu.Lock()
	e.users.Add(-1)
	s.sweep(e)
	s.mu.Unlock()
}

// sweep deletes e if it is not in use. e is in its chain, or its lock is retired. mu is held.
func (s *shard[K]) sweep(e *entry[K]) {
	contended := s.contended.Load() == e
	switch {
	case e.users.Load() != 0:
		return
	case !contended && e.lock.IsLocked():
		return
	case contended:
		// Only this swap decides, because goroutines without mu may acquire the lock.
		if !attach.Reentrant(e.lock).TryLock(syncq.Owned(goid.Get())) {
			return
		}
		s.contended.Store(nil)
	}
	at := s.chain(e.hash)
	for *at != e {
		at = &(*at).next
	}
	*at = e.next
	s.used--
	// Deadlock detection knows a described lock by its old key, which a report may be about to
	// read.
	if s.spares < spareEntries && !contended && !e.described.Load() {
		var none K
		e.key = none // the key may lead to memory
		s.spare, e.next = e, s.spare
		s.spares++
	}
	if len(s.chains) > shrinkAbove && s.used*shrinkFactor < len(s.chains) {
		s.resize(len(s.chains) / 2)
	}
}

// resize moves the entries to n chains.
func (s *shard[K]) resize(n int) {
	old := s.chains
	s.chains = make([]*entry[K], n)
	for _, e := range old {
		for e != nil {
			at, next := s.chain(e.hash), e.next
			*at, e.next = e, *at
			e = next
		}
	}
}

// describe tells deadlock detection the key of the lock. It must happen before each wait.
func (s *shard[K]) describe(e *entry[K]) {
	if e.described.Load() || !syncq.Watched() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !e.described.Load() {
		attach.Reentrant(e.lock).Describe(&syncq.Kind{Name: "keyed.Mutex", Key: e.key, Refusable: true})
		e.described.Store(true)
	}
}
