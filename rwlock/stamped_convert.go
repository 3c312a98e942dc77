package rwlock

import "github.com/jucgo/locks/internal/sched"

// TryConvertToWriteLock converts the hold of st to a write hold, in one step, and returns the
// new stamp, or 0. A write stamp is returned unchanged. A read hold is converted if it is the
// only one, and kept otherwise. An optimistic stamp is converted if it is valid and the lock is
// free. Java's tryConvertToWriteLock(stamp).
func (l *StampedLock) TryConvertToWriteLock(st Stamp) Stamp {
	sched.Begin("TryConvertToWriteLock", l)
	for {
		s := l.countReads()
		to := s | writing
		switch {
		case st == stampOf(s, writing):
			if s&writing == 0 {
				return 0
			}
			return st
		case st == stampOf(s, read):
			if s&readers != reader {
				return 0
			}
			to -= reader
		case st == stampOf(s, optimistic):
			if s&(writing|readers) != 0 {
				return 0
			}
		default:
			return 0
		}
		if l.state.CompareAndSwap(s, to) {
			l.state.AfterAll()
			return stampOf(to, writing)
		}
	}
}

// TryConvertToReadLock converts the hold of st to a read hold, in one step, and returns the new
// stamp, or 0. The stamp of a converted write hold becomes invalid. The readers in front of the
// queue are admitted with the conversion, and no writer comes in between. The stamp of a read
// hold is returned unchanged. An optimistic stamp is converted if it is valid. Java's
// tryConvertToReadLock(stamp).
func (l *StampedLock) TryConvertToReadLock(st Stamp) Stamp {
	sched.Begin("TryConvertToReadLock", l)
	if st.IsWriteLock() {
		return l.endWrite(st, reader, read)
	}
	for {
		s := l.state.Load()
		switch {
		case st == stampOf(s, read):
			if s = l.countReads(); s&readers == 0 || st != stampOf(s, read) {
				return 0
			}
			return st
		case st != stampOf(s, optimistic) || s&writing != 0:
			return 0
		}
		switch ok, full := l.addReader(s); {
		case ok:
			l.state.AfterWrites()
			return stampOf(s, read)
		case full:
			return mustCount(tooMany)
		}
	}
}

// TryConvertToOptimisticRead releases the hold of st, and returns an optimistic stamp that is valid
// until the next writer acquires the lock, or 0 if the hold does not exist. A valid optimistic
// stamp is returned unchanged. Java's tryConvertToOptimisticRead(stamp).
func (l *StampedLock) TryConvertToOptimisticRead(st Stamp) Stamp {
	sched.Begin("TryConvertToOptimisticRead", l)
	switch {
	case st.IsWriteLock():
		return l.endWrite(st, 0, optimistic)
	case st.IsReadLock():
		return l.releaseReadHold(st)
	case st.IsOptimisticRead() && l.Validate(st):
		return st
	}
	return 0
}
