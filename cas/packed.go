package cas

import (
	"sync/atomic"

	"github.com/jucgo/locks/internal/sched"
)

// Packed is a value of 32 bits and a stamp of 32 bits in one word, read and changed as one. Use it
// instead of [Stamped] if the value is an index, a count or a state, and not a pointer. Java lacks
// such a type. Java programs pack both into an AtomicLong.
//
// The zero Packed has value 0 and stamp 0. It must not be copied after first use. A change costs
// one compare-and-swap, and a load is a plain load on amd64. Neither allocates.
//
// The stamp wraps after 2^32 changes. A compare-and-swap is deceived if exactly a multiple of 2^32
// changes come between its read and its swap, and the value is the old value too. At one change
// every 10 ns, 2^32 changes take 43 s, and the goroutine must be suspended for all of that time.
// After such a suspension, whose length does not depend on the changes, the probability is at most
// 2^-32. If that is too much, use the 64 bits of a Stamped, which never wrap.
type Packed struct {
	word atomic.Uint64 // the value, and above it the stamp
}

func pack(value, stamp uint32) uint64 { return uint64(stamp)<<32 | uint64(value) }

// Load returns the value and its stamp, read at one moment.
func (p *Packed) Load() (value, stamp uint32) {
	sched.Begin("Load", p)
	w := p.word.Load()
	return uint32(w), uint32(w >> 32)
}

// Store sets the value and the stamp unconditionally.
func (p *Packed) Store(value, stamp uint32) {
	sched.Begin("Store", p)
	p.word.Store(pack(value, stamp))
}

// CompareAndSwap sets the value and the stamp if both are as expected, and reports whether they
// were. It does not fail for any other reason. The arguments have the order of [Stamped]'s.
func (p *Packed) CompareAndSwap(oldValue, newValue, oldStamp, newStamp uint32) bool {
	sched.Begin("CompareAndSwap", p)
	return p.word.CompareAndSwap(pack(oldValue, oldStamp), pack(newValue, newStamp))
}

// AttemptStamp sets the stamp if the value is as given, and reports whether it was. It does not
// fail for any other reason.
func (p *Packed) AttemptStamp(value, stamp uint32) bool {
	sched.Begin("AttemptStamp", p)
	for {
		w := p.word.Load()
		if uint32(w) != value {
			return false
		}
		sched.Step()
		if p.word.CompareAndSwap(w, pack(value, stamp)) {
			return true
		}
	}
}
