// Package freelist shows ABA: the same list of free slots twice, once with a plain compare-and-swap, which a
// certain schedule corrupts, and once with a stamp, which survives it.
//
// The slots are named by index, and an index that was put back is handed out again. That is what makes
// ABA possible in a language with a garbage collector.
package freelist

// List hands out the slots of a fixed set. Plain and Stamped are the same algorithm, Treiber's stack,
// and differ in what their heads compare.
type List interface {
	// Get takes a free slot, and reports false if there is none. Nobody else
	// gets it until it is put back, if the list works.
	Get() (slot int, ok bool)

	// Put gives a slot back.
	Put(slot int)
}

// Step is called in the middle of Get, between reading the head of the list and swapping it: where the
// scheduler may take the core away for any time, and where others may do anything. first is the slot that
// was read, and next the one behind it, or -1.
type Step func(first, next int)

func (s Step) call(first, next uint32) {
	if s != nil {
		s(int(first)-1, int(next)-1)
	}
}
