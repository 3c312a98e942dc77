//go:build race

package fair_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks"
	"github.com/jucgo/locks/fair"
)

// unseen passes a signal that orders two goroutines in time, but not for the race detector.
type unseen chan struct{}

func (c unseen) send() {
	runtime.RaceDisable()
	defer runtime.RaceEnable()
	c <- struct{}{}
}

func (c unseen) receive() {
	runtime.RaceDisable()
	defer runtime.RaceEnable()
	<-c
}

// inTurn runs first and then second, in goroutines that only a lock orders.
func inTurn(first, second func()) {
	turn := make(unseen)
	var wg sync.WaitGroup
	wg.Go(func() { first(); turn.send() })
	wg.Go(func() { turn.receive(); second() })
	wg.Wait()
}

// reading are ways to run f under a read hold.
var reading = map[string]func(l *fair.RWMutex, f func()){
	"RLock":        func(l *fair.RWMutex, f func()) { l.RLock(); f(); l.RUnlock() },
	"TryRLock":     func(l *fair.RWMutex, f func()) { l.TryRLock(); f(); l.RUnlock() },
	"TryRLockFor":  func(l *fair.RWMutex, f func()) { l.TryRLockFor(1); f(); l.RUnlock() },
	"RLockContext": func(l *fair.RWMutex, f func()) { _ = l.RLockContext(context.Background()); f(); l.RUnlock() },
	"ReadLocker": func(l *fair.RWMutex, f func()) {
		_ = locks.Do(context.Background(), l.ReadLocker(), func(context.Context) error { f(); return nil })
	},
}

// writing are ways to run f under a write hold.
var writing = map[string]func(l *fair.RWMutex, f func()){
	"Lock":       func(l *fair.RWMutex, f func()) { l.Lock(); f(); l.Unlock() },
	"TryLock":    func(l *fair.RWMutex, f func()) { l.TryLock(); f(); l.Unlock() },
	"TryLockFor": func(l *fair.RWMutex, f func()) { l.TryLockFor(1); f(); l.Unlock() },
	"WriteLocker": func(l *fair.RWMutex, f func()) {
		_ = locks.Do(context.Background(), l.WriteLocker(), func(context.Context) error { f(); return nil })
	},
}

const raceChild = "LOCKS_RACE_CHILD"

// The child process writes under the read lock. Its exit status is that of a reported race.
func TestWritesUnderTheReadLockAreReportedOneAfterTheOther(t *testing.T) {
	if mode := os.Getenv(raceChild); mode != "" {
		var l fair.RWMutex
		var n int
		inTurn(func() { reading[mode](&l, func() { n++ }) }, func() { reading[mode](&l, func() { n++ }) })
		return
	}
	for mode := range reading {
		t.Run(mode, func(t *testing.T) {
			test := strings.TrimSuffix(t.Name(), "/"+mode)
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$")
			child.Env = append(os.Environ(), raceChild+"="+mode, "GORACE=exitcode=66")
			report, err := child.CombinedOutput()
			require.Error(t, err)
			require.Contains(t, string(report), "WARNING: DATA RACE")
			require.Contains(t, string(report), "rwmutex_race_test.go")
		})
	}
}

func TestHoldsThatExcludeEachOtherOrderTheirAccesses(t *testing.T) {
	for wName, write := range writing {
		for other, next := range writing {
			t.Run(wName+", then to write by "+other, func(t *testing.T) {
				var l fair.RWMutex
				var n int
				inTurn(func() { write(&l, func() { n++ }) }, func() { next(&l, func() { n++ }) })
			})
		}
		for rName, read := range reading {
			t.Run(wName+", then to read by "+rName, func(t *testing.T) {
				var l fair.RWMutex
				n, sum := 0, 0
				inTurn(func() { write(&l, func() { n++ }) }, func() { read(&l, func() { sum += n }) })
				require.Equal(t, 1, sum)
			})
			t.Run(rName+", then to write by "+wName, func(t *testing.T) {
				var l fair.RWMutex
				n, sum := 0, 0
				inTurn(func() { read(&l, func() { sum += n }) }, func() { write(&l, func() { n++ }) })
			})
		}
	}
}
