//go:build !race

package rwlock

import "sync/atomic"

const raceEnabled = false

// stampedWord is the state word. What it tells the race detector is in the other variant.
type stampedWord struct{ atomic.Uint64 }

func (w *stampedWord) afterWrites()  {}
func (w *stampedWord) afterAll()     {}
func (w *stampedWord) releaseWrite() {}
func (w *stampedWord) releaseRead()  {}
