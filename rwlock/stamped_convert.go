package rwlock

// TryConvertToWriteLock makes a write hold of what st is the stamp of, in one step, and returns the stamp of
// that, or 0. For a write stamp that is st itself. A read hold is converted if it is the only one; if not, it is kept. An
// optimistic stamp gives the write hold if it is valid and nobody holds the lock. Java's tryConvertToWriteLock(stamp).
func (l *StampedLock) TryConvertToWriteLock(st Stamp) Stamp {
	for {
		s := l.state.Load()
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
			return stampOf(to, writing)
		}
	}
}

// TryConvertToReadLock makes a read hold of what st is the stamp of, in one step, and returns the stamp of
// that, or 0. A write hold becomes a read hold, its stamp dies, and readers that wait in front may enter; no writer
// comes in between. For a read stamp whose hold goes on that is st itself. An optimistic stamp gives a read
// hold if it is valid. Java's tryConvertToReadLock(stamp).
func (l *StampedLock) TryConvertToReadLock(st Stamp) Stamp {
	if st.IsWriteLock() {
		return l.endWrite(st, reader, read)
	}
	for {
		s := l.state.Load()
		switch {
		case st == stampOf(s, read):
			if s&readers == 0 {
				return 0
			}
			return st
		case st != stampOf(s, optimistic) || s&writing != 0:
			return 0
		}
		switch ok, full := l.addReader(s); {
		case ok:
			return stampOf(s, read)
		case full:
			return mustCount(tooMany)
		}
	}
}

// TryConvertToOptimisticRead gives the hold back that st is the stamp of, and returns an optimistic stamp
// that is valid until the next writer enters, or 0 if there is no such hold. For an optimistic stamp that is st
// itself if it is valid, else 0. Java's tryConvertToOptimisticRead(stamp).
func (l *StampedLock) TryConvertToOptimisticRead(st Stamp) Stamp {
	switch {
	case st.IsWriteLock():
		return l.endWrite(st, 0, optimistic)
	case st.IsReadLock():
		return l.leaveRead(st)
	case st.IsOptimisticRead() && l.Validate(st):
		return st
	}
	return 0
}
