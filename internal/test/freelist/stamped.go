package freelist

import (
	"sync/atomic"

	"github.com/jucgo/locks/cas"
)

// Stamped is the correct list: every change of the head changes its stamp. A head that is the same
// slot again is therefore not the same head.
type Stamped struct {
	Step Step

	head cas.Packed      // slot + 1 of the first free one, or 0
	next []atomic.Uint32 // for each free slot, slot + 1 of the one behind it, or 0
}

// NewStamped returns a Stamped with slots 0 to n-1, all free, lowest first.
func NewStamped(n int) *Stamped {
	l := &Stamped{next: make([]atomic.Uint32, n)}
	for slot := n - 1; slot >= 0; slot-- {
		l.Put(slot)
	}
	return l
}

func (l *Stamped) Get() (slot int, ok bool) {
	for {
		first, stamp := l.head.Load()
		if first == 0 {
			return 0, false
		}
		next := l.next[first-1].Load()
		l.Step.call(first, next)
		if l.head.CompareAndSwap(first, next, stamp, stamp+1) {
			return int(first - 1), true
		}
	}
}

func (l *Stamped) Put(slot int) {
	for {
		first, stamp := l.head.Load()
		l.next[slot].Store(first)
		if l.head.CompareAndSwap(first, uint32(slot+1), stamp, stamp+1) {
			return
		}
	}
}
