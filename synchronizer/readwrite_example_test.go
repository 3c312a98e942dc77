package synchronizer_test

import (
	"fmt"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/synchronizer"
)

// The arguments of readWriteRules, and the word of a writer.
const (
	toRead  = 1
	toWrite = 1 << 32
)

// readWriteRules: the word is the number of readers, or toWrite while a writer writes.
type readWriteRules struct{}

func (readWriteRules) Acquire(w, arg uint64) (uint64, bool) {
	if arg == toWrite {
		return w + arg, w == 0
	}
	return w + arg, w < toWrite-1
}

func (readWriteRules) Release(w, arg uint64) (uint64, bool) {
	return w - arg, w >= arg && (w == toWrite) == (arg == toWrite)
}

// ReadWriteLock lets several goroutines read, or one write. A release of a writer admits all
// readers in front at once. Readers that come later do not overtake a writer that waits.
type ReadWriteLock struct {
	s synchronizer.Sync[readWriteRules]
}

func (l *ReadWriteLock) RLock()   { l.s.Acquire(toRead) }
func (l *ReadWriteLock) Lock()    { l.s.Acquire(toWrite) }
func (l *ReadWriteLock) RUnlock() { l.release(toRead) }
func (l *ReadWriteLock) Unlock()  { l.release(toWrite) }

func (l *ReadWriteLock) release(hold uint64) {
	if !l.s.Release(hold) {
		panic(locks.ErrNotHeld)
	}
}

func ExampleSync_readWriteLock() {
	var l ReadWriteLock
	l.RLock()
	l.RLock()
	fmt.Println("readers:", l.s.Word(), "writer:", l.s.TryAcquire(toWrite))
	l.RUnlock()
	l.RUnlock()
	l.Lock()
	fmt.Println("reader:", l.s.TryAcquire(toRead))
	l.Unlock()
	// Output:
	// readers: 2 writer: false
	// reader: false
}
