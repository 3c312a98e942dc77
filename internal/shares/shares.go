// Package shares lets goroutines share an explicit owner of a lock: a layer above the engine of
// package syncq, which knows one holder at a time.
package shares

import (
	"context"
	"math"
	"sync"

	"github.com/jucgo/locks/internal/burst"
	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/park"
	"github.com/jucgo/locks/internal/syncq"
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
//   - read > 0 and write == 0: the Sync has one shared hold of the owner (inside). While the
//     owner writes, the Sync does not know of its shared holds.
//
// The order of the two mutexes is mu, then the Sync's guard.
type Shares struct {
	s    *syncq.Sync
	mu   sync.Mutex
	of   map[int64]*share
	peak burst.Peak // of the map of

	spare *share // used again, so that an uncontended acquisition allocates nothing
}

// share has the holds that the goroutines of one owner share.
type share struct {
	owner  int64
	write  int           // exclusive holds
	by     map[int64]int // the same by the goroutine that acquired them
	read   int           // shared holds
	inside bool          // the Sync has a shared hold of the owner
	waits  []*attempt
	peak   burst.Peak // of by and waits, whichever was longer
}

// attempt is a wait of one goroutine.
type attempt struct {
	syncq.Waiter
	owner     int64
	goroutine int64
	isShared  bool
	at        int  // its index in waits
	holds     int  // to be counted when the wait ends well
	claimed   bool // its holds are counted, by claim
	dismissed bool // by admit, which has counted the holds
}

// Of returns the layer of the lock whose synchronizer is s.
func Of(s *syncq.Sync) *Shares {
	if x := peek(s); x != nil {
		return x
	}
	var x any = &Shares{s: s, of: make(map[int64]*share)}
	s.Shares.CompareAndSwap(nil, &x)
	return peek(s)
}

// peek returns the layer of s, or nil if no explicit owner has used the lock so far.
func peek(s *syncq.Sync) *Shares {
	if x := s.Shares.Load(); x != nil {
		return (*x).(*Shares)
	}
	return nil
}

// with calls do, with mu held, for owner's share, which goes if it says nothing afterwards.
func (x *Shares) with(owner int64, do func(sh *share) syncq.Outcome) syncq.Outcome {
	x.mu.Lock()
	defer x.mu.Unlock()
	sh := x.of[owner]
	if sh == nil {
		if sh = x.spare; sh == nil {
			sh = &share{by: make(map[int64]int)}
		}
		x.spare, sh.owner = nil, owner
		x.of[owner] = sh
		x.peak.Grew(len(x.of))
	}
	x.claim(sh)
	out := do(sh)
	if sh.write == 0 && sh.read == 0 && len(sh.waits) == 0 {
		delete(x.of, owner)
		if x.peak.IsOver(len(x.of)) {
			x.of = make(map[int64]*share)
		}
		if !sh.peak.IsOver(0) {
			x.spare = sh
		}
	}
	return out
}

// claim counts the holds of a waiter that was granted the lock and has not counted them yet.
func (x *Shares) claim(sh *share) {
	if sh.write > 0 || !x.s.HeldBy(sh.owner) {
		return
	}
	for _, a := range sh.waits {
		if !a.isShared && !a.claimed && a.Granted() {
			a.claimed = true
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
	sh.peak.Grew(len(sh.by))
}

// full reports whether n more holds would be too many.
func (sh *share) full(isShared bool, n int) bool {
	return isShared && n > syncq.MaxHolds-sh.read || !isShared && n > syncq.MaxHolds-sh.write
}

// take takes back one exclusive hold: a hold that goroutine acquired, or else a hold of another
// goroutine.
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

// reenter counts one more hold of an owner that already has a hold, or says why it must not. If
// done is false, the owner must ask the Sync. Then out is the outcome if the Sync agrees.
func (sh *share) reenter(isShared bool) (out syncq.Outcome, done bool) {
	switch {
	case sh.write == 0 && sh.read == 0:
		return syncq.Acquired, false
	case sh.write == 0 && !isShared:
		return syncq.Upgrade, true
	case sh.full(isShared, 1):
		return syncq.TooMany, true
	}
	sh.count(isShared, goid.Get(), 1)
	return syncq.Acquired, true
}

// try asks the Sync without waiting. A barging try takes a lock that is not held; a try that does
// not barge leaves it to the waiters.
func (x *Shares) try(sh *share, isShared, barge bool) (ok bool) {
	switch p := syncq.Owned(sh.owner); {
	case !isShared:
		ok = x.s.TryLock(p) || x.s.TryLockUnread(p)
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

// admit lets in the waiters of an owner that holds the lock, as far as the owner's holds admit
// them.
func (x *Shares) admit(sh *share) {
	for _, a := range sh.waits {
		may := sh.write > 0 || sh.read > 0 && a.isShared
		if may && !sh.full(a.isShared, a.holds) && a.Dismiss() {
			a.dismissed = true
			sh.count(a.isShared, a.goroutine, a.holds)
		}
	}
}

// arrive counts the holds of a, whose wait in the Sync is over, and reports how it ended.
func (x *Shares) arrive(sh *share, a *attempt, out syncq.Outcome) syncq.Outcome {
	sh.remove(a)
	switch {
	case a.dismissed:
		return syncq.Acquired // and counted already
	case out != syncq.Acquired:
		return out
	case a.isShared && sh.inside:
		x.s.Unlock() // another goroutine of the owner was as fast, and has admitted the others
		sh.count(true, a.goroutine, a.holds)
		return syncq.Acquired
	case a.isShared:
		sh.inside = true
	}
	if !a.claimed {
		sh.count(a.isShared, a.goroutine, a.holds)
	}
	x.admit(sh)
	return syncq.Acquired
}

// Lock takes an exclusive or a shared hold for p's owner, and waits for it until ctx ends.
func (x *Shares) Lock(ctx context.Context, p syncq.Party, isShared bool) syncq.Outcome {
	var a *attempt
	l := park.Until(ctx)
	out := x.with(p.Owner(), func(sh *share) syncq.Outcome {
		out, done := sh.reenter(isShared)
		if done || x.try(sh, isShared, false) {
			return out
		}
		a = sh.begin(x.s.NewWaiter(p, isShared, l), isShared, 1)
		return syncq.Busy
	})
	if a == nil {
		return out
	}
	return x.end(a, a.Acquire())
}

// begin adds w, the wait of the calling goroutine for a number of holds.
func (sh *share) begin(w syncq.Waiter, isShared bool, holds int) *attempt {
	a := &attempt{
		Waiter: w, owner: sh.owner, goroutine: goid.Get(), isShared: isShared, at: len(sh.waits), holds: holds,
	}
	sh.waits = append(sh.waits, a)
	sh.peak.Grew(len(sh.waits))
	return a
}

// remove removes a from waits, which are in no order.
func (sh *share) remove(a *attempt) {
	last := len(sh.waits) - 1
	moved := sh.waits[last]
	sh.waits[a.at], moved.at = moved, a.at
	sh.waits[last] = nil
	sh.waits = sh.waits[:last]
}

// end removes a, whose wait in the Sync ended with out, and reports how it ended for its owner.
func (x *Shares) end(a *attempt, out syncq.Outcome) syncq.Outcome {
	out = x.with(a.owner, func(sh *share) syncq.Outcome { return x.arrive(sh, a, out) })
	a.End()
	return out
}

// TryLock takes an exclusive or a shared hold for owner, unless another owner has a hold that
// excludes it. It barges.
func (x *Shares) TryLock(owner int64, isShared bool) syncq.Outcome {
	return x.with(owner, func(sh *share) syncq.Outcome {
		out, done := sh.reenter(isShared)
		if !done && !x.try(sh, isShared, true) {
			return syncq.Busy
		}
		return out
	})
}

// Unlock gives back one exclusive hold of owner. With the last exclusive hold the lock goes to
// the waiters. If owner has shared holds, the lock is shared from then on.
func (x *Shares) Unlock(owner int64) syncq.Outcome {
	return x.with(owner, func(sh *share) syncq.Outcome {
		if sh.write == 0 {
			return syncq.NotHeld
		}
		x.releaseWrite(sh)
		return syncq.Acquired
	})
}

// releaseWrite drops one exclusive hold. With the last exclusive hold it also releases the Sync, or
// keeps the Sync for the owner's shared holds.
func (x *Shares) releaseWrite(sh *share) {
	sh.take(goid.Get())
	switch {
	case sh.write > 0:
	case sh.read > 0:
		sh.inside = true
		x.s.ShareExclusive()
	default:
		x.s.Unlock()
	}
}

// UnlockShared gives back one shared hold of owner.
func (x *Shares) UnlockShared(owner int64) syncq.Outcome {
	return x.with(owner, func(sh *share) syncq.Outcome {
		if sh.read == 0 {
			return syncq.NotHeld
		}
		if sh.read--; sh.read == 0 && sh.inside {
			sh.inside = false
			x.s.Unlock()
		}
		return syncq.Acquired
	})
}

// Downgrade turns one exclusive hold of owner into a shared one, with no other holder in between.
func (x *Shares) Downgrade(owner int64) syncq.Outcome {
	return x.with(owner, func(sh *share) syncq.Outcome {
		switch {
		case sh.write == 0:
			return syncq.NotHeld
		case sh.read >= syncq.MaxHolds:
			return syncq.TooMany
		}
		sh.read++
		x.releaseWrite(sh)
		return syncq.Acquired
	})
}

// Upgrade turns one shared hold of owner into an exclusive one if no other owner has any. rw is the
// lock.
func (x *Shares) Upgrade(rw *syncq.ReadWrite, owner int64) syncq.Outcome {
	return x.with(owner, func(sh *share) syncq.Outcome {
		switch {
		case sh.read == 0:
			return syncq.NotHeld
		case sh.write >= syncq.MaxHolds:
			return syncq.TooMany
		case sh.write == 0 && !rw.UpgradeOnly(owner, true):
			return syncq.Busy
		}
		sh.inside = false
		sh.read--
		sh.count(false, goid.Get(), 1)
		x.admit(sh)
		return syncq.Acquired
	})
}

// Wait gives up the exclusive holds of p's owner, waits for a signal of c until ctx ends, and takes
// the same holds again. If the owner holds the lock when its wait ends, it has them at once. Wait
// reports whether a signal ended the wait.
func (x *Shares) Wait(ctx context.Context, c *syncq.Cond, p syncq.Party) (signalled bool, out syncq.Outcome) {
	var a *attempt
	l := park.Until(ctx)
	out = x.with(p.Owner(), func(sh *share) syncq.Outcome {
		switch {
		case sh.write == 0:
			return syncq.NotHeld
		case sh.read > 0:
			return syncq.Upgrade
		case sh.write > 1 && sh.by[goid.Get()] < sh.write:
			return syncq.OthersHold
		}
		a = sh.begin(c.NewWaiter(p, l), false, sh.write)
		sh.write = 0
		clear(sh.by)
		a.Enqueue(true)
		return syncq.Acquired
	})
	if a == nil {
		return false, out
	}
	signalled, queued := a.AwaitSignal()
	if queued && !signalled {
		// Another goroutine of the owner may have the lock.
		x.with(p.Owner(), func(sh *share) syncq.Outcome { x.admit(sh); return syncq.Acquired })
	}
	if queued {
		a.AwaitLock()
	}
	return signalled, x.end(a, syncq.Acquired)
}

// Signal is c's Signal, or Broadcast if all is set, by owner. Waiters of the same owner are let in.
func (x *Shares) Signal(c *syncq.Cond, owner int64, all bool) {
	x.with(owner, func(sh *share) syncq.Outcome {
		if all {
			c.Broadcast()
		} else {
			c.Signal()
		}
		x.admit(sh)
		return syncq.Acquired
	})
}

// Holds returns how many exclusive and how many shared holds owner has.
func (x *Shares) Holds(owner int64) (write, read int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if sh := x.of[owner]; sh != nil {
		x.claim(sh)
		return sh.write, sh.read
	}
	return 0, 0
}

// WriteHolds returns how many exclusive holds owner has of the lock of r, to owner itself. The
// owner may be a goroutine.
func WriteHolds(r *syncq.Reentrant, owner int64) int {
	if owner > 0 {
		return r.HoldCount(owner)
	}
	if x := peek(&r.Sync); x != nil {
		write, _ := x.Holds(owner)
		return write
	}
	return 0
}

// ReadHolds returns how many shared holds owner has of the lock of rw, to owner itself. The owner
// may be a goroutine.
func ReadHolds(rw *syncq.ReadWrite, owner int64) int {
	if owner > 0 {
		return rw.ReadHolds(owner)
	}
	if x := peek(&rw.Sync); x != nil {
		_, read := x.Holds(owner)
		return read
	}
	return 0
}

// ReadCount returns how many shared holds of the lock there are, of all owners, or the greatest int
// if they are more.
func ReadCount(rw *syncq.ReadWrite) int {
	_, holds := rw.WriterReads()
	n := int64(holds)
	eachReader(&rw.Sync, func(_ int64, holds int) { n += int64(holds) })
	return int(min(n, math.MaxInt))
}

// Readers returns the owners that have shared holds of the lock, in no order.
func Readers(rw *syncq.ReadWrite) []int64 {
	o, holds := rw.WriterReads()
	who := Holders(&rw.Sync)
	if holds > 0 {
		who = append(who, o)
	}
	return who
}

// Holders is [Readers] while no goroutine holds the lock exclusively: see [syncq.Kind].
func Holders(s *syncq.Sync) (who []int64) {
	eachReader(s, func(o int64, _ int) { who = append(who, o) })
	return who
}

func eachReader(s *syncq.Sync, visit func(owner int64, holds int)) {
	if x := peek(s); x != nil {
		x.eachReader(visit)
	}
	s.EachReader(visit)
}

// eachReader calls visit for the explicit owners that have shared holds.
func (x *Shares) eachReader(visit func(owner int64, holds int)) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for owner, sh := range x.of {
		if sh.read > 0 {
			visit(owner, sh.read)
		}
	}
}
