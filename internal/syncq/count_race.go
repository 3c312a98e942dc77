//go:build race

package syncq

import "sync/atomic"

// count is the same as without the race detector, in terms that the detector knows.
type count struct{ n atomic.Uint32 }

func (c *count) own() uint32  { return c.n.Load() }
func (c *count) set(n uint32) { c.n.Store(n) }
func (c *count) load() uint32 { return c.n.Load() }
