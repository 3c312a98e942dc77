//go:build race

package fair_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
	"github.com/jucgo/locks/internal/test/racetest"
)

// reading are ways to run f under a read hold.
var reading = racetest.Ways[fair.RWMutex]{
	"RLock":        func(l *fair.RWMutex, f func()) { l.RLock(); f(); l.RUnlock() },
	"TryRLock":     func(l *fair.RWMutex, f func()) { l.TryRLock(); f(); l.RUnlock() },
	"TryRLockFor":  func(l *fair.RWMutex, f func()) { l.TryRLockFor(1); f(); l.RUnlock() },
	"RLockContext": func(l *fair.RWMutex, f func()) { _ = l.RLockContext(context.Background()); f(); l.RUnlock() },
	"ReadLocker": func(l *fair.RWMutex, f func()) {
		_ = locks.Do(context.Background(), l.ReadLocker(), func(context.Context) error { f(); return nil })
	},
}

// writing are ways to run f under a write hold.
var writing = racetest.Ways[fair.RWMutex]{
	"Lock":       func(l *fair.RWMutex, f func()) { l.Lock(); f(); l.Unlock() },
	"TryLock":    func(l *fair.RWMutex, f func()) { l.TryLock(); f(); l.Unlock() },
	"TryLockFor": func(l *fair.RWMutex, f func()) { l.TryLockFor(1); f(); l.Unlock() },
	"WriteLocker": func(l *fair.RWMutex, f func()) {
		_ = locks.Do(context.Background(), l.WriteLocker(), func(context.Context) error { f(); return nil })
	},
}

func TestAWaitForASignalOrdersWhatTheLockGuards(t *testing.T) {
	var (
		rw fair.RWMutex
		wg sync.WaitGroup
		c  = rw.NewCond()
		n  int
	)
	for range 2 {
		wg.Go(func() {
			rw.Lock()
			defer rw.Unlock()
			n++
			for n < 3 {
				c.Wait()
			}
			n++
			c.WaitFor(0)
			n++
		})
	}
	for wait := true; wait; runtime.Gosched() {
		rw.RLock()
		wait = n < 2
		rw.RUnlock()
	}
	rw.Lock()
	n++
	c.Broadcast()
	rw.Unlock()
	wg.Wait()
	require.Equal(t, 7, n)
}

func TestWritesUnderTheReadLockAreReported(t *testing.T) {
	racetest.WritesAreReported(t, "rwmutex_race_test.go", reading)
}

func TestHoldsThatExcludeEachOtherOrderTheirAccesses(t *testing.T) {
	racetest.ExclusiveHoldsAreOrdered(t, reading, writing)
}
