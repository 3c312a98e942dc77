//go:build !race

package rwlock_test

import (
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jucgo/locks/rwlock"
)

// Not under the race detector, which has a sync.Pool drop what it is given at random.

func TestContendedStampedAllocatesNothingInTheSteadyState(t *testing.T) {
	var l rwlock.StampedLock
	stop := false
	var wg sync.WaitGroup
	wg.Go(func() {
		for end := false; !end; {
			st := l.WriteLock()
			end = stop
			runtime.Gosched()
			l.UnlockWrite(st)
		}
	})
	allocs := testing.AllocsPerRun(500, func() {
		st := l.WriteLock()
		runtime.Gosched()
		l.UnlockWrite(st)
		l.UnlockRead(l.ReadLock())
	})
	st := l.WriteLock()
	stop = true
	l.UnlockWrite(st)
	wg.Wait()
	require.Zero(t, allocs)
}
