package shmlock

import "time"

// SetSlice has waiters of this process sleep for d before they check the word by themselves, and
// returns what ends that. Nobody may wait meanwhile.
func SetSlice(d time.Duration) (end func()) {
	before := slice
	slice = d
	return func() { slice = before }
}

// WaitsForWord reports whether a goroutine waits for the word.
func (l *Mutex) WaitsForWord() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waits
}
