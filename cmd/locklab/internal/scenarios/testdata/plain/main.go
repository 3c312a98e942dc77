// Command plain does double-checked locking wrong, for the race detector to say so.
package main

import "sync"

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
	}
	both.Wait()
}
