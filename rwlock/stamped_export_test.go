package rwlock

import (
	"fmt"

	"github.com/jucgo/locks/internal/syncq"
)

// MaxStampedOverflow is how many read holds a StampedLock counts beyond StampedWordReaders.
const (
	MaxStampedOverflow = maxOverflow
	StampedWordReaders = readers / reader
	StampedMaxLost     = syncq.MaxLost
)

// SetStampedVersion sets the version of l, which nobody uses, to v.
func SetStampedVersion(l *StampedLock, v uint64) { l.state.Store(v << versionShift) }

// StampedVersion returns the version that st is of.
func StampedVersion(st Stamp) uint64 { return uint64(st) >> versionShift }

// SetStampedOverflow is for an l whose word lacks room for more read holds. It sets the number of
// holds beyond the word to n.
func SetStampedOverflow(l *StampedLock, n int) {
	l.guard.Lock()
	defer l.guard.Unlock()
	l.overflow = int32(n)
}

// StampedReserved reports whether the next release is reserved for a waiter.
func StampedReserved(l *StampedLock) bool { return l.state.Load()&reserved != 0 }

// AddStampedReader is the second half of taking a read hold beyond the bits of the word. The
// first was to read the word, and is when AddStampedReader is called.
func AddStampedReader(l *StampedLock) (finish func() (ok, full bool)) {
	s := l.state.Load()
	return func() (ok, full bool) { return l.addReader(s) }
}

// RemoveStampedReader is the same for giving one back.
func RemoveStampedReader(l *StampedLock) (finish func() bool) {
	s := l.state.Load()
	return func() bool { return l.removeReader(s) }
}

// OpenStampedTable opens the table of l for readers, unless a goroutine writes or waits.
func OpenStampedTable(l *StampedLock) { l.bias() }

// StampedTableIsOpen reports whether readers enter the table.
func StampedTableIsOpen(l *StampedLock) bool { return l.state.Load()&(visible|pending) == visible }

// StampedHolds returns the read holds in the word, and the read holds in the table, while no
// goroutine enters. It leaves the table open.
func StampedHolds(l *StampedLock) (inWord, inTable int) {
	l.guard.Lock()
	defer l.guard.Unlock()
	if t := l.table.Load(); t != nil {
		for i := range *t {
			inTable += int(uint32((*t)[i].units.Load()))
		}
	}
	return int(l.state.Load()&readers/reader) + int(l.overflow), inTable
}

// BeginStampedFold is the first step of folding the open table of l, and returns the others.
func BeginStampedFold(l *StampedLock) (finish func()) {
	l.guard.Lock()
	s := l.closeTable()
	return func() {
		l.moveUnits(s)
		l.guard.Unlock()
	}
}

// EnterStampedTable is the first half of a ReadLock by the table, and returns the second half.
// Its result is 0 if the table is closed.
func EnterStampedTable(l *StampedLock) (finish func() Stamp) {
	b := l.slot()
	n := uint32(b.units.Add(1))
	return func() Stamp { return l.decide(b, n, l.state.Load()) }
}

// EnterClosedStampedTable is a ReadLock by the table up to its look at the word, which says that
// the table is closed. It returns the rest.
func EnterClosedStampedTable(l *StampedLock) (finish func() Stamp) {
	b := l.slot()
	n, s := uint32(b.units.Add(1)), l.state.Load()
	return func() Stamp { return l.decide(b, n, s) }
}

// FillStampedSlot puts as many holds into the slot of the calling goroutine as it has room for.
func FillStampedSlot(l *StampedLock) { l.slot().units.Add(maxInSlot) }

const StampedSlotRoom = maxInSlot

// TakeStampedUnit is the last half of a release by st, which has found that the table is open.
func TakeStampedUnit(l *StampedLock, st Stamp) bool { return l.slot().take(st) }

// BeginStampedWake tells the writer in front, as a release does, and returns the second half of
// that: the writer is not unparked yet.
func BeginStampedWake(l *StampedLock) (finish func()) {
	l.guard.Lock()
	defer l.guard.Unlock()
	n := l.head
	n.woken = true
	return func() { unpark(n, 1) }
}

// StampedPlaces returns how many waiters the lock counts, and how many have a place in the list.
func StampedPlaces(l *StampedLock) (counted, placed int) {
	l.guard.Lock()
	defer l.guard.Unlock()
	for n := l.head; n != nil; n = n.next {
		placed++
	}
	return int(l.waiting), placed
}

// VerifyStamped returns what is wrong with l while all goroutines rest: its word must be a legal
// one, and agree with the list.
func VerifyStamped(l *StampedLock) error {
	l.guard.Lock()
	defer l.guard.Unlock()
	s := l.state.Load()
	waiting, writers, overdue := 0, 0, 0
	var last *stampedWaiter
	for n := l.head; n != nil; last, n = n, n.next {
		if n.granted != 0 || n.woken || n.sent || n.prev != last {
			return fmt.Errorf("waiter %d is not in order: %+v", waiting, n)
		}
		if waiting++; n.write {
			writers++
		}
		if n.reserved {
			overdue++
		}
	}
	front := l.head
	switch {
	case l.tail != last:
		return fmt.Errorf("the list ends with %p, not %p", l.tail, last)
	case waiting != int(l.waiting) || writers != int(l.writers):
		return fmt.Errorf("%d wait, %d of them writers, counted as %d and %d", waiting, writers, l.waiting, l.writers)
	case s&visible != 0 && s&(reader-1) != visible:
		return fmt.Errorf("word %#x: visible with other flags", s)
	case s&writing != 0 && s&readers != 0:
		return fmt.Errorf("word %#x: held for writing and reading", s)
	case (s&queued != 0) != (waiting > 0), (s&parked != 0) != (waiting > 0), (s&pending != 0) != (writers > 0):
		return fmt.Errorf("word %#x, but %d wait, %d of them writers", s, waiting, writers)
	case overdue != int(l.overdue):
		return fmt.Errorf("%d waiters are overdue, counted as %d", overdue, l.overdue)
	case (s&reserved != 0) != (front != nil && l.isReserved(front)):
		return fmt.Errorf("word %#x does not agree with the first waiter: %+v", s, front)
	case front != nil && s&writing == 0 && (!front.write || s&readers == 0):
		return fmt.Errorf("word %#x is available to the first waiter: %+v", s, front)
	case l.overflow != 0 && s&readers != readers:
		return fmt.Errorf("word %#x, but %d read holds more", s, l.overflow)
	}
	return nil
}
