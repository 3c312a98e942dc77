package syncq

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/jucgo/locks/internal/park"
)

// readTable has the shared holds of goroutines, with a hold count for each. While a lock is biased
// to readers, their holds cost other readers nothing: visible readers, after BRAVO (Dice and Kogan,
// USENIX ATC 2019).
//
// Each reader is in the table: the first reader, if there is one, in a place of its own, the others
// in the slot that their goroutine hashes to. There are two kinds:
//
//   - A counted reader has a shared hold of its own in the word. The table only says who it is. The
//     first reader is counted.
//   - All other readers have one shared hold in the word together, the table's, for which
//     flagVisible stands. While flagBiased is set, a newcomer only has to be in the table to read.
//     A reader only has to leave it. Neither changes the word.
//
// All other shared holds in the word are those of explicit owners, and of counted readers that are
// about to enter the table.
//
//	visible biased
//	0       0       nobody reads by the table's hold; readers in it are counted, or about to see
//	                that
//	1       1       readers in the table that are not counted read; the queue is empty
//	1       0       the readers that were in the table when flagBiased was cleared read; the last
//	                one of them gives the table's hold back; new readers are counted
//
// A counted reader sets both, on a word that has neither and no waiters. The flag flagBiased is
// cleared with the guard held. The flag flagVisible is cleared with the guard held, on a word
// without flagBiased, once the table was found empty after flagBiased was cleared. Counted readers
// do not matter there.
//
// How a bias is revoked, and why that misses nobody:
//
//  1. A reader enters the table, and then looks for flagBiased. If that is set, it reads. Else it
//     leaves the table again, and is counted, or goes to the queue.
//  2. A writer clears flagBiased, and then looks into the table. With 1 one of the two sees the
//     other.
//  3. If the writer finds the table empty, it gives the table's hold back (advance with dropTable).
//     With the guard held nobody clears flagVisible, and nobody sets flagBiased on a word with it.
//     So the hold that it drops is the one that it found unused.
//  4. If it finds readers, it waits in the queue. Each reader that leaves the table finds
//     flagBiased gone, and looks into the table as well (ReadersLeft). The last one finds it empty,
//     and does 3.
//  5. New readers find a word without flagBiased. They are counted, or queue. Those that the queue
//     admits are counted.
//
// The exclusive holder's own shared holds are not in the table: nobody else can have any. They
// are in Sync.covered, and are counted when the exclusive hold ends.
//
// The first reader is a goroutine that found the lock free, and the table there, and made the lock
// shared (ReadFirst). It sets firstReader by a plain store, because no other goroutine writes that
// field at the time. The value of the word goes from 0 to 1 once, until it is 0 again. The first
// reader sets the field after that step. It clears the field before it gives back its hold, so
// before the value can be 0 again. The swaps of the word order the clear before the next set. A
// goroutine compares the field with itself. It may see an old value, but never itself, because it
// has cleared that. Two others read the field: an inspection, which may be out of date, and a
// goroutine that acts for another one's owner, which the program has to order after that one.
// Java's ReentrantReadWriteLock has a firstReader for the same reason.
//
// The bias pays if several goroutines read at a time, and many times between two writes. The
// readers see that: each counts its slot's reads since the last write (Wrote, unbiasedReads). The
// first reader is in no slot. So reads that find the lock free never bias it.
type readTable struct {
	firstReader reader // or 0; leads, to be aligned
	slots       []Slot // a power of 2

	_         [32]byte // each reader reads the two above
	reentries          // of the first reader
	_         [60]byte
}

// First is a read table to its first reader.
type First readTable

// reentries counts the holds of a goroutine beyond its first, for that goroutine.
type reentries struct{ count }

// Reenter counts one more hold, unless there are too many.
func (h *reentries) Reenter() bool {
	n := h.own()
	if n == MaxHolds-1 {
		return false
	}
	h.set(n + 1)
	return true
}

