//go:build !race

package syncq

import (
	"math/bits"
	"sync/atomic"
)

// count is a number that one party at a time changes, and that anybody may read.
//
// The change is a plain store, since an atomic one costs as much as a compare-and-swap on
// amd64, which would triple the cost of a re-entrant read. A reader sees some value that
// the count had: the memory model grants that for a word, and order is not asked of it.
type count struct{ n uint32 }

// own returns the number to the party that changes it.
func (c *count) own() uint32 { return c.n }

// set changes the number.
func (c *count) set(n uint32) { c.n = n }

// load returns the number to anybody.
func (c *count) load() uint32 { return atomic.LoadUint32(&c.n) }

// mark is a byte that any goroutine may read and change.
//
// Its stores are plain, for the reasons of count. Two changes at once may be one. Where that is not
// good enough, the changes have the guard.
type mark struct{ n uint8 }

// newMark returns a mark with the byte n.
func newMark(n uint8) mark { return mark{n} }

// set changes the byte.
func (m *mark) set(n uint8) { m.n = n }

// load returns the byte.
func (m *mark) load() uint8 { return m.n }

// reader is a goroutine, or 0. One goroutine at a time changes it, and anybody may read it.
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

// load returns the goroutine to anybody.
func (r *reader) load() int64 { return atomic.LoadInt64(&r.o) }
