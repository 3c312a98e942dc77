package rwlock

import (
	"math"
	"runtime"

	"github.com/jucgo/locks/internal/goid"
	"github.com/jucgo/locks/internal/syncq"
)

// This file has the table of a StampedLock: read holds that the word does not count, while many
// goroutines read and none writes. They are visible readers after BRAVO (Dice and Kogan, USENIX ATC
// 2019), but without owners, because a stamp does not say which hold it is of.
//
// A hold is a unit: in the word, where the reader bits and overflow count units, or in a slot of
// the table. Units are all alike. A release ends a unit of its version, in whichever place.
//
//   - The flag visible says that the units of the table count. bias sets it, after it has marked
//     each slot with the version. fold clears it: it moves all units of the table into the word.
//     Both hold the guard.
//   - A reader enters with a unit in the slot of its goroutine, and looks at the word then. If
//     visible is set, and pending is not, it reads. Else it takes a unit out of the slot again, and
//     has not entered. If the slot has no unit, the reader reads: fold has moved its unit into the
//     word.
//   - A release takes a unit out of the slot of its goroutine, or else out of the word. If neither
//     has a unit, the release folds, and takes a unit out of the word. A release takes nothing from
//     a slot with the mark of another version, so a stale stamp takes no unit of a later reader.
//   - Whatever needs to know that nobody reads, or how many goroutines do, folds first: a write,
//     a conversion, an inspection. So do waiters. Therefore the queue knows nothing of the table.
//
// # Why a writer misses no reader
//
// Call a reader undecided that has put in a unit, and neither reads nor has taken one out. Every
// step keeps the sum: there are as many units as read holds and undecided readers.
//
// While visible is set, no writer enters. It takes three steps to clear it:
//
//  1. fold sets pending.
//  2. It empties one slot after the other.
//  3. It adds the units to the word, and clears both flags in the same step.
//
// A reader that finds its slot's unit after 2 has put it in after 1. Then it looks at the word, and
// finds pending set, or visible cleared, unless visible was set anew. So from 2 on, and until
// visible is set again, a slot has at most as many units as it has undecided readers. By the sum,
// the word has at least as many units as there are read holds. So if the word has none, nobody
// reads.
//
// If an undecided reader finds its slot empty, that slot has fewer units than undecided readers. So
// the word, or the table while visible is set, has one unit more than there are read holds. The
// extra unit is the reader's from now on. It has been there since before the reader looked, so no
// write hold can have come in between. The reader loads the version next, and gets the version of
// its hold.
//
// A release that finds no unit in its slot and none in the word folds. The sum then says that the
// word has a unit, if there is such a hold. So a release that is due is never refused. A second
// release by one stamp may take the unit of another reader of its version, as it always may.
//
// # When readers enter the table
//
// A read beside another read counts in crowd. A write starts the count anew, since crowd has the
// lowest bits of the version too. After crowdedReads such reads the table is opened. Its readers
// then take half the time of readers that share a word, or less. To open and fold the table takes
// some 200 ns. So reads that find the lock free never open the table.

// stampedTable has the slots, whose number is a power of 2.
type stampedTable []stampedSlot

// stampedSlot has the units of some goroutines in its lower half. The upper half has the mark of
// the version in which the table was opened last.
type stampedSlot struct {
	units stampedWord
	_     [56]byte // a cache line to each
}

// markOf returns the mark of a slot for the version of s, a word or a stamp.
func markOf(s uint64) uint64 { return s >> versionShift << 32 }

const (
	// maxSlots is the greatest number of slots, and maxInSlot the greatest number of units in a
	// slot. A reader that finds more puts its unit into the word.
	maxSlots  = 64
	maxInSlot = 1 << 16

	// crowdedReads is how many reads beside others come before the table is opened. countBits is
	// the part of crowd that counts them.
	crowdedReads = 32
	countBits    = 8
)

// slot returns the slot of the calling goroutine. There must be a table.
func (l *StampedLock) slot() *stampedSlot {
	t := *l.table.Load()
	return &t[syncq.SlotOf(goid.Get(), len(t))]
}

