//go:build race

package rwlock_test

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
	"github.com/jucgo/locks/rwlock"
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
var reading = map[string]func(l *rwlock.StampedLock, f func()){
	"ReadLock":     func(l *rwlock.StampedLock, f func()) { st := l.ReadLock(); f(); l.UnlockRead(st) },
	"TryReadLock":  func(l *rwlock.StampedLock, f func()) { st := l.TryReadLock(); f(); l.Unlock(st) },
	"TryUnlock":    func(l *rwlock.StampedLock, f func()) { l.ReadLock(); f(); l.TryUnlockRead() },
	"toOptimistic": func(l *rwlock.StampedLock, f func()) { st := l.ReadLock(); f(); l.TryConvertToOptimisticRead(st) },
	"fromOptimistic": func(l *rwlock.StampedLock, f func()) {
		st := l.TryConvertToReadLock(l.TryOptimisticRead())
		f()
		l.UnlockRead(st)
	},
	"ReadLocker": func(l *rwlock.StampedLock, f func()) {
		_ = locks.Do(context.Background(), l.ReadLocker(), func(context.Context) error { f(); return nil })
	},
}

// writing are ways to run f under a write hold.
var writing = map[string]func(l *rwlock.StampedLock, f func()){
	"WriteLock":    func(l *rwlock.StampedLock, f func()) { st := l.WriteLock(); f(); l.UnlockWrite(st) },
	"TryWriteLock": func(l *rwlock.StampedLock, f func()) { st := l.TryWriteLock(); f(); l.Unlock(st) },
	"TryUnlock":    func(l *rwlock.StampedLock, f func()) { l.WriteLock(); f(); l.TryUnlockWrite() },
	"fromRead": func(l *rwlock.StampedLock, f func()) {
		st := l.TryConvertToWriteLock(l.ReadLock())
		f()
		l.Unlock(st)
	},
	"toOptimistic": func(l *rwlock.StampedLock, f func()) {
		st := l.WriteLock()
		f()
		l.TryConvertToOptimisticRead(st)
	},
	"fromOptimistic": func(l *rwlock.StampedLock, f func()) {
		st := l.TryConvertToWriteLock(l.TryOptimisticRead())
		f()
		l.UnlockWrite(st)
	},
	"toRead": func(l *rwlock.StampedLock, f func()) {
		st := l.WriteLock()
		f()
		l.UnlockRead(l.TryConvertToReadLock(st))
	},
}

const raceChild = "LOCKS_RACE_CHILD"

// The child process writes under the read lock. Its exit status is that of a reported race.
func TestWritesUnderTheReadLockAreReportedOneAfterTheOther(t *testing.T) {
	if mode := os.Getenv(raceChild); mode != "" {
		var l rwlock.StampedLock
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
			require.Contains(t, string(report), "stamped_race_test.go")
		})
	}
}

func TestHoldsThatExcludeEachOtherOrderTheirAccesses(t *testing.T) {
	for wName, write := range writing {
		for other, next := range writing {
			t.Run(wName+", then to write by "+other, func(t *testing.T) {
				var l rwlock.StampedLock
				var n int
				inTurn(func() { write(&l, func() { n++ }) }, func() { next(&l, func() { n++ }) })
			})
		}
		for rName, read := range reading {
			t.Run(wName+", then to read by "+rName, func(t *testing.T) {
				var l rwlock.StampedLock
				n, sum := 0, 0
				inTurn(func() { write(&l, func() { n++ }) }, func() { read(&l, func() { sum += n }) })
				require.Equal(t, 1, sum)
			})
			t.Run(rName+", then to write by "+wName, func(t *testing.T) {
				var l rwlock.StampedLock
				n, sum := 0, 0
				inTurn(func() { read(&l, func() { sum += n }) }, func() { write(&l, func() { n++ }) })
			})
		}
	}
}

func TestAnOptimisticReadSeesPlainWritesOfEarlierHolds(t *testing.T) {
	var l rwlock.StampedLock
	var config []string
	inTurn(func() {
		st := l.WriteLock()
		config = []string{"ready"}
		l.UnlockWrite(st)
	}, func() {
		st := l.TryOptimisticRead()
		got := config
		require.True(t, l.Validate(st))
		require.Equal(t, []string{"ready"}, got)
	})
}
