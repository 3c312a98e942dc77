package syncq

// Reentrant is the synchronizer of a lock whose exclusive holder may be a goroutine that re-enters
// it. The Reentrant counts the holds of that goroutine, and the word names the goroutine. The zero
// Reentrant is free. It must not be copied.
//
// An explicit owner holds the Sync alone, and has its counts in package shares.
type Reentrant struct {
	Sync

	// Holds counts the re-entries of the goroutine that holds the lock exclusively, beyond its
	// first hold. Only that goroutine may touch it. A condition wait saves and restores it.
	Holds int32

	// covered counts the shared holds of the same goroutine, in a [ReadWrite]. It is here because
	// there is room: a lock takes 64 bytes.
	covered count
}

// NewReentrant is [New] for a Reentrant.
func NewReentrant(policy Policy) Reentrant {
	return Reentrant{Sync: New(policy)}
}

// LockOrReenter takes a lock that is free and that nobody waits for, or counts one more hold if
// owner, a goroutine, has the lock already. It may fail in other cases.
func (r *Reentrant) LockOrReenter(owner int64) bool {
	w := r.Word.Load()
	if w == 0 && r.Word.CompareAndSwap(0, Value(owner)) {
		return true
	}
	if Names(w, owner) && r.Holds < MaxHolds-1 {
		r.Holds++
		return true
	}
	return false
}

// Reenter counts one more hold of owner, a goroutine, if it has the lock exclusively. The outcome
// is Acquired, TooMany, or NotHeld.
func (r *Reentrant) Reenter(owner int64) Outcome {
	switch {
	case !r.HeldBy(owner):
		return NotHeld
	case r.Holds >= MaxHolds-1:
		return TooMany
	}
	r.Holds++
	return Acquired
}

// Release gives back one exclusive hold of owner, a goroutine. With the last hold, the lock goes to
// the waiters as the policy says. Release reports false, and does nothing, if owner does not hold
// the lock exclusively.
func (r *Reentrant) Release(owner int64) bool {
	switch {
	case !r.HeldBy(owner):
		return false
	case r.Holds > 0:
		r.Holds--
		return true
	}
	return r.Unlock()
}

// HoldCount returns how many exclusive holds goroutine o has, to o itself.
func (r *Reentrant) HoldCount(o int64) int {
	if !r.HeldBy(o) {
		return 0
	}
	return int(r.Holds) + 1
}

// NewCond returns a condition of the lock. A wait for it gives up all exclusive holds.
func (r *Reentrant) NewCond() *Cond { return &Cond{s: &r.Sync, r: r} }
