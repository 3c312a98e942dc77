package syncq

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/jucgo/locks/internal/burst"
)

// readTable has the shared holds of goroutines, with a hold count for each. While a lock is biased
// to readers, their holds cost other readers nothing: visible readers, after BRAVO (Dice and Kogan,
// USENIX ATC 2019).
//
// Each reader is in the table. The first reader has a place of its own. Any other reader is in the
// slot that its goroutine hashes to. There are two kinds:
//
//   - A counted reader has a shared hold of its own in the word. The table only names the reader.
//     The first reader is counted.
//   - All other readers have one shared hold in the word together, the table's hold, for which
//     flagVisible stands. While flagBiased is set, a newcomer reads as soon as it is in the table,
//     and a reader ends its hold by leaving the table. Neither changes the word.
//
// All other shared holds in the word belong to explicit owners, and to counted readers that are
// about to enter the table.
//
//	visible biased
//	0       0       nobody reads by the table's hold; readers in it are counted, or about to see
//	                that
//	1       1       readers in the table that are not counted read; the queue is empty
//	1       0       the readers that were in the table when flagBiased was cleared read; the last
//	                one of them gives the table's hold back; new readers are counted
//
// A counted reader sets both flags, on a word without either flag and without waiters. The flag
// flagBiased is cleared with the guard held. The flag flagVisible is cleared with the guard held,
// on a word without flagBiased, once the table was found empty after flagBiased was cleared.
// Counted readers do not matter there.
//
// How a writer revokes a bias, and why it misses no reader:
//
//  1. A reader enters the table, and then looks for flagBiased. If flagBiased is set, the reader
//     reads. Otherwise it leaves the table again, and is counted, or joins the queue.
//  2. A writer clears flagBiased, and then looks into the table. By 1 and 2 the reader sees the
//     cleared flag, or the writer sees the reader.
//  3. If the writer finds the table empty, it gives the table's hold back (advance with dropTable).
//     The writer has the guard, so nobody else clears flagVisible. Nobody sets flagBiased on a word
//     with flagVisible. So the writer drops the very hold that it found unused.
//  4. If the writer finds readers, it waits in the queue. Each reader that leaves the table finds
//     flagBiased gone, and looks into the table as well (ReadersLeft). The last reader finds the
//     table empty, and does 3.
//  5. New readers find a word without flagBiased. They are counted, or queue. Readers that the
//     queue admits are counted.
//
// The exclusive holder's own shared holds are not in the table: nobody else can have any. They
// are in Reentrant.covered, and are counted when the exclusive hold ends.
//
// The first reader is a goroutine that found the lock free, and the table there, and made the lock
// shared (ReadFirst). It sets firstReader by a plain store, because no other goroutine writes that
// field at the time. Only one goroutine can change the word's value from 0 to 1 before the value is
// 0 again. The first reader sets firstReader after this change. It clears firstReader before it
// gives back its hold, so before the value can be 0 again. The swaps of the word order the clear
// before the next set. A goroutine compares firstReader with its own id. It may read an old value,
// but never its own id, because it has cleared that. Two other parties read firstReader. An
// inspection may read an old value. A goroutine that acts for the owner of another goroutine relies
// on the program, which must order the two. Java's ReentrantReadWriteLock has a firstReader for the
// same reason.
//
// The bias pays if several goroutines read at a time, and many times between two writes. To find
// out, each reader counts its slot's reads since the last write (Wrote, unbiasedReads). The first
// reader is in no slot. So reads that find the lock free never bias the lock.
type readTable struct {
	firstReader reader // or 0; leads, to be aligned
	slots       []Slot // a power of 2
	alone       bool   // only one goroutine can run at a time: see Sync.sends

	_         [31]byte // each reader reads the two above
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

// Slot has the readers whose goroutines have one hash. The fast paths of a lock consist of its
// exported methods, which are for a goroutine.
type Slot struct {
	owner     atomic.Int64 // the goroutine that has the slot, negated if it is counted, or 0
	reentries              // of it

	// The fields reads and written are for a counted goroutine that has the slot.
	reads   uint32 // counted reads of the slot since the last write or bias
	written uint8  // the lock's number of writes at the last of them

	// The fields collided, mu and others are for readers that found the slot taken.
	collided atomic.Int64 // how many under the table's hold, and in the upper half how many counted
	mu       sync.Mutex
	others   map[int64]int // their holds; guarded by mu
	peak     burst.Peak    // of others; guarded by mu

	_ [12]byte // a cache line to each
}

// newReadTable returns a table for as many readers as can run at once, with room to spare.
func newReadTable() *readTable {
	n, procs := 4, runtime.GOMAXPROCS(0)
	for n < 4*procs && n < 64 {
		n *= 2
	}
	return &readTable{slots: make([]Slot, n), alone: procs == 1}
}

// slot returns the slot of o.
func (t *readTable) slot(o int64) *Slot { return &t.slots[SlotOf(o, len(t.slots))] }

// SlotOf returns the index of o's slot among n. n is a power of 2. Ids that follow each other, as
// in a group of workers, get slots far apart (Fibonacci hashing, Knuth, TAOCP 6.4).
func SlotOf(o int64, n int) uint64 { return uint64(o) * 0x9E3779B97F4A7C15 >> 32 & uint64(n-1) }

// empty reports whether nobody reads by the table's hold. A reader that is about to leave still
// reads.
func (t *readTable) empty() bool { return !t.moreThan(0) }

// moreThan reports whether more readers than most read by the table's hold.
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
	b.peak.Grew(len(b.others))
	b.collided.Add(collision(o))
	return false
}

// collision returns the number that reader o adds to collided.
func collision(o int64) int64 {
	if o < 0 {
		return 1 << 32
	}
	return 1
}

// change adds by to the holds of goroutine o, if it reads. It returns how many holds o had, and
// whether o is counted. It leaves o at most MaxHolds. Without a hold left, o has left the table.
func (t *readTable) change(o int64, by int) (had int, counted bool) {
	if t.firstReader.load() != o {
		return t.slot(o).change(o, by)
	}
	had, left := t.reentries.change(by)
	if !left {
		t.firstReader.set(0)
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
		if delete(b.others, id); b.peak.IsOver(len(b.others)) {
			b.others = nil
		}
		b.collided.Add(-collision(id))
	}
	return had, id != o
}

// Owner returns the goroutine that has the slot, negated if it is counted, or 0.
func (b *Slot) Owner() int64 { return b.owner.Load() }

// take takes the slot for goroutine me. If the lock is biased afterwards, me reads. Otherwise me
// must Free the slot. take fails if other readers use the slot.
func (b *Slot) take(me int64) bool {
	return b.collided.Load() == 0 && b.owner.CompareAndSwap(0, me)
}

// Free gives back the slot, and with it the last hold of its goroutine. If the goroutine was
// counted, UnlockShared must follow. Otherwise [ReadWrite.ReadersLeft] must follow, unless the lock
// is biased.
func (b *Slot) Free() { b.owner.Store(0) }

// each calls visit for the goroutines in the table.
func (t *readTable) each(visit func(o int64, holds int)) {
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
