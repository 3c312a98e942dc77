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
// its holds: while the owner holds the lock, each of them may enter again, and the lock is free
// after as many releases, whichever goroutines make them.
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
	write  int       // exclusive holds
	by     []holdsOf // the same by the goroutine that acquired them
	read   int       // shared holds
	inside bool      // the Sync has a shared hold of the owner
	waits  []*attempt
}

// holdsOf is how many exclusive holds a goroutine acquired.
type holdsOf struct {
	goroutine int64
	n         int
}

// attempt is a wait of one goroutine.
type attempt struct {
	*node
	policy  Policy
	holds   holdsOf // to be counted when the wait ends well
	counted bool    // by claim
}

// Shares returns the layer for explicit owners.
func (s *Sync) Shares() *Shares {
	if x := s.shares.Load(); x != nil {
		return x
	}
	s.shares.CompareAndSwap(nil, &Shares{s: s, of: make(map[int64]*share)})
	return s.shares.Load()
}

// get returns owner's share.
func (x *Shares) get(owner int64) *share {
	sh := x.of[owner]
	if sh == nil {
		if sh = x.spare; sh == nil {
			sh = new(share)
		}
		x.spare, sh.owner = nil, owner
		x.of[owner] = sh
	}
	x.claim(sh)
	return sh
}

// put gives sh back, which goes if it says nothing.
func (x *Shares) put(sh *share) {
	if sh.write == 0 && sh.read == 0 && len(sh.waits) == 0 {
		delete(x.of, sh.owner)
		clear(sh.waits[:cap(sh.waits)])
		x.spare = sh
	}
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
			sh.add(a.holds)
		}
	}
}

// add counts exclusive holds.
func (sh *share) add(h holdsOf) {
	if h.n == 0 {
		return
	}
	sh.write += h.n
	for i := range sh.by {
		if sh.by[i].goroutine == h.goroutine {
			sh.by[i].n += h.n
			return
		}
	}
	sh.by = append(sh.by, h)
}

// take takes back one exclusive hold, if there is any: one that goroutine acquired, or another one.
func (sh *share) take(goroutine int64) {
	if len(sh.by) == 0 {
		return
	}
	at := 0
	for i := range sh.by {
		if sh.by[i].goroutine == goroutine {
			at = i
		}
	}
	sh.write--
	if sh.by[at].n--; sh.by[at].n == 0 {
		last := len(sh.by) - 1
		sh.by[at] = sh.by[last]
		sh.by = sh.by[:last]
	}
}

// enter counts one more hold of an owner that may enter again, or says why it may not. done is
// false if the owner has to ask the Sync.
func (sh *share) enter(isShared bool) (out Outcome, done bool) {
	switch {
	case sh.write == 0 && sh.read == 0:
		return 0, false
	case isShared && sh.read >= MaxHolds, !isShared && sh.write >= MaxHolds:
		return TooMany, true
	case isShared:
		sh.read++
	case sh.write == 0:
		return Upgrade, true
	default:
		sh.add(holdsOf{goid.Get(), 1})
	}
	return Acquired, true
}

// try asks the Sync without waiting. A barging try takes a lock that is not held; one that does not
// barge leaves it to the waiters.
func (x *Shares) try(sh *share, isShared, barge bool, policy Policy) bool {
	switch {
	case isShared && barge:
		sh.inside = x.s.TryLockShared()
	case isShared:
		sh.inside = x.s.TryLockSharedInTurn()
	case x.s.TryLock(Owned(sh.owner)) || x.s.TryLockUnread(Owned(sh.owner), policy):
		sh.add(holdsOf{goid.Get(), 1})
		x.admit(sh)
		return true
	default:
		return false
	}
	if sh.inside {
		sh.read = 1
		x.admit(sh)
	}
	return sh.inside
}

// admit lets in the waiters of an owner that holds the lock, as far as that lets them.
func (x *Shares) admit(sh *share) {
	for _, a := range sh.waits {
		switch {
		case sh.write == 0 && (sh.read == 0 || !a.shared):
		case a.shared && sh.read >= MaxHolds, !a.shared && a.holds.n > MaxHolds-sh.write:
		case !x.s.dismiss(a.node, a.policy):
		case a.shared:
			sh.read++
		default:
			sh.add(a.holds)
		}
	}
}

// arrive counts the holds of a, whose wait in the Sync is over, and reports how it ended.
func (x *Shares) arrive(sh *share, a *attempt, out Outcome) Outcome {
	sh.waits = slices.DeleteFunc(sh.waits, func(b *attempt) bool { return b == a })
	switch {
	case a.state == dismissed:
		return Acquired // and counted already
	case a.counted:
		x.admit(sh) // which claim could not, with the guard held
	case out != Acquired:
	case a.shared:
		if sh.inside {
			x.s.Unlock(a.policy) // another goroutine of the owner was as fast
		}
		sh.inside = true
		sh.read++
		x.admit(sh)
	default:
		sh.add(a.holds)
		x.admit(sh)
	}
	return out
}

// Lock takes an exclusive hold for p's owner, and waits for it until ctx ends.
func (x *Shares) Lock(ctx context.Context, p Party, policy Policy) Outcome {
	return x.lock(ctx, p, false, policy)
}

// LockShared takes a shared hold for p's owner, and waits for it until ctx ends.
func (x *Shares) LockShared(ctx context.Context, p Party, policy Policy) Outcome {
	return x.lock(ctx, p, true, policy)
}

