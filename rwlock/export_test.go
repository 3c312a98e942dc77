package rwlock

import (
	"reflect"
	"unsafe"

	"github.com/jucgo/locks/internal/goid"
)

// SetWriteHolds gives the writer of rw n write holds: nobody can wait for MaxHolds real holds.
func SetWriteHolds(rw *RWMutex, n int) { rw.s.Holds = int32(n - 1) }

// SetReadHolds makes the calling goroutine, which writes and reads, or for which HasPlace is true,
// believe in n read holds.
func SetReadHolds(rw *RWMutex, n int) {
	me := goid.Get()
	if rw.s.HeldBy(me) {
		set(reflect.ValueOf(&rw.s).Elem().FieldByName("covered"), uint32(n))
	} else if f := rw.s.First(me); f != nil {
		set(reflect.ValueOf(f).Elem().FieldByName("reentries"), uint32(n-1))
	} else {
		set(reflect.ValueOf(rw.s.Slot(me)).Elem().FieldByName("reentries"), uint32(n-1))
	}
}

// HasPlace reports whether the calling goroutine is the first reader, or reads in the slot of its
// hash.
func HasPlace(rw *RWMutex) bool {
	me := goid.Get()
	o := rw.s.Slot(me).Owner()
	return rw.s.First(me) != nil || o == me || o == -me
}

// set sets a syncq count, which is one uint32 whether or not the race detector is on.
func set(count reflect.Value, n uint32) { *(*uint32)(unsafe.Pointer(count.UnsafeAddr())) = n }

// IsBiased reports whether rw is biased to readers.
func IsBiased(rw *RWMutex) bool { return rw.s.Biased() }
