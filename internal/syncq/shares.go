package syncq

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/park"
)

// MaxHolds is how many exclusive holds, and how many shared ones, an owner may have at a time.
const MaxHolds = math.MaxInt32

// explicit reports whether owner is an explicit one, which may act in several goroutines at once.
func explicit(owner int64) bool { return owner < 0 }

// Outcome is how an acquisition ended, or another operation of an explicit owner.
type Outcome uint8

const (
	Acquired   Outcome = iota
	Busy               // TryLock: another owner holds the lock
	Ended              // the limit ended first
	Refused            // the wait would have closed a cycle
	TooMany            // the owner has MaxHolds already
	Upgrade            // the owner reads and asks to write
	NotHeld            // the owner has no such hold
	OthersHold         // a wait would give up holds that other goroutines of the owner acquired
)

// Shares is the layer above a Sync for explicit owners. The goroutines that share an owner share
// its holds. While the owner holds the lock, each of them may acquire it again. The lock is free
// after as many releases, by any of them.
//
// The owner has a count of its own here, and asks the Sync once: for its first exclusive hold, and
// for its first shared one. Everything happens with mu held, except for the wait in the Sync's
// queue. Several goroutines of an owner may wait there at a time. When the owner gets the lock, a
// hold is counted for each of them that may come in with it, and the Sync dismisses these waiters.
//
// With mu held:
//
//   - write > 0: the Sync's word names the owner.
//   - The word names the owner, and write is 0: a waiter was granted the lock, and is about to
//     count its holds (arrive). Another goroutine of the owner that comes first counts them
//     (claim).
//   - read > 0 and write == 0: the Sync has one shared hold of the owner (inside). While the owner
//     writes, its shared holds are no concern of the Sync.
//
// The order of the two mutexes is mu, then the Sync's guard.
type Shares struct {
	s  *Sync
	mu sync.Mutex
	of map[int64]*share

	spare *share // used again, so that an uncontended acquisition allocates nothing
}

// share is what the goroutines of one owner share.
type share struct {
	owner  int64
	write  int           // exclusive holds
	by     map[int64]int // the same by the goroutine that acquired them
	read   int           // shared holds
	inside bool          // the Sync has a shared hold of the owner
	waits  []*attempt
}

// attempt is a wait of one goroutine.
type attempt struct {
	*node
	policy  Policy
	holds   int  // to be counted when the wait ends well
	counted bool // by claim
}

// Shares returns the layer for explicit owners.
func (s *Sync) Shares() *Shares {
	if x := s.shares.Load(); x != nil {
		return x
	}
	s.shares.CompareAndSwap(nil, &Shares{s: s, of: make(map[int64]*share)})
	return s.shares.Load()
}

// with calls do, with mu held, for owner's share, which goes if it says nothing afterwards.
func (x *Shares) with(owner int64, do func(sh *share) Outcome) Outcome {
	x.mu.Lock()
	defer x.mu.Unlock()
	sh := x.of[owner]
	if sh == nil {
		if sh = x.spare; sh == nil {
			sh = &share{by: make(map[int64]int)}
		}
		x.spare, sh.owner = nil, owner
		x.of[owner] = sh
	}
	x.claim(sh)
	out := do(sh)
	if sh.write == 0 && sh.read == 0 && len(sh.waits) == 0 {
		delete(x.of, owner)
		clear(sh.waits[:cap(sh.waits)])
		x.spare = sh
	}
	return out
}

// claim counts the holds of a waiter that was granted the lock and has not counted them yet.
func (x *Shares) claim(sh *share) {
	if sh.write > 0 || !x.s.HeldBy(sh.owner) {
		return
	}
	x.s.guard.Lock()
	defer x.s.guard.Unlock()
	for _, a := range sh.waits {
		if !a.shared && !a.counted && a.state == granted {
			a.counted = true
			sh.count(false, a.goroutine, a.holds)
		}
	}
}

// count counts n more holds, which goroutine acquired.
func (sh *share) count(isShared bool, goroutine int64, n int) {
	if isShared {
		sh.read += n
		return
	}
	sh.write += n
	sh.by[goroutine] += n
}

// full reports whether n more holds would be too many.
func (sh *share) full(isShared bool, n int) bool {
	return isShared && n > MaxHolds-sh.read || !isShared && n > MaxHolds-sh.write
}

