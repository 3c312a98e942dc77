package syncq

import "github.com/jucgo/locks/internal/park"

// ReadWrite is the synchronizer of a read-write lock that knows its readers. Its methods keep the
// table of the goroutines that read: see readTable. The zero ReadWrite is free. It must not be
// copied.
//
// A goroutine that reads is in the table, unless it writes too: then its shared holds are covered,
// and their number is in the Reentrant. Explicit owners are not known here: see package shares.
type ReadWrite struct{ Reentrant }

// NewReadWrite is [New] for a ReadWrite.
func NewReadWrite(policy Policy) ReadWrite { return ReadWrite{NewReentrant(policy)} }

// readers returns the table, which it makes if there is none yet.
func (rw *ReadWrite) readers() *readTable {
	if t := rw.table.Load(); t != nil {
		return t
	}
	rw.table.CompareAndSwap(nil, newReadTable())
	return rw.table.Load()
}

// The methods below are for the fast paths of a goroutine, which must be inlined. The goroutine
// reads as the first reader or in its Slot, or is about to.

// ReadFirst takes a shared hold of a free lock for goroutine me. It fails if a party holds the
// lock, or if nobody has read so far.
func (rw *ReadWrite) ReadFirst(me int64) bool {
	t, w := rw.table.Load(), rw.Word.Load()
	if t == nil || !free(w) || !rw.Word.CompareAndSwap(w, w|flagShared|oneHold) {
		return false
	}
	t.firstReader.set(me)
	return true
}

// First returns the table to goroutine me if it is the first reader, or else nil.
func (rw *ReadWrite) First(me int64) *First {
	if t := rw.table.Load(); t != nil && t.firstReader.load() == me {
		return (*First)(t)
	}
	return nil
}

// LeaveFirst gives back the last hold of the first reader. If it reports false, UnlockShared must
// follow.
func (rw *ReadWrite) LeaveFirst(f *First) bool {
	f.firstReader.set(0)
	return rw.Word.TryFree(rw.Word.Load(), OneShared)
}

// Slot returns where goroutine o is if it reads and is not the first reader, or nil if nobody has
// read so far.
func (rw *ReadWrite) Slot(o int64) *Slot {
	if t := rw.table.Load(); t != nil {
		return t.slot(o)
	}
	return nil
}

// ReadSlot takes a shared hold for goroutine me, which has none, if the lock is biased to readers.
// b is its slot. If ReadSlot fails, ReadCounted must follow.
func (rw *ReadWrite) ReadSlot(b *Slot, me int64) bool {
	return rw.Biased() && b.take(me) && rw.Biased()
}

// ReadCounted takes a shared hold in the word for goroutine me, which has none. b is its slot. It
// fails if a party writes or waits, if b is in use, or if the bias ended during ReadSlot.
func (rw *ReadWrite) ReadCounted(b *Slot, me int64) bool {
	if b.owner.Load() == me {
		b.Free() // me has taken it too late
		rw.ReadersLeft()
		return false
	}
	w := rw.Word.Load()
	if !admitsReader(w) || b.owner.Load() != 0 || b.collided.Load() != 0 {
		return false
	}
	if !rw.Word.CompareAndSwap(w, (w|flagShared)+oneHold) {
		return false
	}
	rw.count(b, me)
	return true
}

// ReadersLeft gives the table's hold back if that is due, for a reader that has left the table.
func (rw *ReadWrite) ReadersLeft() {
	if rw.Word.Load()&(flagVisible|flagBiased) == flagVisible && rw.table.Load().empty() {
		rw.guarded(keep) // or a later reader will look as it leaves
	}
}

// count puts o, which has a shared hold in the word, in the table. It sets the bias if it is time
// for that.
func (rw *ReadWrite) count(b *Slot, o int64) {
	if !b.add(-o, 1) {
		return
	}
	if b.written != rw.queue.written {
		b.written, b.reads = rw.queue.written, 0
	}
	if b.reads++; b.reads >= unbiasedReads && rw.Word.bias() {
		b.reads = 0
	}
}

// unbiasedReads is how many counted reads of a slot, with no write between them, come before the
// bias. To set and revoke the bias takes some 200 ns. A read under the bias is some 5 ns shorter.
const unbiasedReads = 32

// Wrote counts a write of the goroutine that has the lock exclusively. Readers that find many reads
// since the last write set the bias. The writes of explicit owners are not counted, because several
// goroutines may have one hold. The write after a condition wait is not counted either: the write
// before the wait was.
func (rw *ReadWrite) Wrote() { rw.queue.written++ }

// WroteOnce is Wrote after LockOrReenter, unless LockOrReenter re-entered the lock.
func (rw *ReadWrite) WroteOnce() {
	if rw.Holds == 0 {
		rw.Wrote()
	}
}

// Covered reports whether the goroutine that holds the lock exclusively, which calls it, has shared
// holds as well.
func (rw *ReadWrite) Covered() bool { return rw.covered.own() > 0 }

// ReenterRead counts one more shared hold of goroutine o if it has one, or holds the lock
// exclusively. The outcome is Acquired, TooMany, or NotHeld.
func (rw *ReadWrite) ReenterRead(o int64) Outcome {
	had := 0
	if rw.HeldBy(o) {
		h := rw.covered.own()
		if h == MaxHolds {
			return TooMany
		}
		rw.covered.set(h + 1)
		return Acquired
	} else if t := rw.table.Load(); t != nil {
		had, _ = t.change(o, 1)
	}
	switch had {
	case 0:
		return NotHeld
	case MaxHolds:
		return TooMany
	}
	return Acquired
}

