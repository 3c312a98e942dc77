//go:build !race

package syncq

import (
	"math/bits"
	"sync/atomic"
)

// count is a number that a single party changes at a time, and that any goroutine may read.
//
// The change is a plain store. On amd64 an atomic store costs as much as a compare-and-swap, which
// would triple the cost of a re-entrant read. A reader sees some value that the count had: the
// memory model guarantees as much for a word, and count needs no order.
type count struct{ n uint32 }

// own returns the number to the party that changes it.
func (c *count) own() uint32 { return c.n }

// set changes the number.
func (c *count) set(n uint32) { c.n = n }

// load returns the number to any goroutine.
func (c *count) load() uint32 { return atomic.LoadUint32(&c.n) }

// mark is a byte that any goroutine may read and change.
//
// Its stores are plain, for the reasons of count. Of two changes at once, one may be lost. Where a
// lost change would matter, the goroutines that change the mark hold the guard.
type mark struct{ n uint8 }

// newMark returns a mark with the byte n.
func newMark(n uint8) mark { return mark{n} }

// set changes the byte.
func (m *mark) set(n uint8) { m.n = n }

// load returns the byte.
func (m *mark) load() uint8 { return m.n }

// reader is a goroutine, or 0. A single goroutine changes it at a time, and any goroutine may read
// it.
//
// The change is a plain store where an id is one machine word, for the reasons of count.
type reader struct{ o int64 }

// set changes the goroutine.
func (r *reader) set(o int64) {
	if bits.UintSize == 64 {
		r.o = o
	} else {
		atomic.StoreInt64(&r.o, o)
	}
}

// load returns the goroutine to any other goroutine.
func (r *reader) load() int64 { return atomic.LoadInt64(&r.o) }
