package cas

import "github.com/jucgo/locks/internal/sched"

// Stamped is a reference to a T and a stamp, read and changed as one: Java's
// AtomicStampedReference. References are compared as pointers, never by their targets. A target
// must not be changed while it is shared, except atomically.
//
// The zero Stamped has the nil reference and stamp 0. It must not be copied after first use. A
// load costs two dependent reads. A change costs one compare-and-swap and one allocation of 16
// bytes for the new pair. An operation that fails, or has nothing to change, allocates only if
// it lost a race. If 32 bits suffice instead of a pointer, use [Packed], which never allocates.
//
// The caller decides what the stamp means. Each change should have a stamp that was not there
// before, such as the old one plus 1. With 64 bits the stamp never wraps.
type Stamped[T any] struct {
	r reference[T, uint64]
}

// NewStamped returns a Stamped with a reference and a stamp to start with.
func NewStamped[T any](ref *T, stamp uint64) *Stamped[T] {
	s := new(Stamped[T])
	s.r.store(ref, stamp)
	return s
}

// Load returns the reference and its stamp, read at one moment. Java's get.
func (s *Stamped[T]) Load() (ref *T, stamp uint64) {
	if sched.On {
		sched.Begin("Load", s)
	}
	return s.r.load()
}

// Store sets the reference and the stamp unconditionally. Java's set.
func (s *Stamped[T]) Store(ref *T, stamp uint64) {
	if sched.On {
		sched.Begin("Store", s)
	}
	s.r.store(ref, stamp)
}

// CompareAndSwap sets the reference and the stamp if both are as expected, and reports whether
// they were. It does not fail for any other reason. Java's compareAndSet, with the arguments in
// the same order.
func (s *Stamped[T]) CompareAndSwap(oldRef, newRef *T, oldStamp, newStamp uint64) bool {
	if sched.On {
		sched.Begin("CompareAndSwap", s)
	}
	return s.r.compareAndSwap(oldRef, newRef, oldStamp, newStamp)
}

// AttemptStamp sets the stamp if the reference is ref, and reports whether it was. Unlike Java's
// attemptStamp it does not fail for any other reason.
func (s *Stamped[T]) AttemptStamp(ref *T, stamp uint64) bool {
	if sched.On {
		sched.Begin("AttemptStamp", s)
	}
	return s.r.attempt(ref, stamp)
}
