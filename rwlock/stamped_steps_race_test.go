//go:build race

package rwlock

import (
	"fmt"
	"iter"
	"testing"

	"github.com/stretchr/testify/require"
)

// A goroutine may stop before any access to the words of a lock, and others use the lock meanwhile.
// These tests try all places. Build with the race detector: other builds cannot be interrupted.

// others has the holds of other goroutines.
type others struct {
	l     *StampedLock
	write Stamp
	reads []Stamp
}

// act carries out the operations of the letters. None of them waits.
func (o *others) act(letters string) {
	for _, letter := range letters {
		switch letter {
		case 'w':
			if st := o.l.TryWriteLock(); st != 0 {
				o.write = st
			}
		case 'u':
			if o.write != 0 {
				o.l.UnlockWrite(o.write)
				o.write = 0
			}
		case 'r':
			if st := o.l.TryReadLock(); st != 0 {
				o.reads = append(o.reads, st)
			}
		case 'l':
			if n := len(o.reads); n > 0 {
				o.l.UnlockRead(o.reads[n-1])
				o.reads = o.reads[:n-1]
			}
		case 'o': // open the table
			o.l.bias()
		case 'f': // fold
			o.l.countReads()
		}
	}
}

// breakAt has the operations of others at one place.
type breakAt struct {
	access int // the number of the access
	acts   string
}

// run calls op, and lets others act at breaks. It reports whether the last place was reached. A
// place does not count while op has the guard: there others can only wait.
func (o *others) run(op func(), breaks ...breakAt) (reached bool) {
	n := 0
	interrupt = func() {
		if len(breaks) == 0 || !o.l.guard.TryLock() {
			return
		}
		o.l.guard.Unlock()
		if n++; n == breaks[0].access {
			acts, goOn := breaks[0].acts, interrupt
			breaks = breaks[1:]
			interrupt = nil
			o.act(acts)
			interrupt = goOn
		}
	}
	op()
	interrupt = nil
	return len(breaks) == 0
}

// words yields all sequences of one to n letters of "wurlof".
func words(n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		last := []string{""}
		for range n {
			var longer []string
			for _, w := range last {
				for _, letter := range "wurlof" {
					longer = append(longer, w+string(letter))
				}
			}
			for _, w := range longer {
				if !yield(w) {
					return
				}
			}
			last = longer
		}
	}
}

// interruptions calls f with the possible operations of others at one place, and at two. It goes on
// with later places for as long as f reports that it has reached the last place.
func interruptions(f func(breaks ...breakAt) (reached bool)) {
	for acts := range words(3) {
		for at := 1; f(breakAt{at, acts}); at++ {
		}
	}
	for first := range words(1) {
		for _, second := range []string{"u", "uo", "uof", "f", "o", "of", "l", "wu", "wuo"} {
			for at := 1; at < 8; at++ {
				for later := at + 1; f(breakAt{at, first}, breakAt{later, second}); later++ {
				}
			}
		}
	}
}

// operations are interrupted. Each begins with the stamp of a read hold, and returns the stamp of
// its hold in the end, or 0.
var operations = map[string]func(l *StampedLock, read Stamp) Stamp{
	"UnlockRead": func(l *StampedLock, read Stamp) Stamp {
		l.UnlockRead(read)
		return 0
	},
	"TryReadLock": func(l *StampedLock, read Stamp) Stamp {
		st := l.TryReadLock()
		l.UnlockRead(read)
		return st
	},
	"TryReadLock of a free lock": func(l *StampedLock, read Stamp) Stamp { return l.TryReadLock() },
	"TryWriteLock":               func(l *StampedLock, read Stamp) Stamp { return l.TryWriteLock() },
	"TryConvertToWriteLock": func(l *StampedLock, read Stamp) Stamp {
		if st := l.TryConvertToWriteLock(read); st != 0 {
			return st
		}
		return read
	},
}

func TestOthersMayComeBetweenAnyTwoAccesses(t *testing.T) {
	for name, op := range operations {
		for _, start := range []string{"", "o", "w", "ow"} {
			t.Run(fmt.Sprintf("%s/%q", name, start), func(t *testing.T) {
				interruptions(func(breaks ...breakAt) (reached bool) {
					defer func() {
						interrupt = nil
						if p := recover(); p != nil {
							require.Fail(t, "panic", "%v: %v", breaks, p)
						}
					}()
					return interrupted(t, op, name != "TryReadLock of a free lock" && name != "TryWriteLock", start, breaks)
				})
			})
		}
	}
}

func interrupted(t *testing.T, op func(*StampedLock, Stamp) Stamp, reads bool, start string, breaks []breakAt) bool {
	l := new(StampedLock)
	o := &others{l: l}
	var read, st Stamp
	if reads {
		if start != "" && start[0] == 'o' {
			l.bias()
		}
		read = l.ReadLock()
	} else {
		o.act(start)
	}
	reached := o.run(func() { st = op(l, read) }, breaks...)
	s := l.countReads()
	held := len(o.reads)
	switch {
	case st.IsReadLock():
		held++
		require.Zero(t, o.write, "%v: a reader beside a writer", breaks)
	case st.IsWriteLock():
		require.Zero(t, o.write, "%v: two writers", breaks)
		require.Zero(t, held, "%v: a writer beside readers", breaks)
	}
	require.Equal(t, held, int(s&readers/reader), "%v: read holds", breaks)
	if st != 0 {
		require.True(t, l.Validate(st), "%v: the stamp is of another version", breaks)
		l.Unlock(st)
	}
	for range o.reads {
		require.True(t, l.Validate(o.reads[0]), "%v: a stamp of others is of another version", breaks)
	}
	o.act("u")
	for len(o.reads) > 0 {
		o.act("l")
	}
	st = l.TryWriteLock()
	require.NotZero(t, st, "%v: the lock is not free", breaks)
	l.UnlockWrite(st)
	return reached
}
