//go:build race

package fair

import (
	"runtime"
	"unsafe"
)

// order tells the race detector which holds of an RWMutex order their accesses. To the detector,
// atomic operations on one variable order all goroutines that perform them. Readers would then be
// ordered among themselves by their counting, and two writes under the read lock would go
// unreported if they do not meet. So the detector ignores the fast paths' operations on the word,
// and is told the order between holds instead, as sync.RWMutex does it:
//
//	a release by a writer  ->  each later acquisition
//	a release by a reader  ->  each later acquisition by a writer
//
// Readers that had to wait are still ordered by the queue's mutex.
type order struct {
	writes, reads [8]byte // their addresses stand for the releases
}

func (*order) ignore() { runtime.RaceDisable() }
func (*order) heed()   { runtime.RaceEnable() }

// afterWrites orders the caller after all releases by writers.
func (o *order) afterWrites() { runtime.RaceAcquire(unsafe.Pointer(&o.writes)) }

// afterAll orders the caller after all releases.
func (o *order) afterAll() {
	o.afterWrites()
	runtime.RaceAcquire(unsafe.Pointer(&o.reads))
}

// releaseWrite comes before the step that ends a write hold.
func (o *order) releaseWrite() { runtime.RaceReleaseMerge(unsafe.Pointer(&o.writes)) }

// releaseRead comes before the step that ends a read hold.
func (o *order) releaseRead() { runtime.RaceReleaseMerge(unsafe.Pointer(&o.reads)) }
