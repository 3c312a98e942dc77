package cas

import "sync/atomic"

// Packed is a value of 32 bits and a stamp of 32 bits in one word, read and changed as one. It
// does what [Stamped] does where the value is an index, a count or a state instead of a pointer.
// Java has no such type; there, too, people pack both into an AtomicLong.
//
// The zero Packed has value 0 and stamp 0. It must not be copied after first use. A change costs
// one compare-and-swap, a load is a plain one on amd64, and neither ever allocates.
//
// The stamp wraps after 2^32 changes. A compare-and-swap is deceived if, between its read and its
// swap, the stamp was changed a multiple of 2^32 times to the last one, and the value is the old
// one too. At one change every 10 ns that takes 43 s, all of which the goroutine has to be
// suspended for; if it is, for a time that has nothing to do with the changes, then the
// probability is at most 2^-32, one in 4 billion such suspensions. Where that is too much, the 64
// bits of a Stamped never wrap.
type Packed struct {
	word atomic.Uint64 // the value, and above it the stamp
}

func pack(value, stamp uint32) uint64 { return uint64(stamp)<<32 | uint64(value) }

// Load returns the value and the stamp that it had at that moment.
func (p *Packed) Load() (value, stamp uint32) {
	w := p.word.Load()
	return uint32(w), uint32(w >> 32)
}

// Store sets both, whatever they were.
func (p *Packed) Store(value, stamp uint32) { p.word.Store(pack(value, stamp)) }

// CompareAndSwap changes both, or either of them, if both are as expected, and reports whether
// they were. It does not fail for any other reason. The order of the arguments is that of
// [Stamped].
func (p *Packed) CompareAndSwap(oldValue, newValue, oldStamp, newStamp uint32) bool {
	return p.word.CompareAndSwap(pack(oldValue, oldStamp), pack(newValue, newStamp))
}

// AttemptStamp sets the stamp, whatever it was, if the value is as given, and reports whether it
// was. It does not fail for any other reason.
func (p *Packed) AttemptStamp(value, stamp uint32) bool {
	for {
		w := p.word.Load()
		if uint32(w) != value {
			return false
		}
		if p.word.CompareAndSwap(w, pack(value, stamp)) {
			return true
		}
	}
}
