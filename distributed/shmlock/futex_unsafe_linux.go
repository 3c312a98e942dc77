package shmlock

import (
	"context"
	"math"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Operations of futex(2) between processes.
const (
	futexWait = 0
	futexWake = 1
)

// lower returns the address of the word's lower half, which has the sleepers bit.
func (m *mapping) lower() unsafe.Pointer {
	p := unsafe.Pointer(m.word)
	if one := uint32(1); *(*byte)(unsafe.Pointer(&one)) == 0 {
		p = unsafe.Add(p, 4)
	}
	return p
}

// wake wakes up to n sleepers, in all processes.
func (m *mapping) wake(n int) {
	unix.Syscall6(unix.SYS_FUTEX, uintptr(m.lower()), futexWake, uintptr(n), 0, 0, 0)
}

// sleeper sleeps until the word changes. It occupies a thread.
type sleeper struct {
	m   *mapping
	end func()
}

// newSleeper returns a sleeper that wakes up when ctx ends. A thread that sleeps in the kernel can
// be woken only together with all other sleepers, which then go to sleep again. One wake-up is not
// enough if the thread is just about to sleep, so newSleeper repeats the wake-up.
func newSleeper(ctx context.Context, m *mapping) *sleeper {
	gone, done := make(chan struct{}), make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		for pause := 20 * time.Microsecond; ; pause = min(2*pause, time.Millisecond) {
			m.wake(math.MaxInt32)
			select {
			case <-gone:
				return
			case <-time.After(pause):
			}
		}
	})
	return &sleeper{m, func() {
		close(gone)
		if !stop() {
			<-done // the mapping may be gone afterwards
		}
	}}
}

// sleep returns when the word is not w, on a wake-up, or after d. It reports whether d is over.
func (s *sleeper) sleep(w uint64, d time.Duration) bool {
	timeout := unix.NsecToTimespec(int64(d))
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(s.m.lower()), futexWait, uintptr(uint32(w)),
		uintptr(unsafe.Pointer(&timeout)), 0, 0)
	return errno == unix.ETIMEDOUT
}
