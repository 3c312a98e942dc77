//go:build race

package shmlock

import (
	"sync"
	"sync/atomic"
)

// order tells the race detector what it cannot see: a release of the word happens before its
// next acquisition. Another [Mutex] of this process has the same memory at another address.
type order struct{ word *atomic.Int64 }

var orders sync.Map // by path

func orderOf(path string) order {
	word, _ := orders.LoadOrStore(path, new(atomic.Int64))
	return order{word.(*atomic.Int64)}
}

func (o order) acquire() { o.word.Load() }
func (o order) release() { o.word.Add(1) }
