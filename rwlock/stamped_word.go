package rwlock

import (
	"sync/atomic"

	"github.com/jucgo/locks/internal/raceorder"
)

// interrupt, if not nil, is called before each access to a stampedWord. Tests with the race
// detector set it: no other build looks at it.
var interrupt func()

// stampedWord is the state word. A validated optimistic read is ordered like an acquisition by a
// reader.
type stampedWord struct {
	raceorder.Order
	word atomic.Uint64
}

func (w *stampedWord) Load() uint64 {
	w.begin()
	v := w.word.Load()
	w.Heed()
	return v
}

func (w *stampedWord) Store(to uint64) {
	w.begin()
	w.word.Store(to)
	w.Heed()
}

func (w *stampedWord) Add(by uint64) uint64 {
	w.begin()
	v := w.word.Add(by)
	w.Heed()
	return v
}

func (w *stampedWord) CompareAndSwap(from, to uint64) bool {
	w.begin()
	ok := w.word.CompareAndSwap(from, to)
	w.Heed()
	return ok
}

// begin begins an access, which Heed ends.
func (w *stampedWord) begin() {
	if raceorder.Enabled && interrupt != nil {
		interrupt()
	}
	w.Ignore()
}
