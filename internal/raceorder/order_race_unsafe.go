//go:build race

package raceorder

import (
	"runtime"
	"unsafe"
)

// Enabled reports whether the race detector is on.
const Enabled = true

// Order describes the holds of one read-write lock. The zero Order has seen no hold.
type Order struct {
	writes, reads [8]byte // their addresses stand for the releases by writers and by readers
}

// Ignore hides the following atomic operations of the goroutine from the detector, until Heed.
func (*Order) Ignore() { runtime.RaceDisable() }

// Heed ends Ignore.
func (*Order) Heed() { runtime.RaceEnable() }

// AfterWrites orders the caller after all releases by writers. A reader calls it once it has the
// lock.
func (o *Order) AfterWrites() { runtime.RaceAcquire(unsafe.Pointer(&o.writes)) }

// AfterAll orders the caller after all releases. A writer calls it once it has the lock.
func (o *Order) AfterAll() {
	o.AfterWrites()
	runtime.RaceAcquire(unsafe.Pointer(&o.reads))
}

// WriteEnds comes before the step that ends a write hold.
func (o *Order) WriteEnds() { runtime.RaceReleaseMerge(unsafe.Pointer(&o.writes)) }

// ReadEnds comes before the step that ends a read hold.
func (o *Order) ReadEnds() { runtime.RaceReleaseMerge(unsafe.Pointer(&o.reads)) }
