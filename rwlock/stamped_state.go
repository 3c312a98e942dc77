package rwlock

// Stamp is a version of a [StampedLock] and a mode. An acquisition or TryOptimisticRead returns
// the stamp of the version at that moment. No such stamp is 0: 0 means that the call failed, and
// fits no hold. The predicates look at the number only, not at any lock.
type Stamp uint64

// IsWriteLock reports whether st is of a write hold. Java's isWriteLockStamp(stamp).
func (st Stamp) IsWriteLock() bool { return st&(version-1) == writing }

// IsReadLock reports whether st is of a read hold. Java's isReadLockStamp(stamp).
func (st Stamp) IsReadLock() bool { return st&(version-1) == read }

// IsLock reports whether st is of a hold, in either mode. Java's isLockStamp(stamp).
func (st Stamp) IsLock() bool { return st.IsWriteLock() || st.IsReadLock() }

// IsOptimisticRead reports whether st is of an optimistic read. Java's
// isOptimisticReadStamp(stamp).
func (st Stamp) IsOptimisticRead() bool { return st&(version-1) == optimistic }

// The state word of a StampedLock. Its upper 50 bits are the version: the number of write holds
// that have ended, modulo 2^50. Below are 8 bits that count readers, and 6 flags.
//
//	version readers visible reserved parked pending queued writing
//	v       0       0       0        0      0       0      0       free, no waiters
//	v       0       0       0        0      0       0      1       held for writing, no waiters
//	v       n       0       0        0      0       0      0       n read holds, no waiters
//	v       n       1       0        0      0       0      0       likewise, and the holds of the table
//	v       0       0       r        0      w       1      0       free; the first waiter was woken
//	v       0       0       r        0      w       1      1       held by a barger; likewise
//	v       n       0       r        0      w       1      0       n read holds of bargers; likewise
//	v       0       0       r        1      w       1      1       held for writing, goroutines wait
//	v       n       0       r        1      1       1      0       n read holds, a writer in front
//
// All other combinations are illegal while the guard is free. If all bits of n are set, there are n
// + overflow read holds.
//
// A stamp is a version, and one bit for the mode.
//
// # What a validated reader may rely on
//
// Operations of sync/atomic have one order that all goroutines agree on. In it, a write hold is a
// step that sets writing, the stores of the writer, and a step that clears writing and advances the
// version, in this order. An optimistic read is the load of TryOptimisticRead, the loads of the
// reader, and the load of Validate. If both outer loads see the same version without writing, then
// no step of a write hold is between them, because versions only advance. Each write hold is then
// over before the first load or begins after the last. In the first case the reader's loads come
// after all of its stores, in the second before all of them. Plain loads and stores are not part of
// that order, and the argument does not cover them.
const (
	// writing: held for writing. A write stamp has the same bit. Therefore a write stamp equals
	// the word of a lock that is held for writing without waiters.
	writing = 1 << iota

	// queued: the list is not empty. It makes the writers' tries with a time limit fail or wait.
	// No parked waiter depends on it.
	queued

	// pending: a writer is in the list. ReadLock then waits, and does not overtake the writer.
	// Waiting readers need no such flag: they are admitted together with a new reader.
	pending

	// parked: the front of the list is parked, and the word is not available to it. The release
	// that makes it available must take the guard and admit the front. Otherwise the front would
	// stay parked for ever.
	parked

	// reserved: the first waiter was woken or sent in vain syncq.MaxLost times, or for too long.
	// While readers are first, one such reader anywhere in the list is enough. WriteLock must not
	// barge any more.
	reserved

	// visible: there may be read holds that the word does not count. See stamped_table.go. While
	// the guard is free, it excludes all other flags. So nobody waits for a lock that has it.
	visible

	readerShift  = iota
	versionShift = readerShift + 8

	reader   = 1 << readerShift
	version  = 1 << versionShift
	versions = 1<<64 - version
	readers  = version - reader
)

// The other modes of stamps. Words have other bits in their place.
const (
	read       = 1 << 1
	optimistic = 1 << 2
	modes      = writing | read | optimistic
)

// tooMany replaces the stamp of a read hold beyond the greatest count. No stamp has two modes.
const tooMany Stamp = 1<<64 - 1

// maxOverflow is the greatest number of read holds beyond those in the word and in the table. All
// read holds together fit an int of any size.
const maxOverflow = 1<<31 - 1 - readers/reader - maxSlots*maxInSlot

