package rwlock

import (
	"reflect"
	"unsafe"

	"github.com/jucgo/locks/internal/goid"
)

// SetWriteHolds makes the writer of rw believe in n write holds: nobody can wait for MaxHolds
// real ones.
func SetWriteHolds(rw *RWMutex, n int) { rw.s.Holds = int32(n - 1) }

// SetReadHolds makes the calling goroutine, which writes and reads, or reads in the slot of its
// bucket, believe in n read holds.
func SetReadHolds(rw *RWMutex, n int) {
	me := goid.Get()
	if rw.s.HeldBy(me) {
		set(reflect.ValueOf(&rw.s).Elem().FieldByName("covered"), uint32(n))
	} else {
		set(reflect.ValueOf(rw.s.Slot(me)).Elem().FieldByName("holds"), uint32(n-1))
	}
}

// HasSlot reports whether the calling goroutine reads in the slot of its bucket.
func HasSlot(rw *RWMutex) bool {
	o := rw.s.Slot(goid.Get()).Owner()
	return o == goid.Get() || o == -goid.Get()
}

// set sets a syncq count, which is one uint32 whether or not the race detector is on.
func set(count reflect.Value, n uint32) { *(*uint32)(unsafe.Pointer(count.UnsafeAddr())) = n }

// IsBiased reports whether rw is biased to readers.
func IsBiased(rw *RWMutex) bool { return rw.s.Biased() }