// AcquireRead takes a shared hold for p, a goroutine that has none, as AcquireShared does.
func (rw *ReadWrite) AcquireRead(p Party, l *park.Limit) Outcome {
	if rw.ReadFirst(p.who) || rw.readBiased(p.who) {
		return Acquired
	}
	out := rw.AcquireShared(p, l)
	if out == Acquired {
		rw.count(rw.readers().slot(p.who), p.who)
	}
	return out
}

// TryRead takes a shared hold for goroutine o, which has none, unless the lock is held exclusively.
// It barges.
func (rw *ReadWrite) TryRead(o int64) bool {
	if rw.ReadFirst(o) || rw.readBiased(o) {
		return true
	}
	ok := rw.TryLockShared()
	if ok {
		rw.count(rw.readers().slot(o), o)
	}
	return ok
}

// readBiased takes a shared hold for o under the table's if the lock is biased to readers.
func (rw *ReadWrite) readBiased(o int64) bool {
	if !rw.Biased() {
		return false
	}
	b := rw.readers().slot(o)
	b.add(o, 1)
	if rw.Biased() {
		return true
	}
	b.change(o, -1)
	rw.ReadersLeft()
	return false
}

// ReleaseRead gives one shared hold of goroutine o back. It reports false, and does nothing, if o
// has none.
func (rw *ReadWrite) ReleaseRead(o int64) bool {
	if rw.HeldBy(o) {
		h := rw.covered.own()
		if h > 0 {
			rw.covered.set(h - 1)
		}
		return h > 0
	}
	t := rw.table.Load()
	if t == nil {
		return false
	}
	had, counted := t.change(o, -1)
	switch {
	case had != 1:
	case counted:
		rw.UnlockShared()
	default:
		rw.ReadersLeft()
	}
	return had > 0
}

// Reenter is [Reentrant.Reenter]. The outcome is Upgrade if o reads and does not write.
func (rw *ReadWrite) Reenter(o int64) Outcome {
	out := rw.Reentrant.Reenter(o)
	if out == NotHeld && rw.ReadHolds(o) > 0 {
		return Upgrade
	}
	return out
}

// Release is [Reentrant.Release]. If o has shared holds as well, the last release makes the lock
// shared, without another exclusive holder in between. The shared holds move to the table.
func (rw *ReadWrite) Release(o int64) bool {
	switch {
	case !rw.HeldBy(o):
		return false
	case rw.Holds > 0:
		rw.Holds--
		return true
	case rw.Covered():
		return rw.uncover(o)
	}
	return rw.Unlock()
}

// uncover moves o's shared holds to the table, gives up its exclusive one, and returns true.
func (rw *ReadWrite) uncover(o int64) bool {
	rw.readers().slot(o).add(-o, int(rw.covered.own()))
	rw.covered.set(0)
	rw.ShareExclusive()
	return true
}

// Downgrade turns one exclusive hold of goroutine o into a shared hold, as Release does with the
// last exclusive hold. The outcome is Acquired or, with nothing done, NotHeld or TooMany.
func (rw *ReadWrite) Downgrade(o int64) Outcome {
	if !rw.HeldBy(o) {
		return NotHeld
	}
	h := rw.covered.own()
	if h == MaxHolds {
		return TooMany
	}
	rw.covered.set(h + 1)
	rw.Release(o)
	return Acquired
}

// Upgrade turns one shared hold of goroutine o into an exclusive hold, past the waiters, unless
// another party has a shared hold. The other shared holds of o stay shared. The outcome is
// Acquired, Busy, or NotHeld.
func (rw *ReadWrite) Upgrade(o int64) Outcome {
	if rw.HeldBy(o) {
		switch h := rw.covered.own(); {
		case h == 0:
			return NotHeld
		case rw.Holds >= MaxHolds-1:
			return Busy
		default:
			rw.covered.set(h - 1)
			rw.Holds++
			return Acquired
		}
	}
	t := rw.table.Load()
	if t == nil {
		return NotHeld
	}
	switch holds, counted := t.change(o, 0); {
	case holds == 0:
		return NotHeld
	case !rw.UpgradeOnly(o, counted):
		return Busy
	default:
		t.change(o, -holds)
		rw.covered.set(uint32(holds - 1))
		rw.Wrote()
		return Acquired
	}
}

// UpgradeOnly turns the shared holds of owner into an exclusive hold, unless another party has a
// shared hold. The argument counted says whether owner's shared holds are counted in the word, or
// are under the table's hold. The bias ends in any case.
func (rw *ReadWrite) UpgradeOnly(owner int64, counted bool) (ok bool) {
	rw.guard.Lock()
	wake, _ := rw.advance(revoke)
	for w := rw.Word.Load(); !ok && w>>flagBits == 1; w = rw.Word.Load() {
		if w&flagVisible == 0 != counted || w&flagVisible != 0 && rw.table.Load().moreThan(1) {
			break
		}
		ok = rw.Word.CompareAndSwap(w, Value(owner)|w&queueFlags)
	}
	rw.guard.Unlock()
	unpark(wake)
	return ok
}

// ReadHolds returns how many shared holds goroutine o has, to o itself.
func (rw *ReadWrite) ReadHolds(o int64) int {
	t := rw.table.Load()
	switch {
	case rw.HeldBy(o):
		return int(rw.covered.load())
	case t != nil:
		had, _ := t.change(o, 0)
		return had
	}
	return 0
}

// WriterReads returns the exclusive holder, or 0, and the number of its shared holds.
func (rw *ReadWrite) WriterReads() (owner int64, holds int) {
	if owner = rw.Owner(); owner != 0 {
		holds = int(rw.covered.load())
	}
	return owner, holds
}
