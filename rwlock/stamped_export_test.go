package rwlock

import "fmt"

// MaxStampedOverflow is how many read holds a StampedLock counts beyond StampedWordReaders.
const (
	MaxStampedOverflow = maxOverflow
	StampedWordReaders = readers / reader
	StampedMaxLost     = maxLost
)

// SetStampedVersion makes the next stamps of l, which nobody uses, those of version v.
func SetStampedVersion(l *StampedLock, v uint64) { l.state.Store(v << versionShift) }

// StampedVersion returns the version that st is of.
func StampedVersion(st Stamp) uint64 { return uint64(st) >> versionShift }

// SetStampedOverflow makes l, for which the word has no room for more read holds, count n beyond it.
func SetStampedOverflow(l *StampedLock, n int) {
	l.guard.Lock()
	defer l.guard.Unlock()
	l.overflow = n
}

// StampedReserved reports whether the next release is owed to a waiter.
func StampedReserved(l *StampedLock) bool { return l.state.Load()&reserved != 0 }

// AddStampedReader is the second half of taking a read hold beyond the bits of the word. The first was
// to read the word, and is when AddStampedReader is called.
func AddStampedReader(l *StampedLock) (finish func() (ok, full bool)) {
	s := l.state.Load()
	return func() (ok, full bool) { return l.addReader(s) }
}

// RemoveStampedReader is the same for giving one back.
func RemoveStampedReader(l *StampedLock) (finish func() bool) {
	s := l.state.Load()
	return func() bool { return l.removeReader(s) }
}

// BeginStampedWake does the first half of a wake-up, and returns the second: those who sleep are out of the
// list, and not yet unparked.
func BeginStampedWake(l *StampedLock) (finish func()) {
	l.guard.Lock()
	defer l.guard.Unlock()
	first := l.clearList()
	return func() { unpark(first) }
}

// VerifyStamped returns what is wrong with l while everybody rests: its word must be a legal one, and
// agree with the lists.
func VerifyStamped(l *StampedLock) error {
	l.guard.Lock()
	defer l.guard.Unlock()
	s := l.state.Load()
	asleep := 0
	for n, prev := l.heads, (*sleeper)(nil); n != nil; n, prev = n.next, n {
		if !n.listed || n.prev != prev {
			return fmt.Errorf("sleeper %d is not in order: %+v", asleep, n)
		}
		asleep++
	}
	switch {
	case s&writing != 0 && s&readers != 0:
		return fmt.Errorf("word %#x: held for writing and reading", s)
	case (s&queued != 0) != (l.waiting > 0):
		return fmt.Errorf("word %#x, but %d wait", s, l.waiting)
	case (s&pending != 0) != (l.writers > 0) || l.writers > l.waiting:
		return fmt.Errorf("word %#x, but %d of %d who wait are writers", s, l.writers, l.waiting)
	case s&(parked|reserved) != 0 && s&queued == 0:
		return fmt.Errorf("word %#x speaks of sleepers, and nobody waits", s)
	case asleep != l.asleep:
		return fmt.Errorf("%d sleepers, counted as %d", asleep, l.asleep)
	case asleep > 0 && s&parked == 0:
		return fmt.Errorf("word %#x does not speak of %d sleepers", s, asleep)
	case asleep+l.gate.Len() != l.waiting:
		return fmt.Errorf("%d wait, of whom %d sleep and %d are at the gate", l.waiting, asleep, l.gate.Len())
	case l.overflow != 0 && s&readers != readers:
		return fmt.Errorf("word %#x, but %d read holds more", s, l.overflow)
	case s&(writing|readers) == 0 && s&parked != 0:
		return fmt.Errorf("word %#x: free, with sleepers", s)
	}
	return nil
}
