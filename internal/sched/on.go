//go:build lockexplore

package sched

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// On reports whether the locks announce their operations.
const On = true

// Scheduler decides when the goroutines of a test run. Its methods are called by these goroutines,
// and by all others that use locks meanwhile.
type Scheduler interface {
	// Begin announces an operation of a lock, and returns when the goroutine may go on. If nests is
	// true, the announcements up to End are part of the operation, and are to be ignored.
	Begin(op string, lock any, nests bool)

	// Step announces a step inside of the operation that has begun and does not nest.
	Step()

	// End ends an operation that nests, and tells whether it has done what its name says.
	End(ok bool)

	// Parks announces that the goroutine is about to wait at p.
	Parks(p interface{ Unpark() })

	// Limited announces that the goroutine is about to wait, and that the wait can end by a time
	// limit, or by a context without a deadline if d is 0.
	Limited(d time.Duration)

	// Under announces the context of the operation that has begun.
	Under(ctx context.Context)

	// Woken announces the end of a wait, and returns when the goroutine may go on.
	Woken()

	// Address returns a number that stands for a lock's address, and is the same in each run.
	Address(address uintptr) uintptr

	// Explored reports whether the calling goroutine is one of the test.
	Explored() bool
}

var scheduler atomic.Pointer[Scheduler]

// Set makes s the scheduler. A nil s removes the scheduler.
func Set(s Scheduler) {
	if s == nil {
		scheduler.Store(nil)
		return
	}
	scheduler.Store(&s)
}

// Begin announces an operation that cannot fail.
func Begin(op string, lock any) {
	if s := scheduler.Load(); s != nil {
		(*s).Begin(op, lock, false)
	}
}

// Step announces a step inside of an operation that has begun, such as the swap after a load. Only
// tests of the operation itself explore it: for its users, the operation happens at one moment.
func Step() {
	if s := scheduler.Load(); s != nil {
		(*s).Step()
	}
}

// Amount returns the name of an operation that takes or gives n at once.
func Amount(op string, n int64) string {
	if n == 1 {
		return op
	}
	return fmt.Sprintf("%s(%d)", op, n)
}

// Enter announces an operation that cannot fail and consists of other operations. The caller calls
// the function that it returns when the operation is over.
func Enter(op string, lock any) func() {
	s := scheduler.Load()
	if s == nil {
		return func() {}
	}
	(*s).Begin(op, lock, true)
	return func() { (*s).End(true) }
}

// Tried announces an operation whose result is zero if it fails. The caller passes the result to
// the function that Tried returns.
func Tried[T comparable](op string, lock any) func(*T) {
	s := scheduler.Load()
	if s == nil {
		return func(*T) {}
	}
	(*s).Begin(op, lock, true)
	return func(result *T) {
		var zero T
		(*s).End(*result != zero)
	}
}

// Asked announces an operation that fails with an error. The caller passes the error to the
// function that Asked returns.
func Asked(op string, lock any) func(*error) {
	s := scheduler.Load()
	if s == nil {
		return func(*error) {}
	}
	(*s).Begin(op, lock, true)
	return func(err *error) { (*s).End(*err == nil) }
}

// Parks announces a wait. See [Scheduler].
func Parks(p interface{ Unpark() }) {
	if s := scheduler.Load(); s != nil {
		(*s).Parks(p)
	}
}

// Limited announces a wait with a limit. See [Scheduler].
func Limited(d time.Duration) {
	if s := scheduler.Load(); s != nil {
		(*s).Limited(d)
	}
}

// Under announces the context of an operation. See [Scheduler].
func Under(ctx context.Context) {
	if s := scheduler.Load(); s != nil {
		(*s).Under(ctx)
	}
}

// Woken announces the end of a wait. See [Scheduler].
func Woken() {
	if s := scheduler.Load(); s != nil {
		(*s).Woken()
	}
}

// Explored reports whether a scheduler has the calling goroutine. Spinning is in vain then: no
// other goroutine runs.
func Explored() bool {
	s := scheduler.Load()
	return s != nil && (*s).Explored()
}

// Address returns the number by which the lock at this address is ordered among locks. The
// addresses themselves differ from run to run.
func Address(address uintptr) uintptr {
	if s := scheduler.Load(); s != nil {
		return (*s).Address(address)
	}
	return address
}