// take takes back one exclusive hold: one that goroutine acquired, or else another one.
func (sh *share) take(goroutine int64) {
	if sh.by[goroutine] == 0 {
		for goroutine = range sh.by {
			break
		}
	}
	sh.write--
	if sh.by[goroutine]--; sh.by[goroutine] == 0 {
		delete(sh.by, goroutine)
	}
}

// enter counts one more hold of an owner that may enter again, or says why it may not. done is
// false if the owner has to ask the Sync.
func (sh *share) enter(isShared bool) (out Outcome, done bool) {
	switch {
	case sh.write == 0 && sh.read == 0:
		return 0, false
	case sh.write == 0 && !isShared:
		return Upgrade, true
	case sh.full(isShared, 1):
		return TooMany, true
	}
	sh.count(isShared, goid.Get(), 1)
	return Acquired, true
}

// try asks the Sync without waiting. A barging try takes a lock that is not held; one that does not
// barge leaves it to the waiters.
func (x *Shares) try(sh *share, isShared, barge bool, policy Policy) (ok bool) {
	switch p := Owned(sh.owner); {
	case !isShared:
		ok = x.s.TryLock(p) || x.s.TryLockUnread(p, policy)
	case barge:
		ok = x.s.TryLockShared()
	default:
		ok = x.s.TryLockSharedInTurn()
	}
	if ok {
		sh.inside = isShared
		sh.count(isShared, goid.Get(), 1)
		x.admit(sh)
	}
	return ok
}

// admit lets in the waiters of an owner that holds the lock, as far as that lets them.
func (x *Shares) admit(sh *share) {
	for _, a := range sh.waits {
		may := sh.write > 0 || sh.read > 0 && a.shared
		if may && !sh.full(a.shared, a.holds) && x.s.dismiss(a.node, a.policy) {
			sh.count(a.shared, a.goroutine, a.holds)
		}
	}
}

// arrive counts the holds of a, whose wait in the Sync is over, and reports how it ended.
func (x *Shares) arrive(sh *share, a *attempt, out Outcome) Outcome {
	sh.waits = slices.DeleteFunc(sh.waits, func(b *attempt) bool { return b == a })
	switch {
	case a.state == dismissed:
		return Acquired // and counted already
	case out != Acquired:
		return out
	case a.shared && sh.inside:
		x.s.Unlock(a.policy) // another goroutine of the owner was as fast
	case a.shared:
		sh.inside = true
	}
	if !a.counted {
		sh.count(a.shared, a.goroutine, a.holds)
	}
	x.admit(sh) // which claim could not, with the guard held
	return Acquired
}

// Lock takes an exclusive or a shared hold for p's owner, and waits for it until ctx ends.
func (x *Shares) Lock(ctx context.Context, p Party, isShared bool, policy Policy) Outcome {
	var a *attempt
	out := x.with(p.who, func(sh *share) Outcome {
		out, done := sh.enter(isShared)
		if !done && !x.try(sh, isShared, false, policy) {
			a = sh.begin(p, isShared, 1, policy)
		}
		return out
	})
	if a == nil {
		return out
	}
	return x.end(a, x.s.acquire(a.node, policy, park.Until(ctx)))
}

// begin enters a wait for holds.
func (sh *share) begin(p Party, isShared bool, holds int, policy Policy) *attempt {
	a := &attempt{node: newNode(p, isShared), policy: policy, holds: holds}
	sh.waits = append(sh.waits, a)
	return a
}

// end leaves a wait, and gives its node back.
func (x *Shares) end(a *attempt, out Outcome) Outcome {
	out = x.with(a.who, func(sh *share) Outcome { return x.arrive(sh, a, out) })
	a.recycle()
	return out
}

// TryLock takes an exclusive or a shared hold for owner, unless another owner has a hold that
// excludes it. It barges.
func (x *Shares) TryLock(owner int64, isShared bool, policy Policy) Outcome {
	return x.with(owner, func(sh *share) Outcome {
		out, done := sh.enter(isShared)
		if !done && !x.try(sh, isShared, true, policy) {
			return Busy
		}
		return out
	})
}

