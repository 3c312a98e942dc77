//go:build race

package rwlock

import (
	"runtime"
	"sync/atomic"
	"unsafe"
)

const raceEnabled = true

// stampedWord is the state word under the race detector. For the detector, atomic operations on
// one variable order all goroutines that perform them. The counting of readers would then order
// the readers of a StampedLock, and the detector would not report two writes under the read lock
// that happen one after the other. Therefore the detector ignores the operations on the word,
// and is told the order between holds instead, as in sync.RWMutex:
//
//	a release by a writer  ->  each later acquisition, and each later optimistic stamp
//	a release by a reader  ->  each later acquisition by a writer
//
// The queue's mutex still orders readers that had to wait.
type stampedWord struct {
	word atomic.Uint64 // its address stands for the releases by writers
	read [8]byte       // its address stands for the releases by readers
}

func (w *stampedWord) Load() uint64 {
	runtime.RaceDisable()
	defer runtime.RaceEnable()
	return w.word.Load()
}

func (w *stampedWord) Store(to uint64) {
	runtime.RaceDisable()
	defer runtime.RaceEnable()
	w.word.Store(to)
}

func (w *stampedWord) CompareAndSwap(from, to uint64) bool {
	runtime.RaceDisable()
	defer runtime.RaceEnable()
	return w.word.CompareAndSwap(from, to)
}

// afterWrites orders the caller after all releases by writers.
func (w *stampedWord) afterWrites() { runtime.RaceAcquire(unsafe.Pointer(&w.word)) }

// afterAll orders the caller after all releases.
func (w *stampedWord) afterAll() {
	w.afterWrites()
	runtime.RaceAcquire(unsafe.Pointer(&w.read))
}

// beforeWriteEnds comes before the step that ends a write hold.
func (w *stampedWord) beforeWriteEnds() { runtime.RaceReleaseMerge(unsafe.Pointer(&w.word)) }

// beforeReadEnds comes before the step that ends a read hold.
func (w *stampedWord) beforeReadEnds() { runtime.RaceReleaseMerge(unsafe.Pointer(&w.read)) }