// Release gives back a hold if there is more than one.
func (h *reentries) Release() bool {
	n := h.own()
	if n == 0 {
		return false
	}
	h.set(n - 1)
	return true
}

// change adds by to the holds, of which it leaves at most MaxHolds. It returns how many there were,
// and whether any are left.
func (h *reentries) change(by int) (had int, left bool) {
	had = int(h.own()) + 1
	now := min(int64(had)+int64(by), MaxHolds)
	h.set(uint32(max(now-1, 0)))
	return had, now > 0
}

// Slot is where the readers of one hash are. Its exported methods are what a lock's fast paths are
// made of. They are for a goroutine.
type Slot struct {
	owner     atomic.Int64 // the goroutine that has the slot, negated if it is counted, or 0
	reentries              // of it

	// These are for a counted goroutine that has the slot.
	reads   uint32 // counted reads of the slot since the last write or bias
	written uint16 // the lock's number of writes at the last of them

	// Readers that found the slot taken.
	collided atomic.Int64 // how many under the table's hold, and in the upper half how many counted
	mu       sync.Mutex
	others   map[int64]int // their holds; guarded by mu

	_ [16]byte // a cache line to each
}

// newReadTable returns a table for as many readers as can run at once, with room to spare.
func newReadTable() *readTable {
	n := 4
	for procs := runtime.GOMAXPROCS(0); n < 4*procs && n < 64; n *= 2 {
	}
	return &readTable{slots: make([]Slot, n)}
}

// slot returns o's. Ids that follow each other, as those of a group of workers do, lie far apart
// (Fibonacci hashing, Knuth, TAOCP 6.4).
func (t *readTable) slot(o int64) *Slot {
	return &t.slots[uint64(o)*0x9E3779B97F4A7C15>>32&uint64(len(t.slots)-1)]
}

// empty reports whether the table's hold has no readers. A reader that is about to leave is one.
func (t *readTable) empty() bool { return !t.moreThan(0) }

// moreThan reports whether the table's hold has more than most readers.
func (t *readTable) moreThan(most int) bool {
	for i := range t.slots {
		b := &t.slots[i]
		if b.owner.Load() > 0 {
			most--
		}
		if most -= int(int32(b.collided.Load())); most < 0 {
			return true
		}
	}
	return false
}

// readers returns the table, which it makes if there is none yet.
func (s *Sync) readers() *readTable {
	if t := s.table.Load(); t != nil {
		return t
	}
	s.table.CompareAndSwap(nil, newReadTable())
	return s.table.Load()
}

