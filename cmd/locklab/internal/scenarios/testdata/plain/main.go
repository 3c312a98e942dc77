// Command plain does double-checked locking wrong, for the race detector to say so.
package main

import (
	"sync"
	"time"
)

type config struct{ number int }

var (
	mu       sync.Mutex
	instance *config
)

func get() *config {
	if instance == nil { // the first check, without the lock
		mu.Lock()
		defer mu.Unlock()
		if instance == nil {
			instance = &config{number: 1}
		}
	}
	return instance
}

func main() {
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() { get() })
		// The second comes later, as a rule, but nothing says that it has to. That is a data
		// race as much as if they met, and the detector, which may overlook those who meet in
		// the very same moment, is sure to see it.
		time.Sleep(5 * time.Millisecond)
	}
	both.Wait()
}