// take takes out a unit for a release by st, and reports whether there was one. If st is 0, the
// unit may be of any version: then it is for an undecided reader.
func (b *stampedSlot) take(st Stamp) bool {
	for {
		n := b.units.Load()
		if uint32(n) == 0 || st != 0 && n>>32<<32 != markOf(uint64(st)) {
			return false
		}
		if b.units.CompareAndSwap(n, n-1) {
			return true
		}
	}
}

// set gives b a mark, and leaves at most keep units in it. It returns how many it has taken out.
func (b *stampedSlot) set(mark uint64, keep uint32) uint64 {
	for {
		n := b.units.Load()
		left := min(uint32(n), keep)
		if b.units.CompareAndSwap(n, mark|uint64(left)) {
			return uint64(uint32(n) - left)
		}
	}
}

// enter takes a read hold in the table, and returns its stamp. If the table is closed, or the slot
// is full, it returns 0. There must be a table.
func (l *StampedLock) enter() Stamp {
	b := l.slot()
	n := uint32(b.units.Add(1))
	return l.decide(b, n, l.state.Load())
}

// decide is the second half of enter. A unit is in b, which had n units then. The word was s after
// that.
func (l *StampedLock) decide(b *stampedSlot, n uint32, s uint64) Stamp {
	if s&(visible|pending) != visible || n > maxInSlot {
		return l.retract(b)
	}
	l.state.AfterWrites()
	return stampOf(s, read)
}

// retract takes a unit out of b again, and returns 0. If b has none, fold has moved the unit into
// the word, and the hold is of the word's present version. While the unit was in b, writers may
// have come and gone.
func (l *StampedLock) retract(b *stampedSlot) Stamp {
	if b.take(0) {
		return 0
	}
	s := l.state.Load()
	l.state.AfterWrites()
	return stampOf(s, read)
}

// noteCrowd counts a read beside another read, and opens the table after enough of them. The word
// was s.
func (l *StampedLock) noteCrowd(s uint64) {
	l.state.Ignore()
	of := uint32(s>>versionShift) << countBits
	n := l.crowd.Load()
	if n&^(1<<countBits-1) != of {
		n = of
	}
	l.crowd.Store(n + 1)
	l.state.Heed()
	if n+1-of >= crowdedReads {
		l.bias()
	}
}

// bias opens the table, unless a goroutine writes or waits.
func (l *StampedLock) bias() {
	l.guard.Lock()
	defer l.guard.Unlock()
	t := l.table.Load()
	if t == nil {
		n := 4
		for procs := runtime.GOMAXPROCS(0); n < 4*procs && n < maxSlots; n *= 2 {
		}
		slots := make(stampedTable, n)
		t = &slots
		l.table.Store(t)
	}
	if s := l.state.Load(); s&(reader-1) == 0 {
		for i := range *t {
			(*t)[i].set(markOf(s), math.MaxUint32)
		}
		l.state.CompareAndSwap(s, s|visible)
	}
	l.crowd.Store(0)
}

// countReads returns the word, which counts all read holds.
func (l *StampedLock) countReads() uint64 {
	for {
		s := l.state.Load()
		if s&visible == 0 {
			return s
		}
		l.guard.Lock()
		l.fold()
		l.guard.Unlock()
	}
}

// fold moves all units of the table into the word, and closes the table. The guard is held. Until
// it is free again, pending tells readers that the table is closed, though no writer waits.
func (l *StampedLock) fold() {
	if s := l.closeTable(); s&visible != 0 {
		l.moveUnits(s)
	}
}

// closeTable is the first step of fold. It sets pending if the table is open, and returns the word.
func (l *StampedLock) closeTable() (s uint64) {
	s = l.state.Load()
	for s&visible != 0 && !l.state.CompareAndSwap(s, s|pending) {
		s = l.state.Load()
	}
	return s
}

// moveUnits is the rest of fold, for a word that was s when the table was closed.
func (l *StampedLock) moveUnits(s uint64) {
	n := uint64(0)
	t := *l.table.Load()
	for i := range t {
		n += t[i].set(markOf(s+version), 0) // so that a stale release takes no unit that comes too late
	}
	for {
		s = l.state.Load()
		inWord := min(n, (readers-s&readers)/reader)
		if l.state.CompareAndSwap(s, s&^(visible|pending)+inWord*reader) {
			l.overflow += int32(n - inWord)
			return
		}
	}
}