func (x *Shares) lock(ctx context.Context, p Party, isShared bool, policy Policy) Outcome {
	x.mu.Lock()
	sh := x.get(p.who)
	if out, done := sh.enter(isShared); done || x.try(sh, isShared, false, policy) {
		x.put(sh)
		x.mu.Unlock()
		return out
	}
	a := x.begin(sh, p, isShared, policy)
	x.mu.Unlock()
	return x.end(sh, a, x.s.acquire(a.node, policy, park.Until(ctx)))
}

// begin enters a wait.
func (x *Shares) begin(sh *share, p Party, isShared bool, policy Policy) *attempt {
	a := &attempt{node: newNode(p, isShared)}
	a.policy = policy
	a.holds = holdsOf{a.goroutine, 1}
	sh.waits = append(sh.waits, a)
	return a
}

// end leaves a wait, and gives its node back.
func (x *Shares) end(sh *share, a *attempt, out Outcome) Outcome {
	x.mu.Lock()
	out = x.arrive(sh, a, out)
	x.put(sh)
	x.mu.Unlock()
	a.recycle()
	return out
}

// TryLock takes an exclusive hold for owner unless another owner has one. It barges.
func (x *Shares) TryLock(owner int64, policy Policy) Outcome { return x.tryLock(owner, false, policy) }

// TryLockShared takes a shared hold for owner unless another owner has an exclusive one. It barges.
func (x *Shares) TryLockShared(owner int64, policy Policy) Outcome {
	return x.tryLock(owner, true, policy)
}

func (x *Shares) tryLock(owner int64, isShared bool, policy Policy) Outcome {
	x.mu.Lock()
	defer x.mu.Unlock()
	sh := x.get(owner)
	defer x.put(sh)
	out, done := sh.enter(isShared)
	if !done && !x.try(sh, isShared, true, policy) {
		return Busy
	}
	return out
}

// Unlock gives back one exclusive hold of owner. With the last one the lock goes to the waiters, or
// is shared from then on if owner has shared holds.
func (x *Shares) Unlock(owner int64, policy Policy) Outcome {
	x.mu.Lock()
	defer x.mu.Unlock()
	sh := x.get(owner)
	defer x.put(sh)
	if sh.write == 0 {
		return NotHeld
	}
	sh.take(goid.Get())
	x.leaveWrite(sh, policy)
	return Acquired
}

// leaveWrite releases the exclusive hold that the Sync has of an owner without any left.
func (x *Shares) leaveWrite(sh *share, policy Policy) {
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
	x.mu.Lock()
	defer x.mu.Unlock()
	sh := x.get(owner)
	defer x.put(sh)
	if sh.read == 0 {
		return NotHeld
	}
	if sh.read--; sh.read == 0 && sh.inside {
		sh.inside = false
		x.s.Unlock(policy)
	}
	return Acquired
}

// Downgrade turns one exclusive hold of owner into a shared one, with no other holder in between.
func (x *Shares) Downgrade(owner int64, policy Policy) Outcome {
	x.mu.Lock()
	defer x.mu.Unlock()
	sh := x.get(owner)
	defer x.put(sh)
	switch {
	case sh.write == 0:
		return NotHeld
	case sh.read >= MaxHolds:
		return TooMany
	}
	sh.take(goid.Get())
	sh.read++
	x.leaveWrite(sh, policy)
	return Acquired
}

// Upgrade turns one shared hold of owner into an exclusive one if no other owner has any.
func (x *Shares) Upgrade(owner int64, policy Policy) Outcome {
	x.mu.Lock()
	defer x.mu.Unlock()
	sh := x.get(owner)
	defer x.put(sh)
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
	sh.add(holdsOf{goid.Get(), 1})
	x.admit(sh)
	return Acquired
}

// Wait gives up owner's exclusive holds, waits for a signal of c until ctx ends, and takes the same
// holds again. If the owner holds the lock when its wait ends, it has them at once. It reports
// whether a signal ended the wait.
func (x *Shares) Wait(ctx context.Context, c *Cond, p Party) (signalled bool, out Outcome) {
	x.mu.Lock()
	sh := x.get(p.who)
	switch {
	case sh.write == 0:
		out = NotHeld
	case sh.read > 0:
		out = Upgrade
	case sh.write > 1 && (len(sh.by) > 1 || sh.by[0].goroutine != goid.Get()):
		out = OthersHold
	}
	if out != Acquired {
		x.put(sh)
		x.mu.Unlock()
		return false, out
	}
	a := x.begin(sh, p, false, c.policy)
	a.holds = holdsOf{a.goroutine, sh.write}
	sh.write, sh.by = 0, sh.by[:0]
	l := park.Until(ctx)
	l.Open(&a.node.place)
	c.enter(a.node, drop)
	x.mu.Unlock()

	signalled, queued := c.awaitSignal(a.node, l)
	if queued && !signalled {
		x.mu.Lock()
		x.admit(sh) // another goroutine of the owner may have the lock
		x.mu.Unlock()
	}
	if queued {
		x.s.await(a.node, c.policy, nil)
	}
	l.Stop()
	return signalled, x.end(sh, a, Acquired)
}

// Signal is c's Signal, or Broadcast if all is set, by owner. Waiters of the same owner are let in.
func (x *Shares) Signal(c *Cond, owner int64, all bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if all {
		c.Broadcast()
	} else {
		c.Signal()
	}
	sh := x.get(owner)
	defer x.put(sh)
	x.admit(sh)
}

// WriteHolds returns how many exclusive holds owner has.
func (x *Shares) WriteHolds(owner int64) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if sh := x.of[owner]; sh != nil {
		return sh.write
	}
	return 0
}

// ReadHolds returns how many shared holds owner has.
func (x *Shares) ReadHolds(owner int64) int {
	x.mu.Lock()
	defer x.mu.Unlock()
	if sh := x.of[owner]; sh != nil {
		return sh.read
	}
	return 0
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
