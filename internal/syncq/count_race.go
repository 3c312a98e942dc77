//go:build race

package syncq

import "sync/atomic"

// count is the same as without the race detector, in terms that the detector knows.
type count struct{ n atomic.Uint32 }

func (c *count) own() uint32  { return c.n.Load() }
func (c *count) set(n uint32) { c.n.Store(n) }
func (c *count) load() uint32 { return c.n.Load() }

// mark is the same as without the race detector, in terms that the detector knows.
type mark struct{ n uint32 }

func newMark(n uint8) mark  { return mark{uint32(n)} }
func (m *mark) set(n uint8) { atomic.StoreUint32(&m.n, uint32(n)) }
func (m *mark) load() uint8 { return uint8(atomic.LoadUint32(&m.n)) }

// reader is the same as without the race detector.
type reader struct{ o atomic.Int64 }

func (r *reader) set(o int64) { r.o.Store(o) }
func (r *reader) load() int64 { return r.o.Load() }