// add puts a goroutine in the table with n holds: o, or -o if it is counted. It reports whether
// the goroutine has the slot.
func (b *Slot) add(o int64, n int) (has bool) {
	if b.owner.CompareAndSwap(0, o) {
		b.reentries.set(uint32(n - 1))
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.others == nil {
		b.others = make(map[int64]int)
	}
	b.others[o] = n
	b.collided.Add(collision(o))
	return false
}

// collision returns what reader o adds to the collided.
func collision(o int64) int64 {
	if o < 0 {
		return 1 << 32
	}
	return 1
}

// change adds by to the holds of goroutine o, if it reads. It returns how many o had, and whether o
// is counted. It leaves o at most MaxHolds. If none is left, o has left the table.
func (t *readTable) change(o int64, by int) (had int, counted bool) {
	if t.firstReader.load() != o {
		return t.slot(o).change(o, by)
	}
	had, left := t.reentries.change(by)
	if !left {
		(*First)(t).Free()
	}
	return had, true
}

// change is [readTable.change] for a goroutine that is not the first reader.
func (b *Slot) change(o int64, by int) (had int, counted bool) {
	if owner := b.owner.Load(); owner == o || owner == -o {
		had, left := b.reentries.change(by)
		if !left {
			b.Free()
		}
		return had, owner != o
	}
	if b.collided.Load() == 0 {
		return 0, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	id := o
	if b.others[id] == 0 {
		id = -o
	}
	if had = b.others[id]; had == 0 {
		return 0, false
	}
	if now := min(int64(had)+int64(by), MaxHolds); now > 0 {
		b.others[id] = int(now)
	} else {
		delete(b.others, id)
		b.collided.Add(-collision(id))
	}
	return had, id != o
}

// Slot returns where goroutine o is if it reads, or nil if nobody has read so far.
func (s *Sync) Slot(o int64) *Slot {
	if t := s.table.Load(); t != nil {
		return t.slot(o)
	}
	return nil
}

// Biased reports whether a reader that is in the table reads.
func (s *Sync) Biased() bool { return s.Word.Load()&flagBiased != 0 }

// Owner returns the goroutine that has the slot, negated if it is counted, or 0.
func (b *Slot) Owner() int64 { return b.owner.Load() }

// Take takes the slot for goroutine me. It reads then if the lock is biased afterwards, and
// else has to Free it. Take fails if others use the slot.
func (b *Slot) Take(me int64) bool {
	return b.collided.Load() == 0 && b.owner.CompareAndSwap(0, me)
}

// Free gives back the slot, and with it the last hold of its goroutine. The lock has to be told
// ([Sync.ReadersLeft]) if it is not biased after that.
func (b *Slot) Free() { b.owner.Store(0) }

// ReadFirst takes a shared hold of a free lock for goroutine me. It fails if a party holds the
// lock, or if nobody has read so far.
func (s *Sync) ReadFirst(me int64) bool {
	t, w := s.table.Load(), s.Word.Load()
	if t == nil || !free(w) || !s.Word.CompareAndSwap(w, w|flagShared|oneHold) {
		return false
	}
	t.firstReader.set(me)
	return true
}

// First returns the table to goroutine me if it is the first reader, or else nil.
func (s *Sync) First(me int64) *First {
	if t := s.table.Load(); t != nil && t.firstReader.load() == me {
		return (*First)(t)
	}
	return nil
}

// Free takes the first reader out of the table, before it gives back its last hold.
func (t *First) Free() { t.firstReader.set(0) }

// ReadCounted takes a shared hold in the word for goroutine me, whose slot is b. It fails if a
// party writes or waits, or if b is in use.
func (s *Sync) ReadCounted(b *Slot, me int64) bool {
	w := s.Word.Load()
	if !admitsReader(w) || b.owner.Load() != 0 || b.collided.Load() != 0 {
		return false
	}
	if !s.Word.CompareAndSwap(w, (w|flagShared)+oneHold) {
		return false
	}
	s.count(b, me)
	return true
}

// ReenterRead counts one more shared hold of goroutine o if it has one, or holds the lock
// exclusively. It reports whether it does, and whether the hold could be counted.
func (s *Sync) ReenterRead(o int64) (held, counted bool) {
	if s.HeldBy(o) {
		h := s.covered.own()
		if h == MaxHolds {
			return true, false
		}
		s.covered.set(h + 1)
		return true, true
	}
	if t := s.table.Load(); t != nil {
		had, _ := t.change(o, 1)
		return had > 0, had > 0 && had < MaxHolds
	}
	return false, false
}

// Unread gives one shared hold of goroutine o back. It reports false, and does nothing, if o
// has none.
func (s *Sync) Unread(o int64) bool {
	if s.HeldBy(o) {
		h := s.covered.own()
		if h > 0 {
			s.covered.set(h - 1)
		}
		return h > 0
	}
	t := s.table.Load()
	if t == nil {
		return false
	}
	had, counted := t.change(o, -1)
	switch {
	case had != 1:
	case counted:
		s.UnlockShared()
	default:
		s.ReadersLeft()
	}
	return had > 0
}

// TryRead takes a shared hold for goroutine o, which has none, unless the lock is held exclusively.
// It barges.
func (s *Sync) TryRead(o int64) bool {
	if s.ReadFirst(o) || s.readBiased(o) {
		return true
	}
	ok := s.TryLockShared()
	if ok {
		s.count(s.readers().slot(o), o)
	}
	return ok
}

// AcquireRead takes a shared hold for p, a goroutine that has none, as AcquireShared does.
func (s *Sync) AcquireRead(p Party, l *park.Limit) Outcome {
	if s.ReadFirst(p.who) || s.readBiased(p.who) {
		return Acquired
	}
	out := s.AcquireShared(p, l)
	if out == Acquired {
		s.count(s.readers().slot(p.who), p.who)
	}
	return out
}

// count puts o, which has a shared hold in the word, in the table. It sets the bias if it is time
// for that.
func (s *Sync) count(b *Slot, o int64) {
	if !b.add(-o, 1) {
		return
	}
	if b.written != s.queue.written {
		b.written, b.reads = s.queue.written, 0
	}
	if b.reads++; b.reads >= unbiasedReads && s.bias() {
		b.reads = 0
	}
}

// unbiasedReads is how many counted reads of a slot, with no write between them, come before the
// bias. To set it and to revoke it takes some 200 ns, and a read under it is some 5 ns shorter.
const unbiasedReads = 32

// bias gives the table a hold, and opens it to readers, for a party that has a shared hold of its
// own. It fails if others wait, or if the table has a hold already.
func (s *Sync) bias() bool {
	w := s.Word.Load()
	return w&(flagQueued|flagVisible) == 0 && s.Word.CompareAndSwap(w, (w|flagVisible|flagBiased)+oneHold)
}

// readBiased takes a shared hold for o under the table's if the lock is biased to readers.
func (s *Sync) readBiased(o int64) bool {
	if !s.Biased() {
		return false
	}
	b := s.readers().slot(o)
	b.add(o, 1)
	if s.Biased() {
		return true
	}
	b.change(o, -1)
	s.ReadersLeft()
	return false
}

// Wrote counts a write of the goroutine that has the lock exclusively. Readers that find many reads
// since the last write set the bias. The writes of explicit owners are not counted, because several
// goroutines may have one hold. Nor are those after a condition wait, which began with a write.
func (s *Sync) Wrote() { s.queue.written++ }

// ReadersLeft gives the table's hold back if that is due, for a reader that has left the table.
func (s *Sync) ReadersLeft() {
	if s.Word.Load()&(flagVisible|flagBiased) == flagVisible && s.table.Load().empty() {
		s.guarded(keep) // or a later reader will look as it leaves
	}
}

// TryLockUnread takes a lock exclusively that the read table holds, but that nobody reads. It
// barges.
func (s *Sync) TryLockUnread(p Party) bool {
	if s.Word.Load()&flagVisible == 0 || !s.table.Load().empty() {
		return false
	}
	s.guarded(revoke)
	return s.TryLock(p)
}

// DowngradeWrite turns one exclusive hold of goroutine o into a shared one, as Release does
// with the last. It reports whether o has one, and whether the shared hold could be counted; if
// not, nothing happens.
func (s *Sync) DowngradeWrite(o int64) (held, counted bool) {
	if !s.HeldBy(o) {
		return false, false
	}
	h := s.covered.own()
	if h == MaxHolds {
		return true, false
	}
	s.covered.set(h + 1)
	return s.Release(o), true
}

// uncover moves o's shared holds to the table, gives up its exclusive one, and returns true.
func (s *Sync) uncover(o int64) bool {
	s.readers().slot(o).add(-o, int(s.covered.own()))
	s.covered.set(0)
	s.ShareExclusive()
	return true
}

// Upgrade turns one shared hold of goroutine o into an exclusive one if nobody else has any,
// past the waiters. The others of o stay what they are. It reports whether it did, and whether
// o has any.
func (s *Sync) Upgrade(o int64) (upgraded, reads bool) {
	if s.HeldBy(o) {
		h := s.covered.own()
		if h == 0 || s.Holds >= MaxHolds-1 {
			return false, h != 0
		}
		s.covered.set(h - 1)
		s.Holds++
		return true, true
	}
	t := s.table.Load()
	if t == nil {
		return false, false
	}
	holds, counted := t.change(o, 0)
	if holds == 0 || !s.UpgradeOnly(o, counted) {
		return false, holds != 0
	}
	t.change(o, -holds)
	s.covered.set(uint32(holds - 1))
	s.Wrote()
	return true, true
}

// UpgradeOnly turns the shared holds of owner into an exclusive one if there are no others. Those
// of owner are counted in the word, or under the table's hold. The bias ends in any case.
func (s *Sync) UpgradeOnly(owner int64, counted bool) (ok bool) {
	s.guard.Lock()
	wake, _ := s.advance(revoke)
	for w := s.Word.Load(); !ok && w>>flagBits == 1; w = s.Word.Load() {
		if w&flagVisible == 0 != counted || w&flagVisible != 0 && s.table.Load().moreThan(1) {
			break
		}
		ok = s.Word.CompareAndSwap(w, Value(owner)|w&queueFlags)
	}
	s.guard.Unlock()
	unpark(wake)
	return ok
}

// Covered reports whether the goroutine that holds the lock exclusively, which calls it, has shared
// holds as well.
func (s *Sync) Covered() bool { return s.covered.own() > 0 }

// ReadHolds returns how many shared holds goroutine o has, to o itself.
func (s *Sync) ReadHolds(o int64) int {
	t := s.table.Load()
	switch {
	case s.HeldBy(o):
		return int(s.covered.load())
	case t != nil:
		had, _ := t.change(o, 0)
		return had
	}
	return 0
}

// WriteHolds returns how many exclusive holds goroutine o has, to o itself.
func (s *Sync) WriteHolds(o int64) int {
	if !s.HeldBy(o) {
		return 0
	}
	return int(s.Holds) + 1
}

// EachReader calls visit for the goroutines that have shared holds.
func (s *Sync) EachReader(visit func(o int64, holds int)) {
	if o, covered := s.Owner(), s.covered.load(); o != 0 && covered > 0 {
		visit(o, int(covered))
	}
	t := s.table.Load()
	if t == nil {
		return
	}
	if o := t.firstReader.load(); o != 0 {
		visit(o, int(t.reentries.load())+1)
	}
	for i := range t.slots {
		b := &t.slots[i]
		if o := b.owner.Load(); o != 0 {
			visit(max(o, -o), int(b.reentries.load())+1)
		}
		if b.collided.Load() == 0 {
			continue
		}
		b.mu.Lock()
		for o, holds := range b.others {
			visit(max(o, -o), holds)
		}
		b.mu.Unlock()
	}
}

// LockOrReenter takes a lock that is free, or counts one more hold if owner, a goroutine, has it
// already. It may fail in other cases.
func (s *Sync) LockOrReenter(owner int64) bool {
	w := s.Word.Load()
	if free(w) && s.Word.CompareAndSwap(w, w|Value(owner)) {
		s.Wrote()
		return true
	}
	if Names(w, owner) && s.Holds < MaxHolds-1 {
		s.Holds++
		return true
	}
	return false
}

// Reenter counts one more hold of owner, a goroutine, if it has the lock exclusively. It reports
// whether it does, and whether the hold could be counted.
func (s *Sync) Reenter(owner int64) (held, counted bool) {
	held = s.HeldBy(owner)
	if counted = held && s.Holds < MaxHolds-1; counted {
		s.Holds++
	}
	return held, counted
}

// Release gives back one exclusive hold of owner, a goroutine. With the last, the lock goes to
// the waiters as the policy says. If owner has shared holds as well, the lock is shared from
// then on instead, with no exclusive holder in between. Release reports false, and does
// nothing, if owner has no exclusive hold.
func (s *Sync) Release(owner int64) bool {
	switch {
	case !s.HeldBy(owner):
		return false
	case s.Holds > 0:
		s.Holds--
		return true
	case s.covered.own() > 0:
		return s.uncover(owner)
	}
	return s.Unlock()
}
