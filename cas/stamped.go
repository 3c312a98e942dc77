package cas

// Stamped is a reference to a T and a stamp, read and changed as one. It is the twin of Java's
// AtomicStampedReference: references are compared by identity, that is as pointers, never by what
// they point to. What they point to must not be changed while it is shared, other than
// atomically.
//
// The zero Stamped has the nil reference and stamp 0. It must not be copied after first use. A
// load costs two dependent reads. A change costs one compare-and-swap and one allocation of 16
// bytes for the new pair; an operation that fails, or has nothing to change, allocates nothing
// unless it lost a race. Where 32 bits will do instead of a pointer, [Packed] never allocates.
//
// What the stamp means is up to the caller, who should give each change one that was not there
// before, such as the old one plus 1. With 64 bits that never wraps.
type Stamped[T any] struct {
	r reference[T, uint64]
}

// NewStamped returns a Stamped with a reference and a stamp to start with.
func NewStamped[T any](ref *T, stamp uint64) *Stamped[T] {
	s := new(Stamped[T])
	s.r.store(ref, stamp)
	return s
}

// Load returns the reference and the stamp that it had at that moment. Java's get.
func (s *Stamped[T]) Load() (ref *T, stamp uint64) { return s.r.load() }

// Store sets both, whatever they were. Java's set.
func (s *Stamped[T]) Store(ref *T, stamp uint64) { s.r.store(ref, stamp) }

// CompareAndSwap changes both, or either of them, if both are as expected, and reports whether
// they were. It does not fail for any other reason. Java's compareAndSet, with the arguments in
// the same order.
func (s *Stamped[T]) CompareAndSwap(oldRef, newRef *T, oldStamp, newStamp uint64) bool {
	return s.r.compareAndSwap(oldRef, newRef, oldStamp, newStamp)
}

// AttemptStamp sets the stamp, whatever it was, if the reference is ref, and reports whether it
// was. Unlike Java's attemptStamp it does not fail for any other reason.
func (s *Stamped[T]) AttemptStamp(ref *T, stamp uint64) bool { return s.r.attempt(ref, stamp) }
