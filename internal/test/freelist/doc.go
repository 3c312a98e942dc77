// Package freelist shows ABA. It has the same list of free slots twice: once with a plain
// compare-and-swap, which a certain schedule corrupts, and once with a stamp, which survives it.
//
// Slots are named by index, and an index is used again after its slot was put back. That makes ABA
// possible in a language with a garbage collector.
package freelist

// List hands out the slots of a fixed set. Plain and Stamped are the same algorithm, Treiber's
// stack, and differ in the words that their heads compare.
type List interface {
	// Get takes a free slot, and reports false if there is none. No other caller gets the slot
	// until it is put back, if the list works.
	Get() (slot int, ok bool)

	// Put gives a slot back.
	Put(slot int)
}

// Step is called in the middle of Get, after it has read the head of the list and before it swaps
// the head. The scheduler may stop a goroutine there for any time, and other goroutines may do
// anything. first is the slot that was read. next is the slot behind it, or -1.
type Step func(first, next int)

func (s Step) call(first, next uint32) {
	if s != nil {
		s(int(first)-1, int(next)-1)
	}
}
