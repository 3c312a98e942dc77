//go:build !race

package rwlock

import "sync/atomic"

const raceEnabled = false

// stampedWord is the state word. The variant with the race detector describes its methods.
type stampedWord struct{ atomic.Uint64 }

func (w *stampedWord) afterWrites()     {}
func (w *stampedWord) afterAll()        {}
func (w *stampedWord) beforeWriteEnds() {}
func (w *stampedWord) beforeReadEnds()  {}
