package cas

import "github.com/jucgo/locks/internal/sched"

// Marked is a reference to a T and a mark, read and changed as one: Java's
// AtomicMarkableReference. References are compared as pointers, never by their targets. The
// classic use of a Marked is the link to the next node of a lock-free list. The mark keeps other
// goroutines from inserting a node behind a node that is being removed.
//
// The zero Marked has the nil reference and no mark. It must not be copied after first use. A
// load costs two dependent reads. A change costs one compare-and-swap and one allocation of 16
// bytes for the new pair. An operation that fails, or has nothing to change, allocates only if
// it lost a race.
//
// A mark that is set and cleared again leaves no trace. Unlike a stamp it does not protect from
// ABA.
type Marked[T any] struct {
	r reference[T, bool]
}

// NewMarked returns a Marked with a reference and a mark to start with.
func NewMarked[T any](ref *T, mark bool) *Marked[T] {
	m := new(Marked[T])
	m.r.store(ref, mark)
	return m
}

// Load returns the reference and its mark, read at one moment. Java's get.
func (m *Marked[T]) Load() (ref *T, mark bool) {
	if sched.On {
		sched.Begin("Load", m)
	}
	return m.r.load()
}

// Store sets the reference and the mark unconditionally. Java's set.
func (m *Marked[T]) Store(ref *T, mark bool) {
	if sched.On {
		sched.Begin("Store", m)
	}
	m.r.store(ref, mark)
}

// CompareAndSwap sets the reference and the mark if both are as expected, and reports whether
// they were. It does not fail for any other reason. Java's compareAndSet, with the arguments in
// the same order.
func (m *Marked[T]) CompareAndSwap(oldRef, newRef *T, oldMark, newMark bool) bool {
	if sched.On {
		sched.Begin("CompareAndSwap", m)
	}
	return m.r.compareAndSwap(oldRef, newRef, oldMark, newMark)
}

// AttemptMark sets the mark if the reference is ref, and reports whether it was. Unlike Java's
// attemptMark it does not fail for any other reason.
func (m *Marked[T]) AttemptMark(ref *T, mark bool) bool {
	if sched.On {
		sched.Begin("AttemptMark", m)
	}
	return m.r.attempt(ref, mark)
}
