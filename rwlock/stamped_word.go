package rwlock

import (
	"sync/atomic"

	"github.com/jucgo/locks/internal/raceorder"
)

// stampedWord is the state word. A validated optimistic read is ordered like an acquisition by a
// reader.
type stampedWord struct {
	raceorder.Order
	word atomic.Uint64
}

func (w *stampedWord) Load() uint64 {
	w.Ignore()
	v := w.word.Load()
	w.Heed()
	return v
}

func (w *stampedWord) Store(to uint64) {
	w.Ignore()
	w.word.Store(to)
	w.Heed()
}

func (w *stampedWord) Add(by uint64) uint64 {
	w.Ignore()
	v := w.word.Add(by)
	w.Heed()
	return v
}

func (w *stampedWord) CompareAndSwap(from, to uint64) bool {
	w.Ignore()
	ok := w.word.CompareAndSwap(from, to)
	w.Heed()
	return ok
}
