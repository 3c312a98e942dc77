package syncq

import (
	"sync"

	"github.com/jucgo/locks/internal/pause"
)

// guard is a sync.Mutex for a few dozen instructions. Who finds it taken looks again soon, since it is free by then if its holder
// runs: a sync.Mutex spins thirty pauses before it looks again, which is as long as three hand-overs.
type guard struct{ mu sync.Mutex }

// guardRounds is how often the guard is looked at, a pause apart, before the goroutine waits as a sync.Mutex has it wait. Who comes to
// the queue has no place in it before it has the guard, and who sleeps for that may run again only after 10 ms or more, where
// waiters wake up early: see breathe in pace.go. So it sleeps only if the guard's holder must have lost its processor.
const guardRounds = 1000

func (g *guard) Lock() {
	if !g.mu.TryLock() {
		g.wait()
	}
}

func (g *guard) wait() {
	if spins {
		for range guardRounds {
			pause.Pause(1)
			if g.mu.TryLock() {
				return
			}
		}
	}
	g.mu.Lock()
}

func (g *guard) Unlock() { g.mu.Unlock() }
