package filelock

import (
	"context"
	"math"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The operations of futex(2), not private to a process.
const (
	futexWait = 0
	futexWake = 1
)

// lower returns where the lower half of the word is, which has the bit for those who sleep.
func (m *mapping) lower() unsafe.Pointer {
	p := unsafe.Pointer(&m.word)
	if one := uint32(1); *(*byte)(unsafe.Pointer(&one)) == 0 {
		p = unsafe.Add(p, 4)
	}
	return p
}

// wake wakes n of those who sleep, in all processes.
func (m *mapping) wake(n int) {
	unix.Syscall6(unix.SYS_FUTEX, uintptr(m.lower()), futexWake, uintptr(n), 0, 0, 0)
}

// sleeper is one who sleeps until the word changes. A thread of the process sleeps with it.
type sleeper struct {
	m     *mapping
	ended atomic.Bool
	gone  chan struct{}
	stops []func() bool
}

// newSleeper returns a sleeper that does not sleep on when one of the contexts ends. The sleep of a thread in the kernel
// cannot be ended but by waking all
// that sleep there, who go to sleep again; and once is not enough if it is just about to.
func newSleeper(m *mapping, contexts ...context.Context) *sleeper {
	s := &sleeper{m: m, gone: make(chan struct{})}
	for _, ctx := range contexts {
		if ctx.Done() == nil {
			continue
		}
		done := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(done)
			for pause := 20 * time.Microsecond; !s.ended.Load(); pause = min(2*pause, time.Millisecond) {
				m.wake(math.MaxInt32)
				select {
				case <-s.gone:
				case <-time.After(pause):
				}
			}
		})
		s.stops = append(s.stops, func() bool {
			if !stop() {
				<-done // the mapping may be gone after that
			}
			return true
		})
	}
	return s
}

// sleep returns when the word is not w, when woken, or after d. It reports whether it was d.
func (s *sleeper) sleep(w uint64, d time.Duration) bool {
	timeout := unix.NsecToTimespec(int64(d))
	_, _, errno := unix.Syscall6(unix.SYS_FUTEX, uintptr(s.m.lower()), futexWait, uintptr(uint32(w)),
		uintptr(unsafe.Pointer(&timeout)), 0, 0)
	return errno == unix.ETIMEDOUT
}

func (s *sleeper) end() {
	s.ended.Store(true)
	close(s.gone)
	for _, stop := range s.stops {
		stop()
	}
}