// stampOf returns the stamp of the version of s in a mode.
func stampOf(s uint64, mode Stamp) Stamp { return Stamp(s&versions) | mode }

// acquireWrite acquires the lock for writing if it is free and none of the flags avoid is set.
// If not, it returns 0. A caller that holds the guard must have found a waiter in the list.
func (l *StampedLock) acquireWrite(avoid uint64) Stamp {
	for {
		s := l.countReads()
		if s&(writing|readers|avoid) != 0 {
			return 0
		}
		if l.state.CompareAndSwap(s, s|writing) {
			l.state.AfterAll()
			if avoid == reserved && s&queued != 0 {
				l.countBarger()
			}
			return stampOf(s, writing)
		}
	}
}

// acquireRead acquires a read hold if the lock is not held for writing and none of the flags
// avoid is set. If not, it returns 0, or tooMany.
func (l *StampedLock) acquireRead(avoid uint64) Stamp {
	for {
		s := l.state.Load()
		switch {
		case s&(writing|pending|queued)&(avoid|writing|queued) == pending:
			l.guard.Lock() // no writer waits: see fold
			l.guard.Unlock()
			continue
		case s&(writing|avoid) != 0:
			return 0
		case s&visible != 0:
			if st := l.enter(); st != 0 {
				return st
			}
		}
		switch ok, full := l.addReader(s); {
		case ok:
			l.state.AfterWrites()
			return stampOf(s, read)
		case full:
			return tooMany
		}
	}
}

// addReader adds a read hold if the word is s, which is not held for writing. If the word is not s,
// it does nothing. It returns full if the word lacks room for one more hold.
//
// While the reader bits are all ones, they change only with the guard held, and the holds in
// overflow end before the holds in the word. Therefore overflow is 0 unless the bits are all ones,
// and the word is never free while goroutines read.
func (l *StampedLock) addReader(s uint64) (ok, full bool) {
	if s&readers != readers {
		return l.state.CompareAndSwap(s, s+reader), false
	}
	l.guard.Lock()
	defer l.guard.Unlock()
	switch {
	case (l.state.Load()^s)&(versions|readers) != 0:
		return false, false // also if they are all ones again, in another version
	case l.overflow >= maxOverflow: // fold may add more
		return false, true
	}
	l.overflow++
	return true, false
}

// releaseWriteHold ends the write hold of st, and returns an optimistic stamp of the new version,
// or 0 if the hold does not exist.
func (l *StampedLock) releaseWriteHold(st Stamp) Stamp { return l.endWrite(st, 0, optimistic) }

// endWrite ends the write hold of st, and adds the read holds behind to the word. It returns a
// stamp of mode for the new version, or 0 if the hold does not exist.
func (l *StampedLock) endWrite(st Stamp, behind uint64, mode Stamp) Stamp {
	for {
		s := l.state.Load()
		if s&writing == 0 || st != stampOf(s, writing) {
			return 0
		}
		l.state.WriteEnds()
		to := s&^writing + version + behind
		if s&parked == 0 && l.state.CompareAndSwap(s, to) || s&parked != 0 && l.release(s, to) {
			return stampOf(to, mode)
		}
	}
}

// releaseReadHold ends a read hold of the version of the read stamp st. It returns the optimistic
// stamp of that version, or 0 if the hold does not exist.
func (l *StampedLock) releaseReadHold(st Stamp) Stamp {
	for {
		s := l.state.Load()
		if s&(readers|visible) == 0 || st != stampOf(s, read) {
			return 0
		}
		l.state.ReadEnds()
		if s&(version-1) == reader && l.state.CompareAndSwap(s, s-reader) {
			return stampOf(s, optimistic) // the usual case, without a call
		}
		switch {
		case s&visible != 0 && l.slot().take(st):
			return stampOf(s, optimistic)
		case s&readers != 0:
			if l.removeReader(s) {
				return stampOf(s, optimistic)
			}
		default:
			l.countReads() // the hold is in another slot, if there is one
		}
	}
}

// removeReader removes a read hold if the word is s, which has some. If the word is not s, it
// does nothing.
func (l *StampedLock) removeReader(s uint64) bool {
	switch {
	case s&readers == reader && s&parked != 0:
		return l.release(s, s-reader)
	case s&readers == readers:
		l.guard.Lock()
		defer l.guard.Unlock()
		if l.overflow > 0 && (l.state.Load()^s)&(versions|readers) == 0 {
			l.overflow--
			return true
		}
	}
	return l.state.CompareAndSwap(s, s-reader)
}