// Unlock gives back one exclusive hold of owner. With the last one the lock goes to the waiters, or
// is shared from then on if owner has shared holds.
func (x *Shares) Unlock(owner int64, policy Policy) Outcome {
	return x.with(owner, func(sh *share) Outcome {
		if sh.write == 0 {
			return NotHeld
		}
		x.leaveWrite(sh, policy)
		return Acquired
	})
}

// leaveWrite gives back one exclusive hold, and with the last one that which the Sync has of the
// owner.
func (x *Shares) leaveWrite(sh *share, policy Policy) {
	sh.take(goid.Get())
	switch {
	case sh.write > 0:
	case sh.read > 0:
		sh.inside = true
		x.s.guarded(policy, func(uint64) (uint64, bool) { return one | shared, true })
	default:
		x.s.Unlock(policy)
	}
}

// UnlockShared gives back one shared hold of owner.
func (x *Shares) UnlockShared(owner int64, policy Policy) Outcome {
	return x.with(owner, func(sh *share) Outcome {
		if sh.read == 0 {
			return NotHeld
		}
		if sh.read--; sh.read == 0 && sh.inside {
			sh.inside = false
			x.s.Unlock(policy)
		}
		return Acquired
	})
}

// Downgrade turns one exclusive hold of owner into a shared one, with no other holder in between.
func (x *Shares) Downgrade(owner int64, policy Policy) Outcome {
	return x.with(owner, func(sh *share) Outcome {
		switch {
		case sh.write == 0:
			return NotHeld
		case sh.read >= MaxHolds:
			return TooMany
		}
		sh.read++
		x.leaveWrite(sh, policy)
		return Acquired
	})
}

// Upgrade turns one shared hold of owner into an exclusive one if no other owner has any.
func (x *Shares) Upgrade(owner int64, policy Policy) Outcome {
	return x.with(owner, func(sh *share) Outcome {
		switch {
		case sh.read == 0:
			return NotHeld
		case sh.write >= MaxHolds:
			return TooMany
		case sh.write == 0 && !x.s.upgradeOnly(owner, policy):
			return Busy
		}
		sh.inside = false
		sh.read--
		sh.count(false, goid.Get(), 1)
		x.admit(sh)
		return Acquired
	})
}

// Wait gives up owner's exclusive holds, waits for a signal of c until ctx ends, and takes the same
// holds again. If the owner holds the lock when its wait ends, it has them at once. It reports
// whether a signal ended the wait.
func (x *Shares) Wait(ctx context.Context, c *Cond, p Party) (signalled bool, out Outcome) {
	var a *attempt
	l := park.Until(ctx)
	out = x.with(p.who, func(sh *share) Outcome {
		switch {
		case sh.write == 0:
			return NotHeld
		case sh.read > 0:
			return Upgrade
		case sh.write > 1 && sh.by[goid.Get()] < sh.write:
			return OthersHold
		}
		a = sh.begin(p, false, sh.write, c.policy)
		sh.write = 0
		clear(sh.by)
		l.Open(&a.node.place)
		c.enter(a.node, drop)
		return Acquired
	})
	if a == nil {
		return false, out
	}
	signalled, queued := c.awaitSignal(a.node, l)
	if queued && !signalled {
		// Another goroutine of the owner may have the lock.
		x.with(p.who, func(sh *share) Outcome { x.admit(sh); return Acquired })
	}
	if queued {
		x.s.await(a.node, c.policy, nil)
	}
	l.Stop()
	return signalled, x.end(a, Acquired)
}

// Signal is c's Signal, or Broadcast if all is set, by owner. Waiters of the same owner are let in.
func (x *Shares) Signal(c *Cond, owner int64, all bool) {
	x.with(owner, func(sh *share) Outcome {
		if all {
			c.Broadcast()
		} else {
			c.Signal()
		}
		x.admit(sh)
		return Acquired
	})
}

// Holds returns how many exclusive and how many shared holds owner has.
func (x *Shares) Holds(owner int64) (write, read int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if sh := x.of[owner]; sh != nil {
		return sh.write, sh.read
	}
	return 0, 0
}

// eachReader calls visit for the owners that have shared holds.
func (x *Shares) eachReader(visit func(owner int64, holds int)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for owner, sh := range x.of {
		if sh.read > 0 {
			visit(owner, sh.read)
		}
	}
}
