//go:build race

package filelock

import (
	"sync"
	"sync/atomic"
)

// order tells the race detector what it cannot see: that a release of the word happens before the next acquisition of it by way of
// another [Mapped] of this process, which has the same memory under another address.
type order struct{ word *atomic.Int64 }

var orders sync.Map // by path

func orderOf(path string) order {
	word, _ := orders.LoadOrStore(path, new(atomic.Int64))
	return order{word.(*atomic.Int64)}
}

func (o order) acquired()  { o.word.Load() }
func (o order) releasing() { o.word.Add(1) }
