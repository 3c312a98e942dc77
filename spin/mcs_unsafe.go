package spin

import (
	"sync/atomic"
	"unsafe"
)

// The fast paths change tail as a number. The compare-and-swap of a pointer is a call, which asks
// for the garbage collector's write barrier first. A lock and unlock then takes 9.9 ns instead of
// 4.3 (AMD EPYC, Go 1.26.8). No barrier is needed here. The collector has no interest in nil, nor
// in the address of bare, which is a variable.

// take acquires the lock if it is free.
func (m *MCS) take() bool {
	return atomic.CompareAndSwapUintptr(m.number(), 0, uintptr(unsafe.Pointer(&bare)))
}

// free frees the lock if its holder has no node, and nobody waits.
func (m *MCS) free() bool {
	return atomic.CompareAndSwapUintptr(m.number(), uintptr(unsafe.Pointer(&bare)), 0)
}

func (m *MCS) number() *uintptr { return (*uintptr)(unsafe.Pointer(&m.tail)) }
