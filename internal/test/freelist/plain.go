package freelist

import "sync/atomic"

// Plain is the broken one: its Get takes a head that is the same slot as before for a list that is
// the same as before.
type Plain struct {
	Step Step

	head atomic.Uint32   // slot + 1 of the first free one, or 0
	next []atomic.Uint32 // for each free slot, slot + 1 of the one behind it, or 0
}

// NewPlain returns a Plain with slots 0 to n-1, all free, lowest first.
func NewPlain(n int) *Plain {
	l := &Plain{next: make([]atomic.Uint32, n)}
	for slot := n - 1; slot >= 0; slot-- {
		l.Put(slot)
	}
	return l
}

func (l *Plain) Get() (slot int, ok bool) {
	for {
		first := l.head.Load()
		if first == 0 {
			return 0, false
		}
		next := l.next[first-1].Load()
		l.Step.call(first, next)
		if l.head.CompareAndSwap(first, next) { // next may not be free any more
			return int(first - 1), true
		}
	}
}

func (l *Plain) Put(slot int) {
	for {
		first := l.head.Load()
		l.next[slot].Store(first)
		if l.head.CompareAndSwap(first, uint32(slot+1)) {
			return
		}
	}
}
